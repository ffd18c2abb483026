"""``tallytree plan``: expected errors before any budget is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.plan_maps import plan_map
from tallytree.cli.plan_tables import plan_table_like
from tallytree.errors import RequestError, StorageError
from tallytree.options.asking import AssumedOptions, PlanOptions, VariantOptions
from tallytree.options.choices import Public

if TYPE_CHECKING:
    from tallytree.group_sizes.accuracy import Prediction
    from tallytree.group_sizes.values.release import ValuesRelease
    from tallytree.model.confidential import AssumedCounts, ConfidentialCounts

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "matching, hybrid": {"mechanism": "matching", "view": "hybrid"},
    "matching, cumulative": {"mechanism": "matching", "view": "cumulative"},
    "bottom-up, cumulative": {"mechanism": "bottom-up", "view": "cumulative"},
}


@command(app)
def plan(data: AssumedOptions, what: PlanOptions, variant: VariantOptions) -> None:
    """Predict the error of a release from public facts alone, or find the ε that a target needs.

    Reads no confidential data: it runs the real mechanisms on assumed data with the same regions
    and group totals.

    Example: tallytree plan --groups households.parquet --group household --levels state,county
        --epsilon 1.0
    Example: tallytree plan --like trips --epsilon 0.5
    """
    from tallytree.boxes.release import SpatialRelease
    from tallytree.group_sizes.accuracy import (
        compare,
        protecting_groups,
        smallest_epsilon,
        trade_off,
    )
    from tallytree.group_sizes.targets import parse_target
    from tallytree.group_sizes.values.release import ValuesRelease
    from tallytree.kinds.verbs import load
    from tallytree.tables.release import TableRelease

    epsilon, target = what.epsilon, what.target
    earlier = load(data.like) if data.like is not None else None
    if isinstance(earlier, TableRelease):
        plan_table_like(earlier, what, variant)
        return
    if isinstance(earlier, SpatialRelease):
        if epsilon is None or target is not None or what.chart is not None:
            raise RequestError(
                "Errors of a map are predicted at a given --epsilon; it takes no --target and no "
                "--chart."
            )
        plan_map(earlier, epsilon=epsilon, asked=variant, runs=what.runs, json=what.json)
        return
    if isinstance(earlier, ValuesRelease):
        if epsilon is None or target is not None or what.chart is not None or variant.given():
            raise RequestError(
                "Errors of a table of values are predicted at a given --epsilon; it takes no "
                "--target, --chart, --mechanism, --view or --budget."
            )
        _plan_values(earlier, what)
        return
    assumed = _assumed(data, earlier)
    if data.unit == "group" and not assumed.public.unit.group:
        assumed = protecting_groups(assumed)
    if (epsilon is None) == (target is None):
        raise RequestError(
            "Say either --epsilon, to predict errors, or --target, to find the smallest epsilon."
        )
    options = {name: value for name, value in vars(variant).items() if value is not None}
    only_default = assumed.public.unit.group or assumed.public.attributes or assumed.public.people
    usual = {"default": VARIANTS["default"]} if only_default else VARIANTS
    variants = {"as asked": options} if options else usual
    with progress_bar() as progress:
        more: dict[str, Any] = {"runs": what.runs, "progress": progress}
        if target is not None:
            found, prediction = smallest_epsilon(assumed, parse_target(target), **more, **options)
            predictions = [prediction]
        else:
            predictions = compare(assumed, variants, epsilon=epsilon, **more)
        if what.chart is not None:
            around = predictions[0].epsilon
            _write(Path(what.chart), trade_off(assumed, variants, around=around, **more).svg())
    if what.json:
        print_json({"predictions": [prediction.to_json() for prediction in predictions]})
        return
    say("No confidential data were read: the mechanisms ran on assumed data.")
    if target is not None:
        say(f"The smallest privacy loss that meets {target!r}: epsilon = {float(found):g}")
        if predictions[0].share is not None:
            say(
                f"Predicted there: {predictions[0].share:.1%} of the regions that have such groups."
            )
    head = ["release", "level", "regions", "EMD", "half below", "9 in 10 below", "L1", "one count"]
    print_table(
        "Predicted error per region: means, and how single regions spread", head, _rows(predictions)
    )
    for prediction in predictions:
        if prediction.cost is not None:
            say(f"A release ({prediction.name}): {prediction.cost.told()}.")


def _plan_values(earlier: ValuesRelease, what: PlanOptions) -> None:
    """Show predicted errors of the statistics of an earlier table of values."""
    from tallytree.group_sizes.values.evaluate import HEAD, plan_values

    found = plan_values(earlier, epsilon=what.epsilon, runs=what.runs)
    if what.json:
        print_json({"predictions": [found.to_json()]})
        return
    say("No confidential data were read: the mechanism ran on the earlier table.")
    print_table("Predicted mean error per region", list(HEAD), found.rows())


def _write(chart: Path, svg: str) -> None:
    try:
        chart.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"Cannot write {chart}: {error.strerror}.") from None
    say(f"Wrote {chart}: error against ε, per level.")


def _assumed(data: AssumedOptions, earlier: Any) -> AssumedCounts:
    """The data that stand in for the confidential ones."""
    from tallytree.group_sizes.accuracy import data_like
    from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
    from tallytree.group_sizes.release.release import Release
    from tallytree.kinds.verbs import kind_of
    from tallytree.model.classes import classes_from
    from tallytree.model.confidential import in_classes

    given = [name for name in ("like", "groups", "group_totals") if getattr(data, name) is not None]
    if len(given) != 1:
        raise RequestError(
            "Say one of --like DIR (an earlier release), --groups TABLE (the public table of "
            "groups) and --group-totals TABLE "
            "(the public table of regions and their numbers of groups)."
        )
    if data.like is None:
        outside = read_public(data)
        groups = outside.n_groups if outside.cell_counts is None else outside.cell_counts.n_groups()
        assumed = assumed_counts(
            outside.hierarchy, groups, named_shape(data.shape), attributes=outside.public.attributes
        )
        return assumed if data.classes is None else in_classes(assumed, classes_from(data.classes))
    if data.by:
        raise RequestError("--by goes with --groups; an earlier release has attributes of its own.")
    if data.classes is not None:
        raise RequestError(
            "--classes goes with a public table; an earlier release has classes or sizes of its "
            "own."
        )
    if not isinstance(earlier, Release):
        raise RequestError(
            f"{data.like} holds {kind_of(earlier).title}: plan --like takes group sizes, values or a map."
        )
    return data_like(earlier)


def read_public(data: AssumedOptions) -> ConfidentialCounts:
    """The regions and numbers of groups of a public table: of groups, one row each, or of regions
    with their totals.
    """
    from tallytree.ingest.read import read, read_totals

    if data.groups is not None:
        public: Public = "cells" if data.by else "groups"
        return read(
            data.groups,
            group=data.group,
            levels=data.levels,
            root=data.root,
            by=data.by,
            public=public,
        )
    if data.by:
        raise RequestError(
            "--by goes with --groups, a public table of groups with the attributes as columns."
        )
    return read_totals(data.group_totals, levels=data.levels, root=data.root)


def _rows(predictions: list[Prediction]) -> list[list[object]]:
    return [
        [
            prediction.name,
            level.name,
            level.regions,
            level.emd,
            *_ends(prediction, level.name),
            level.l1,
            level.count_error,
        ]
        for prediction in predictions
        for level in prediction.levels
    ]


def _ends(prediction: Prediction, level: str) -> tuple[object, object]:
    """What half and nine in ten of the regions stay below; tables by attributes have no spread of
    their own.
    """
    return next(((one.half, one.most) for one in prediction.spread if one.name == level), ("", ""))

"""``tallytree plan``: expected errors before any budget is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.cli import sources
from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.options import AsJson
from tallytree.cli.spatial import plan_map
from tallytree.errors import RequestError, StorageError
from tallytree.ingest.read import read
from tallytree.model.confidential import ENTITY, ConfidentialCounts
from tallytree.planning.shapes import assumed_counts, named_shape
from tallytree.publish.accuracy import (
    Prediction,
    compare,
    data_like,
    parse_target,
    protecting_groups,
    smallest_epsilon,
    trade_off,
)
from tallytree.release.any_release import load
from tallytree.release.loading import load_release
from tallytree.release.release import Release
from tallytree.release.spatial import SpatialRelease

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "matching, hybrid": {"mechanism": "matching", "view": "hybrid"},
    "matching, cumulative": {"mechanism": "matching", "view": "cumulative"},
    "bottom-up, cumulative": {"mechanism": "bottom-up", "view": "cumulative"},
}


@app.command()
def plan(
    like: Annotated[
        Path | None,
        typer.Option(help="An earlier release or map: its regions, totals and sizes are assumed.", metavar="DIR"),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Public table of groups, one row per group, with the group and level columns.")
    ] = None,
    group: sources.Group = None,
    levels: sources.Levels = None,
    shape: Annotated[
        str, typer.Option(help="Assumed sizes: households, geometric:MEAN, poisson:MEAN or zipf:EXPONENT.")
    ] = "households",
    root: sources.Root = "total",
    unit: Annotated[str, typer.Option(help="What will be protected: entity or group.")] = ENTITY,
    epsilon: Annotated[str | None, typer.Option(help="Predict the errors at this privacy loss.")] = None,
    target: Annotated[str | None, typer.Option(help='Find the smallest ε, for example "county: emd<=20".')] = None,
    mechanism: Annotated[str | None, typer.Option(help="Only this mechanism.")] = None,
    view: Annotated[str | None, typer.Option(help="Only this view, or one per level, comma-separated.")] = None,
    budget: Annotated[str | None, typer.Option(help="Only this split over levels.")] = None,
    method: Annotated[str | None, typer.Option(help="Of a map: only this method.")] = None,
    runs: Annotated[int, typer.Option(help="Simulated releases per prediction.", min=1)] = 5,
    chart: Annotated[
        Path | None, typer.Option(help="Draw error against ε, per level, into this SVG file.", metavar="FILE")
    ] = None,
    json: AsJson = False,
) -> None:
    """Predict the error of a release from public facts alone, or find the ε that a target needs.

    Reads no confidential data: it runs the real mechanisms on assumed data with the same regions and group totals.

    Example: tallytree plan --groups households.parquet --group household --levels state,county --epsilon 1.0
    Example: tallytree plan --like trips --epsilon 0.5
    """
    earlier = load(like) if like is not None and groups is None else None
    if isinstance(earlier, SpatialRelease):
        if epsilon is None or target is not None or chart is not None:
            raise RequestError(
                "Errors of a map are predicted at a given --epsilon; it takes no --target and no --chart."
            )
        plan_map(earlier, epsilon=epsilon, method=method, runs=runs, json=json)
        return
    if method is not None:
        raise RequestError("--method goes with --like DIR of a map; other releases have --mechanism.")
    if groups is None:
        assumed = _assumed_like(like, earlier)
    elif like is None:
        assumed = _assumed_groups(groups, group=group, levels=levels, shape=shape, root=root)
    else:
        raise RequestError("Say either --like DIR or --groups TABLE, not both.")
    assumed = _protecting(assumed, unit)
    options = _options(mechanism=mechanism, view=view, budget=budget)
    if (epsilon is None) == (target is None):
        raise RequestError("Say either --epsilon, to predict errors, or --target, to find the smallest epsilon.")
    usual = {"default": VARIANTS["default"]} if assumed.whole_groups else VARIANTS
    variants = {"as asked": options} if options else usual
    with progress_bar() as progress:
        if target is not None:
            found, prediction = smallest_epsilon(assumed, parse_target(target), runs=runs, progress=progress, **options)
            predictions = [prediction]
        else:
            predictions = compare(assumed, variants, epsilon=epsilon, runs=runs, progress=progress)
        if chart is not None:
            around = predictions[0].epsilon
            _write(chart, trade_off(assumed, variants, around=around, runs=runs, progress=progress).svg())
    if json:
        print_json({"predictions": [prediction.to_json() for prediction in predictions]})
        return
    say("No confidential data were read: the mechanisms ran on assumed data.")
    if target is not None:
        say(f"The smallest privacy loss that meets {target!r}: epsilon = {float(found):g}")
    print_table(
        "Predicted mean error per region", ["release", "level", "regions", "EMD", "L1", "one count"], _rows(predictions)
    )


def _write(chart: Path, svg: str) -> None:
    try:
        chart.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"Cannot write {chart}: {error.strerror}.") from None
    say(f"Wrote {chart}: error against ε, per level.")


def _assumed_like(like: Path | None, earlier: object) -> ConfidentialCounts:
    if like is None:
        raise RequestError("Say either --like DIR (an earlier release) or --groups TABLE (the public table of groups).")
    return data_like(earlier if isinstance(earlier, Release) else load_release(like))


def _assumed_groups(groups: str, *, group: str | None, levels: str | None, shape: str, root: str) -> ConfidentialCounts:
    sizes = named_shape(shape)
    public = read(groups, group=group, levels=sources.split_names(levels), root=root)
    return assumed_counts(public.hierarchy, public.n_groups, sizes)


def _protecting(assumed: ConfidentialCounts, unit: str) -> ConfidentialCounts:
    match unit:
        case "group" if not assumed.whole_groups:
            return protecting_groups(assumed)
        case "entity" | "group":
            return assumed
    raise RequestError(f"--unit {unit!r} is not known here. Say entity or group.")


def _options(**given: str | None) -> dict[str, Any]:
    return {name: sources.one_or_many(value) for name, value in given.items() if value is not None}


def _rows(predictions: list[Prediction]) -> list[list[object]]:
    return [
        [prediction.name, level.name, level.regions, level.emd, level.l1, level.count_error]
        for prediction in predictions
        for level in prediction.levels
    ]

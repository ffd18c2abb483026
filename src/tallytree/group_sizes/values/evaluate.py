"""Errors of a table of values against the truth, and those to expect of a release like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.accuracy import data_like
from tallytree.group_sizes.values.publish import release_values
from tallytree.group_sizes.values.release import ValuesRelease
from tallytree.group_sizes.values.tables import statistics_of_all
from tallytree.ingest.read import read_values
from tallytree.model.arrays import FloatArray
from tallytree.model.attributes import OTHER
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_on_all_levels
from tallytree.model.notebook import html_table
from tallytree.model.part import part_of
from tallytree.options.values import ValuesOptions
from tallytree.releases.keeping import NOTHING_KEPT
from tallytree.releases.query_evaluation import WARNING

HEAD = ("level", "regions", "statistic", "mean error", "relative error")


@dataclass(frozen=True)
class StatisticErrors:
    """Errors of one statistic over the regions of a level, those left out that have no rows.

    Attributes
    ----------
    name, regions, statistic
        The level, how many of its regions were compared, and what of them.
    error, relative_error
        Mean absolute error, and the same as a part of the true statistics' mean absolute value.
    """

    name: str
    regions: int
    statistic: str
    error: float
    relative_error: float


@dataclass(frozen=True)
class ValuesEvaluation:
    """Errors of every statistic per level."""

    levels: tuple[StatisticErrors, ...]
    warning: str = WARNING

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {"warning": self.warning, "levels": [asdict(one) for one in self.levels]}

    def rows(self) -> list[list[object]]:
        """The errors as rows, in the order of ``HEAD``."""
        return [list(asdict(one).values()) for one in self.levels]

    def tables(self) -> list[tuple[str, list[str], list[list[object]]]]:
        """Tables to print: title, head and rows."""
        return [("Mean error per region", list(HEAD), self.rows())]

    def _repr_html_(self) -> str:
        rows = self.rows()
        return html_table(
            "Mean error per region", list(HEAD), rows, note=self.warning, n_rows=len(rows)
        )


def evaluate_values(release: ValuesRelease, truth: Any, **source: Any) -> ValuesEvaluation:
    """Errors per level against a table, read as the release was."""
    counts = read_values(truth, options_like(release, source))
    if counts.hierarchy != release.hierarchy:
        raise RequestError(
            f"The release covers {release.hierarchy!r}, the data {counts.hierarchy!r}; they must "
            "be the same regions."
        )
    return compared(release, counts)


def options_like(release: ValuesRelease, source: Mapping[str, Any]) -> ValuesOptions:
    """How the data of a release are read, but for what is said of them."""
    unit = release.manifest["privacy"]["unit"]
    scale = release.scale
    attributes = dict(zip(release.attributes.names, release.attributes.values))
    listed = {
        name: [value for value in values if value != OTHER] for name, values in attributes.items()
    }
    known: dict[str, Any] = {
        "levels": release.hierarchy.level_names[1:],
        "root": str(release.hierarchy.labels[0]),
        "by": listed,
        "closed": [name for name, values in attributes.items() if OTHER not in values],
        "value": scale.name,
        "step": scale.step,
        "min": scale.first * scale.step,
        "max": scale.last * scale.step,
        "contributions": unit["contributions"],
        **({"unit": f"column:{unit['column']}"} if unit["column"] else {}),
    }
    part = part_of(release.manifest)
    more = {} if part is None else {"where": part}
    return ValuesOptions(**{**known, **source, **more})


def compared(release: ValuesRelease, truth: ConfidentialCounts) -> ValuesEvaluation:
    """Errors of the regions' statistics, of all rows together, level by level."""
    exact = counts_on_all_levels(truth.hierarchy, truth.leaf_counts)
    true = statistics_of_all(exact, release.scale)
    slots = np.arange(release.hierarchy.n_regions) * release.lattice.n_slots
    found = release.statistics.value[slots]
    errors = []
    for level, name in enumerate(release.hierarchy.level_names):
        here = release.hierarchy.level_slice(level)
        for place, statistic in enumerate(release.statistics.names):
            errors.append(_errors(name, statistic, found[here, place], true[here, place]))
    return ValuesEvaluation(tuple(errors))


def _errors(name: str, statistic: str, found: FloatArray, true: FloatArray) -> StatisticErrors:
    known = ~(np.isnan(found) | np.isnan(true))
    if not known.any():
        return StatisticErrors(name, 0, statistic, 0.0, 0.0)
    error = float(np.abs(found[known] - true[known]).mean())
    size = float(np.abs(true[known]).mean())
    return StatisticErrors(name, int(known.sum()), statistic, error, error / size if size else 0.0)


def plan_values(
    like: ValuesRelease,
    *,
    epsilon: Any = None,
    target: str | None = None,
    runs: int = 5,
    **options: Any,
) -> ValuesEvaluation:
    """Expected errors of a release like an earlier one: means over releases of the earlier one's
    counts, taken for the truth. Reads no confidential data.
    """
    if epsilon is None or target is not None:
        raise RequestError(
            "Errors of a table of values are predicted at a given epsilon (--epsilon); it takes no "
            "target."
        )
    assumed = data_like(like.in_steps)
    asked = ValuesOptions(epsilon=epsilon, **options)
    made = [
        compared(release_values(assumed, replace(asked, insecure_seed=seed), NOTHING_KEPT), assumed)
        for seed in range(runs)
    ]
    return ValuesEvaluation(
        tuple(
            replace(
                first,
                error=float(np.mean([one.error for one in (first, *rest)])),
                relative_error=float(np.mean([one.relative_error for one in (first, *rest)])),
            )
            for first, *rest in zip(*(one.levels for one in made))
        ),
        "predicted: the mechanism ran on an earlier release, taken for the truth",
    )

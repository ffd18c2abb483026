"""Errors of a release against the truth: for the owner of the data, and as confidential as the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.distance import earth_movers_distance, l1_distance, l2_squared
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, counts_at, counts_on_all_levels
from tallytree.model.notebook import html_table, plain
from tallytree.released.group_sizes.release import Release

WARNING = "not private: computed from the confidential data; do not publish"


@dataclass(frozen=True)
class LevelErrors:
    """Mean errors over the regions of one level.

    ``emd`` is the earth mover's distance: how many entities must be added to or removed from groups to turn one table into
    the other (kuo2018, Lemma 1). ``count_error`` is the typical error of a single count: the root mean square over the
    sizes that occur in the truth. ``distinct_sizes`` is the mean number of those sizes.
    """

    level: int
    name: str
    regions: int
    emd: float
    l1: float
    l2: float
    count_error: float
    distinct_sizes: float


@dataclass(frozen=True)
class Evaluation:
    """Errors of a release per level, and the earth mover's distance of every region; not private."""

    levels: tuple[LevelErrors, ...]
    emd: IntArray | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {"warning": WARNING, "levels": [asdict(level) for level in self.levels]}

    def __repr__(self) -> str:
        return f"Evaluation(NOT PRIVATE; {emd_per_level(self.levels)})"

    def _repr_html_(self) -> str:
        return errors_html("Mean error per region", self.levels, note=WARNING)


def emd_per_level(levels: Sequence[LevelErrors]) -> str:
    """One line about errors: the EMD of every level."""
    return "EMD " + ", ".join(f"{level.name}: {plain(level.emd)}" for level in levels)


def errors_html(caption: str, levels: Sequence[LevelErrors], *, note: str) -> str:
    """Errors per level as a table for notebooks."""
    rows = [[level.name, level.regions, level.emd, level.l1, level.l2, level.count_error] for level in levels]
    return html_table(caption, ["level", "regions", "EMD", "L1", "L2", "one count"], rows, note=note)


def evaluate(release: Release, truth: ConfidentialCounts) -> Evaluation:
    """Compare a release with the exact counts, level by level. The result is NOT private."""
    hierarchy = release.hierarchy
    if truth.hierarchy != hierarchy:
        raise RequestError(
            f"The release covers {hierarchy!r}, the data {truth.hierarchy!r}; they must be the same regions."
        )
    if truth.classes != release.classes:
        raise RequestError("The release and the data are not counted in the same classes of sizes; name the same ones.")
    exact = counts_on_all_levels(hierarchy, truth.leaf_counts)
    emd = earth_movers_distance(release.counts, exact)
    l1 = l1_distance(release.counts, exact)
    l2 = np.sqrt(l2_squared(release.counts, exact))
    distinct = np.diff(exact.offsets)
    squares = _squared_count_errors(release.counts, exact)
    levels = []
    for level, name in enumerate(hierarchy.level_names):
        here = hierarchy.level_slice(level)
        runs = slice(exact.offsets[here.start], exact.offsets[here.stop])
        levels.append(
            LevelErrors(
                level=level,
                name=name,
                regions=hierarchy.level_size(level),
                emd=float(emd[here].mean()),
                l1=float(l1[here].mean()),
                l2=float(l2[here].mean()),
                count_error=float(np.sqrt(squares[runs].mean())) if runs.stop > runs.start else 0.0,
                distinct_sizes=float(distinct[here].mean()),
            )
        )
    return Evaluation(tuple(levels), emd)


def _squared_count_errors(released: CountsBySize, exact: CountsBySize) -> FloatArray:
    """Squared error of the released count of every size that occurs in the truth, run by run of the truth."""
    return (counts_at(released, exact.region_of_run(), exact.size) - exact.count).astype(np.float64) ** 2

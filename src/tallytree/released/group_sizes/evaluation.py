"""Errors of a release against the truth: for the owner of the data, and as confidential as the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.distance import earth_movers_distance, l1_distance, l2_squared
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, counts_at, counts_on_all_levels
from tallytree.model.notebook import html_table, plain
from tallytree.planning.group_sizes.error_formulas import omniscient_error
from tallytree.privacy.guarantee import budget_of
from tallytree.released.group_sizes.release import Release
from tallytree.released.query_evaluation import WARNING

# Sizes whose errors are shown together, by the first of each class.
SIZE_CLASSES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 50, 100, 1_000, 10_000)


@dataclass(frozen=True)
class LevelErrors:
    """Mean errors over the regions of one level.

    ``emd`` is the earth mover's distance: how many entities must be added to or removed from groups to turn one table into
    the other (kuo2018, Lemma 1). ``count_error`` is the typical error of a single count: the root mean square over the
    sizes that occur in the truth. ``distinct_sizes`` is the mean number of those sizes. ``l1_total`` adds ``l1`` up over the
    regions, as fioretto2021 prints it. ``omniscient`` is the EMD to expect of a method that is told which sizes exist and
    only adds noise to their counts with the level's budget (kuo2018 §6.2): a yardstick, not a bound.
    """

    level: int
    name: str
    regions: int
    emd: float
    l1: float
    l2: float
    count_error: float
    distinct_sizes: float
    l1_total: float
    omniscient: float


@dataclass(frozen=True)
class SizeErrors:
    """Errors of the counts of some sizes on one level (fioretto2021 §11.3: which sizes carry the error).

    Attributes
    ----------
    name, sizes
        The level, and the sizes, such as ``10 to 19``.
    groups
        True number of groups of these sizes, in all regions.
    l1, share
        Σ |count − true count| over regions and sizes, and as a part of the level's.
    mean_error
        The same over the number of counts that are not 0 in both tables.
    """

    name: str
    sizes: str
    groups: int
    l1: int
    share: float
    mean_error: float


LEVEL_HEAD = ("level", "regions", "EMD", "L1", "L2", "one count", "L1 of all", "omniscient EMD")
SIZE_HEAD = ("level", "sizes", "groups", "L1 of all", "share", "one count")


@dataclass(frozen=True)
class Evaluation:
    """Errors of a release per level and by size, and the earth mover's distance of every region; not private."""

    levels: tuple[LevelErrors, ...]
    sizes: tuple[SizeErrors, ...] = ()
    emd: IntArray | None = field(default=None, repr=False, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {
            "warning": WARNING,
            "levels": [asdict(level) for level in self.levels],
            "sizes": [asdict(one) for one in self.sizes],
        }

    def tables(self) -> list[tuple[str, list[str], list[list[object]]]]:
        """Tables to print: title, head and rows."""
        by_size: list[list[object]] = [list(asdict(one).values()) for one in self.sizes]
        return [
            ("Mean error per region", list(LEVEL_HEAD), level_rows(self.levels)),
            ("Errors by group size", list(SIZE_HEAD), by_size),
        ]

    def __repr__(self) -> str:
        return f"Evaluation(NOT PRIVATE; {emd_per_level(self.levels)})"

    def _repr_html_(self) -> str:
        return errors_html("Mean error per region", self.levels, note=WARNING)


def emd_per_level(levels: Sequence[LevelErrors]) -> str:
    """One line about errors: the EMD of every level."""
    return "EMD " + ", ".join(f"{level.name}: {plain(level.emd)}" for level in levels)


def errors_html(caption: str, levels: Sequence[LevelErrors], *, note: str) -> str:
    """Errors per level as a table for notebooks."""
    return html_table(caption, list(LEVEL_HEAD), level_rows(levels), note=note)


def level_rows(levels: Sequence[LevelErrors]) -> list[list[object]]:
    """Errors per level as rows, in the order of ``LEVEL_HEAD``."""
    return [
        [one.name, one.regions, one.emd, one.l1, one.l2, one.count_error, one.l1_total, one.omniscient]
        for one in levels
    ]


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
    noise = [_noise_per_count(release, level) for level in range(hierarchy.n_levels)]
    levels, sizes = [], []
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
                l1_total=float(l1[here].sum()),
                omniscient=float(distinct[here].mean()) * noise[level],
            )
        )
        sizes += _errors_by_size(name, release.counts.regions(here), exact.regions(here))
    return Evaluation(tuple(levels), tuple(sizes), emd)


def _noise_per_count(release: Release, level: int) -> float:
    """Standard deviation of noise on one count with the level's budget: √2/ε, or 1/√(2ρ) (kuo2018 §6.2)."""
    privacy = release.manifest["privacy"]
    symbol = budget_of(privacy).symbol
    spent = float(Fraction(privacy["levels"][level][symbol]))
    if spent == 0:
        return 0.0
    return omniscient_error(1, spent) if symbol == "epsilon" else math.sqrt(1 / (2 * spent))


def _errors_by_size(name: str, released: CountsBySize, exact: CountsBySize) -> list[SizeErrors]:
    """Errors of one level by classes of sizes; classes that occur in neither table are left out."""
    width = max(int(table.size.max(initial=0)) for table in (released, exact)) + 1
    keys = [table.region_of_run() * width + table.size for table in (released, exact)]
    cells, place = np.unique(np.concatenate(keys), return_inverse=True)
    wrong = np.zeros(len(cells), dtype=np.int64)
    np.add.at(wrong, place, np.concatenate([released.count, -exact.count]))
    first = np.array(SIZE_CLASSES)
    n_classes = len(first)
    of_cell = np.searchsorted(first, cells % width, side="right") - 1
    of_truth = np.searchsorted(first, exact.size, side="right") - 1
    l1 = np.bincount(of_cell, weights=np.abs(wrong), minlength=n_classes)
    counted = np.bincount(of_cell, minlength=n_classes)
    groups = np.bincount(of_truth, weights=exact.count, minlength=n_classes)
    ends = [*(first[1:] - 1).tolist(), None]
    return [
        SizeErrors(
            name,
            _class_name(SIZE_CLASSES[i], ends[i]),
            int(groups[i]),
            int(l1[i]),
            float(l1[i] / max(1.0, l1.sum())),
            float(l1[i] / counted[i]),
        )
        for i in np.flatnonzero(counted).tolist()
    ]


def _class_name(first: int, last: int | None) -> str:
    if last is None:
        return f"{first:,} and more"
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _squared_count_errors(released: CountsBySize, exact: CountsBySize) -> FloatArray:
    """Squared error of the released count of every size that occurs in the truth, run by run of the truth."""
    return (counts_at(released, exact.region_of_run(), exact.size) - exact.count).astype(np.float64) ** 2

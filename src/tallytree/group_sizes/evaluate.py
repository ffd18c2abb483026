"""Errors of a release against the truth: for the owner of the data, and as confidential as the
data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.kernels.distance import earth_movers_distance, l1_distance, l2_squared
from tallytree.group_sizes.plan.error_formulas import omniscient_error
from tallytree.group_sizes.release.people import PeopleCounts
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.release.tables import as_released
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.attributes import Attributes
from tallytree.model.classes import SizesUpTo
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.model.lattice import Family
from tallytree.model.notebook import html_table, plain
from tallytree.model.people import NO_PEOPLE
from tallytree.privacy.guarantee import budget_of
from tallytree.releases.query_evaluation import WARNING

# Sizes whose errors are shown together, by the first of each class.
SIZE_CLASSES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 50, 100, 1_000, 10_000)


@dataclass(frozen=True)
class LevelErrors:
    """Mean errors over the regions of one level, ``by`` some attributes of groups.

    ``emd`` is the earth mover's distance: how many entities must be added to or removed from groups
    to turn one table into the other (kuo2018, Lemma 1). ``count_error`` is the typical error of a
    single count: the root mean square over the sizes that occur in the truth. ``distinct_sizes`` is
    the mean number of those sizes. ``l1_total`` adds ``l1`` up over the regions, as fioretto2021
    prints it. ``omniscient`` is the EMD to expect of a method that is told which sizes exist and
    only adds noise to their counts with the level's budget (kuo2018 §6.2): a yardstick, not a
    bound.
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
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class SizeErrors:
    """Errors of the counts of some sizes on one level (fioretto2021 §11.3: which sizes carry the
    error).

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


@dataclass(frozen=True)
class PeopleErrors:
    """Errors of the numbers of entities by class in one table of people.

    Attributes
    ----------
    name, rows
        Level and attributes of groups, and regions by combinations of values; rows without anybody
        are left out.
    mean_error, rms_error
        Of one class of one row: mean absolute error, and root mean square.
    total_error
        Mean absolute error of the entities of a row, all classes together.
    """

    name: str
    rows: int
    mean_error: float
    rms_error: float
    total_error: float


LEVEL_HEAD = ("level", "regions", "EMD", "L1", "L2", "one count", "L1 of all", "omniscient EMD")
SIZE_HEAD = ("level", "sizes", "groups", "L1 of all", "share", "one count")
PEOPLE_HEAD = ("table", "rows", "one class", "root mean square", "all classes")


@dataclass(frozen=True)
class Evaluation:
    """Errors of a release per level and by size, of people by class, and the earth mover's distance
    of every region; not private.
    """

    levels: tuple[LevelErrors, ...]
    sizes: tuple[SizeErrors, ...] = ()
    emd: IntArray | None = field(default=None, repr=False, compare=False)
    people: tuple[PeopleErrors, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {
            "warning": WARNING,
            "levels": [asdict(level) for level in self.levels],
            "sizes": [asdict(one) for one in self.sizes],
            **({"people": [asdict(one) for one in self.people]} if self.people else {}),
        }

    def tables(self) -> list[tuple[str, list[str], list[list[object]]]]:
        """Tables to print: title, head and rows."""
        by_size: list[list[object]] = [list(asdict(one).values()) for one in self.sizes]
        of_people: list[list[object]] = [list(asdict(one).values()) for one in self.people]
        return [
            ("Mean error per region", list(LEVEL_HEAD), level_rows(self.levels)),
            ("Errors by group size", list(SIZE_HEAD), by_size),
            *([("Errors of people by class", list(PEOPLE_HEAD), of_people)] if of_people else []),
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
        [
            one.name,
            one.regions,
            one.emd,
            one.l1,
            one.l2,
            one.count_error,
            one.l1_total,
            one.omniscient,
        ]
        for one in levels
    ]


def evaluate(release: Release, truth: ConfidentialCounts) -> Evaluation:
    """Compare a release with the exact counts, level by level and by attributes. The result is NOT
    private. Under a public bound on sizes, larger groups count as the release counts them.
    """
    hierarchy = release.hierarchy
    if truth.hierarchy != hierarchy:
        raise RequestError(
            f"The release covers {hierarchy!r}, the data {truth.hierarchy!r}; they must be the "
            "same regions."
        )
    if truth.public.classes != release.classes:
        raise RequestError(
            "The release and the data are not counted in the same classes of sizes; name the same "
            "ones."
        )
    if truth.public.attributes != release.attributes:
        raise RequestError(
            f"The release has {_told(release.attributes)}, the data {_told(truth.public.attributes)}; "
            "read them by the same columns "
            "with the same values."
        )
    if truth.public.people != (NO_PEOPLE if release.people is None else release.people.people):
        raise RequestError(
            "The release and the data do not count people by the same classes; name the same ones "
            "(people=, people_by=)."
        )
    found = [_errors(release, truth, family) for family in release.lattice.families]
    emd = [emd for family, (_, emd) in zip(release.lattice.families, found) if not family.margin]
    named = release.size_names
    bound = named.last if isinstance(named, SizesUpTo) else None
    sizes = [_errors_by_size(*tables, bound) for tables in _tables_of_levels(release, truth)]
    return Evaluation(
        tuple(errors for errors, _ in found),
        tuple(each for level in sizes for each in level),
        np.concatenate(emd),
        () if release.people is None else _people_errors(release.people, truth),
    )


def _people_errors(released: PeopleCounts, truth: ConfidentialCounts) -> tuple[PeopleErrors, ...]:
    """Errors of every table of people by all classes."""
    groups = released.people.groups(released.groups)
    cells = released.groups.sums(released.people.family(released.groups), truth.people_cells())
    found = []
    for family in groups.families:
        exact, made = groups.sums(family, cells), groups.sums(family, released.cells)
        kept = (exact.sum(axis=1) > 0) | (made.sum(axis=1) > 0)
        error = (made - exact)[kept].astype(np.float64)
        by = groups.attributes.margin(family.margin).names
        name = groups.hierarchy.level_names[family.level] + (f" by {', '.join(by)}" if by else "")
        rms = float(np.sqrt(np.square(error).mean())) if error.size else 0.0
        found.append(
            PeopleErrors(
                name, int(kept.sum()), _mean(np.abs(error)), rms, _mean(np.abs(error.sum(axis=1)))
            )
        )
    return tuple(found)


def _tables_of_levels(
    release: Release, truth: ConfidentialCounts
) -> Iterator[tuple[str, CountsBySize, CountsBySize]]:
    """Name, released and exact counts of every level, without attributes."""
    for level, name in enumerate(release.hierarchy.level_names):
        released = release.counts.regions(release.hierarchy.level_slice(level))
        yield name, released, as_released(truth.counts_of(Family(level, ())), release.size_names)


def _told(attributes: Attributes) -> str:
    return "; ".join(
        f"{name}: {', '.join(values)}" for name, values in zip(attributes.names, attributes.values)
    ) or ("no attributes")


def _errors(
    release: Release, truth: ConfidentialCounts, family: Family
) -> tuple[LevelErrors, IntArray]:
    """Mean errors of the rows of a family, and the earth mover's distance of each.

    Of tables by attributes, rows that have no groups at all, neither released nor true, are left
    out of the means.
    """
    exact = as_released(truth.counts_of(family), release.size_names)
    if release.margins is None or not family.margin:
        released = release.counts.regions(release.hierarchy.level_slice(family.level))
    else:
        released = release.margins.at(release.lattice.rows_in_margins(family))
    by = release.attributes.margin(family.margin).names
    kept = (
        (exact.n_groups() > 0) | (released.n_groups() > 0)
        if by
        else np.ones(exact.n_regions, dtype=bool)
    )
    emd = earth_movers_distance(released, exact)
    l1 = l1_distance(released, exact)
    squares = _squared_count_errors(released, exact)
    distinct = _mean(np.diff(exact.offsets)[kept])
    name = release.hierarchy.level_names[family.level]
    errors = LevelErrors(
        level=family.level,
        name=f"{name} by {', '.join(by)}" if by else name,
        regions=int(kept.sum()),
        emd=_mean(emd[kept]),
        l1=_mean(l1[kept]),
        l2=_mean(np.sqrt(l2_squared(released, exact))[kept]),
        count_error=float(np.sqrt(squares.mean())) if len(squares) else 0.0,
        distinct_sizes=distinct,
        l1_total=float(l1.sum()),
        omniscient=distinct * _noise_per_count(release, family.level, by),
        by=by,
    )
    return errors, emd


def _mean(values: FloatArray | IntArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _noise_per_count(release: Release, level: int, by: Sequence[str]) -> float:
    """Standard deviation of noise on one count with the level's budget: √2/ε, or 1/√(2ρ) (kuo2018
    §6.2).
    """
    privacy = release.manifest["privacy"]
    symbol = budget_of(privacy).symbol
    measured = [
        fact
        for fact in privacy["levels"]
        if fact["level"] == level and fact.get("by", []) == list(by)
    ]
    spent = float(sum(Fraction(fact[symbol]) for fact in measured))
    if spent == 0:
        return 0.0
    return omniscient_error(1, spent) if symbol == "epsilon" else math.sqrt(1 / (2 * spent))


def _errors_by_size(
    name: str, released: CountsBySize, exact: CountsBySize, bound: int | None
) -> list[SizeErrors]:
    """Errors of one level by classes of sizes; classes that occur in neither table are left out.

    The class with a public bound holds all larger sizes too.
    """
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
    ends: list[int | None] = [*(first[1:] - 1).tolist(), None]
    if bound is not None:
        ends[int(np.searchsorted(first, bound, side="right")) - 1] = None
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
    """Squared error of the released count of every size that occurs in the truth, run by run of the
    truth.
    """
    return (counts_at(released, exact.region_of_run(), exact.size) - exact.count).astype(
        np.float64
    ) ** 2

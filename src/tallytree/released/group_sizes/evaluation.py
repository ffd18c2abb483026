"""Errors of a release against the truth: for the owner of the data, and as confidential as the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.distance import earth_movers_distance, l1_distance, l2_squared
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.attributes import Attributes
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, counts_at
from tallytree.model.lattice import Family
from tallytree.model.notebook import html_table, plain
from tallytree.released.group_sizes.release import Release

WARNING = "not private: computed from the confidential data; do not publish"


@dataclass(frozen=True)
class LevelErrors:
    """Mean errors over the regions of one level, ``by`` some attributes of groups.

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
    by: tuple[str, ...] = ()


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
    """Compare a release with the exact counts, level by level and by attributes. The result is NOT private."""
    hierarchy = release.hierarchy
    if truth.hierarchy != hierarchy:
        raise RequestError(
            f"The release covers {hierarchy!r}, the data {truth.hierarchy!r}; they must be the same regions."
        )
    if truth.classes != release.classes:
        raise RequestError("The release and the data are not counted in the same classes of sizes; name the same ones.")
    if truth.attributes != release.attributes:
        raise RequestError(
            f"The release has {_told(release.attributes)}, the data {_told(truth.attributes)}; read them by the same columns "
            "with the same values."
        )
    found = [_errors(release, truth, family) for family in release.lattice.families]
    emd = [emd for family, (_, emd) in zip(release.lattice.families, found) if not family.margin]
    return Evaluation(tuple(errors for errors, _ in found), np.concatenate(emd))


def _told(attributes: Attributes) -> str:
    return "; ".join(f"{name}: {', '.join(values)}" for name, values in zip(attributes.names, attributes.values)) or (
        "no attributes"
    )


def _errors(release: Release, truth: ConfidentialCounts, family: Family) -> tuple[LevelErrors, IntArray]:
    """Mean errors of the rows of a family, and the earth mover's distance of each.

    Of tables by attributes, rows that have no groups at all, neither released nor true, are left out of the means.
    """
    exact = truth.counts_of(family)
    if release.margins is None or not family.margin:
        released = release.counts.regions(release.hierarchy.level_slice(family.level))
    else:
        released = release.margins.at(release.lattice.rows_in_margins(family))
    by = release.attributes.margin(family.margin).names
    kept = (exact.n_groups() > 0) | (released.n_groups() > 0) if by else np.ones(exact.n_regions, dtype=bool)
    emd = earth_movers_distance(released, exact)
    squares = _squared_count_errors(released, exact)
    name = release.hierarchy.level_names[family.level]
    errors = LevelErrors(
        level=family.level,
        name=f"{name} by {', '.join(by)}" if by else name,
        regions=int(kept.sum()),
        emd=_mean(emd[kept]),
        l1=_mean(l1_distance(released, exact)[kept]),
        l2=_mean(np.sqrt(l2_squared(released, exact))[kept]),
        count_error=float(np.sqrt(squares.mean())) if len(squares) else 0.0,
        distinct_sizes=_mean(np.diff(exact.offsets)[kept]),
        by=by,
    )
    return errors, emd


def _mean(values: FloatArray | IntArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _squared_count_errors(released: CountsBySize, exact: CountsBySize) -> FloatArray:
    """Squared error of the released count of every size that occurs in the truth, run by run of the truth."""
    return (counts_at(released, exact.region_of_run(), exact.size) - exact.count).astype(np.float64) ** 2

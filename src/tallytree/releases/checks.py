"""Checks that every release must pass, named so that a user can read which one failed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.errors import VerificationError
from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize, order_of_runs, sum_over_regions
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.notebook import html_table


@dataclass(frozen=True)
class Check:
    """One check: what should hold, whether it does, and where it does not."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """The checks of a release; true when all passed. ``notes`` say what no check can tell."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        failed = [check.name for check in self.checks if not check.passed]
        return f"Verification({len(self.checks)} checks, {'FAILED: ' + '; '.join(failed) if failed else 'all passed'})"

    def _repr_html_(self) -> str:
        rows = [
            ["ok" if check.passed else "FAILED", check.name, check.detail] for check in self.checks
        ]
        return html_table("Verification", ["", "check", "where"], rows, n_rows=len(rows))

    def raise_if_failed(self) -> None:
        """Raise VerificationError naming every check that failed."""
        failures = tuple(
            f"{check.name}: {check.detail}" for check in self.checks if not check.passed
        )
        if failures:
            raise VerificationError(
                "The release does not hold what it promises. " + " ".join(failures), failures
            )


def check_counts(
    hierarchy: Hierarchy, counts: CountsBySize, n_groups: IntArray, *, all_totals: bool
) -> tuple[Check, ...]:
    """Group totals and tree sums. Whole and nonnegative numbers are checked when ``CountsBySize``
    is made.

    ``n_groups`` holds the total that each region must have; with ``all_totals`` False only the
    root's is promised.
    """
    wrong = np.flatnonzero(counts.n_groups() != n_groups)
    if not all_totals:
        wrong = wrong[wrong == 0]
    totals = Check("group totals hold", not len(wrong), where_wrong(hierarchy, wrong))
    return (
        totals,
        *(_check_sums(hierarchy, counts, level) for level in range(1, hierarchy.n_levels)),
    )


def check_margins(
    lattice: Lattice, margins: CountsBySize, cell_groups: IntArray
) -> tuple[Check, ...]:
    """That every table by attributes is the sum of the finest one, whose numbers of groups hold;
    slots by region.
    """
    cells = margins.at(lattice.rows_in_margins(lattice.finest))
    wrong = np.flatnonzero(cells.n_groups() != cell_groups) // lattice.attributes.n_cells
    leaves = np.unique(wrong) + int(lattice.hierarchy.level_starts[-2])
    totals = Check(
        "group totals by attributes hold", not len(wrong), where_wrong(lattice.hierarchy, leaves)
    )
    apart = np.unique(differing_regions(lattice.margins(cells), margins) // lattice.n_slots)
    names = ", ".join(lattice.attributes.names)
    sums = Check(
        f"every table by {names} adds up", not len(apart), where_wrong(lattice.hierarchy, apart)
    )
    return totals, sums


def _check_sums(hierarchy: Hierarchy, counts: CountsBySize, level: int) -> Check:
    above = hierarchy.level_slice(level - 1)
    parents = hierarchy.parent[hierarchy.level_slice(level)] - above.start
    sums = sum_over_regions(
        counts.regions(hierarchy.level_slice(level)), parents, hierarchy.level_size(level - 1)
    )
    wrong = differing_regions(sums, counts.regions(above)) + above.start
    name = f"{hierarchy.level_names[level]} adds up to {hierarchy.level_names[level - 1]}"
    return Check(name, not len(wrong), where_wrong(hierarchy, wrong))


def differing_regions(a: CountsBySize, b: CountsBySize) -> IntArray:
    """Regions in which two tables differ, by canceling one against the other."""
    if all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("offsets", "size", "count")
    ):
        return np.zeros(0, dtype=np.int64)
    region = np.concatenate([a.region_of_run(), b.region_of_run()])
    size = np.concatenate([a.size, b.size])
    count = np.concatenate([a.count, -b.count])
    order = order_of_runs(region, size)
    region, size, count = region[order], size[order], count[order]
    opens = np.ones(len(region), dtype=bool)
    opens[1:] = (region[1:] != region[:-1]) | (size[1:] != size[:-1])
    first = np.flatnonzero(opens)
    if not len(first):
        return first
    return np.unique(region[first][np.add.reduceat(count, first) != 0])


def where_wrong(hierarchy: Hierarchy, regions: IntArray) -> str:
    """Some of the regions in which a check failed, and how many; nothing where it passed."""
    if not len(regions):
        return ""
    shown = ", ".join(hierarchy.paths[regions[:3]])
    return f"not in {shown}{' …' if len(regions) > 3 else ''} ({len(regions):,} of {hierarchy.n_regions:,} regions)"

"""From independent estimates per level to leaves that all levels can be added up from (kuo2018
Algorithm 1, §6.2.2).

In: one :class:`Estimate` per level. Out: counts by size of the leaves; the levels above are their
sums, so that children add up to parents by construction (back-substitution, Algorithm 1 lines 14 to
15).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.estimate.runs import Estimate
from tallytree.group_sizes.kernels.matching import Runs, match_children
from tallytree.model.arrays import offsets_from_lengths
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.choices import Merge


def match_top_down(
    hierarchy: Hierarchy, estimates: Sequence[Estimate], *, merge: Merge = "weighted"
) -> CountsBySize:
    """Counts by size of the leaves, from the root down: match each region with its children, merge,
    go on below.

    Departure from the printed Algorithm 1: line 11 matches the *updated* region with its children,
    as §5.3 says in words.

    Parameters
    ----------
    hierarchy
        The regions.
    estimates
        One per level, the root first; every region has as many groups as its children together.
    merge
        ``"weighted"`` by inverse variance (eq. 5 and 6), or the plain ``"average"``.
    """
    if len(estimates) != hierarchy.n_levels:
        raise RequestError(
            f"Matching needs one estimate per level, {hierarchy.n_levels}, got {len(estimates)}."
        )
    return counts_of(match_runs_down(hierarchy, estimates, merge=merge))


def match_runs_down(hierarchy: Hierarchy, estimates: Sequence[Estimate], *, merge: Merge) -> Runs:
    """Matched groups of the lowest level that has an estimate, with their variances, ready to go on
    below.
    """
    if merge not in ("weighted", "average"):
        raise RequestError(f"Unknown merge {merge!r}. Accepted: 'weighted', 'average'.")
    sizes = [hierarchy.level_size(level) for level in range(len(estimates))]
    if not sizes or [estimate.n_regions for estimate in estimates] != sizes:
        raise RequestError(f"Matching needs one estimate per level, with {sizes} regions.")
    runs = runs_of(estimates[0])
    for level in range(1, len(estimates)):
        above = hierarchy.level_slice(level - 1)
        child_starts = (
            hierarchy.child_starts[above.start : above.stop + 1] - hierarchy.level_starts[level]
        )
        runs = match_children(
            runs, runs_of(estimates[level]), child_starts, weighted=merge == "weighted"
        )
    return runs


def bottom_up(leaves: Estimate) -> CountsBySize:
    """Counts by size of the leaves as estimated: the baseline that spends the whole budget on them
    (kuo2018 §6.2.2).
    """
    return leaves.counts()


def runs_of(estimate: Estimate) -> Runs:
    """The runs of an estimate as the matching takes them."""
    return Runs(estimate.offsets, estimate.size, estimate.count, estimate.variance)


def counts_of(runs: Runs) -> CountsBySize:
    """Forget the variances: equal sizes, which are neighbours, become one run."""
    n_regions = len(runs.offsets) - 1
    region = np.repeat(np.arange(n_regions), np.diff(runs.offsets))
    opens = np.ones(len(region), dtype=bool)
    opens[1:] = (region[1:] != region[:-1]) | (runs.size[1:] != runs.size[:-1])
    start = np.flatnonzero(opens)
    count = np.add.reduceat(runs.groups, start) if len(start) else runs.groups
    lengths = np.bincount(region[start], minlength=n_regions)
    return CountsBySize(offsets_from_lengths(lengths), runs.size[start], count)

"""What the tables and figures of kuo2018 share: data sets, how much is run, and errors of seeded
runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.group_sizes.kernels.distance import earth_movers_distance
from tallytree.group_sizes.publish import release
from tallytree.group_sizes.release.release import Release
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.papers import datasets
from tallytree.papers.cells import mean_of_runs
from tallytree.papers.housing import housing_counts

UNIT = "EMD per region"
EPSILONS_PER_LEVEL = (0.1, 0.5, 1.0)
# The paper's K (§6.1), and its three states with their name.
MAX_SIZE = 100_000
WEST_COAST = ("California", "Oregon", "Washington")
NOT_AT_HAND = "these data are not at hand"


@dataclass(frozen=True)
class Scale:
    """How much to run: the paper averages 10 runs and takes K = 100,000.

    ``max_size`` is K for the views that need one at every county; at a root alone, and on taxis,
    K is always the paper's.
    """

    runs: int
    max_size: int
    households: int
    epsilons: tuple[float, ...]


Sets = dict[str, ConfidentialCounts]


def data_sets(data: Path | None, scale: Scale) -> Sets:
    """The data sets that are at hand, by name."""
    if data is None:
        return {"housing": housing_counts(scale.households)}
    return {
        "housing": datasets.county_housing(data),
        "Hawaiian": datasets.hawaiian(data),
        "taxi": datasets.taxi(data),
    }


def max_size_of(name: str, counts: ConfidentialCounts, scale: Scale) -> int:
    """K for a data set."""
    return MAX_SIZE if name == "taxi" or counts.hierarchy.n_levels == 1 else scale.max_size


def releases(
    name: str, counts: ConfidentialCounts, scale: Scale, **options: Any
) -> Iterator[Release]:
    """Seeded releases, one per run."""
    max_size = max_size_of(name, counts, scale)
    for seed in range(scale.runs):
        yield release(counts, max_size=max_size, insecure_seed=seed, **options)


def errors_of_levels(made: Release, counts: ConfidentialCounts) -> list[float]:
    """Mean earth mover's distance per region of each level."""
    distances = earth_movers_distance(made.counts, counts.counts_on_levels)
    tree = counts.hierarchy
    return [float(distances[tree.level_slice(level)].mean()) for level in range(tree.n_levels)]


def mean_errors(
    name: str, counts: ConfidentialCounts, scale: Scale, **options: Any
) -> list[tuple[float, float | None]]:
    """Mean error of each level over seeded runs, and one standard deviation of it."""
    runs = [errors_of_levels(made, counts) for made in releases(name, counts, scale, **options)]
    return [mean_of_runs(level) for level in zip(*runs)]


def with_levels(sets: Sets, n_levels: int) -> Iterator[tuple[str, ConfidentialCounts]]:
    """Data sets with at least so many levels, those below cut off; three levels of a country are
    those of its west coast (§6.1).
    """
    for name, counts in sets.items():
        if counts.hierarchy.n_levels >= n_levels:
            whole = n_levels < 3 or not set(WEST_COAST) <= set(counts.hierarchy.labels.tolist())
            yield (
                (name, upper_levels(counts, n_levels))
                if whole
                else (f"{name}, West Coast", upper_levels(west_coast(counts), n_levels))
            )


def upper_levels(counts: ConfidentialCounts, n_levels: int) -> ConfidentialCounts:
    """The same groups with the levels below ``n_levels`` cut off."""
    tree = counts.hierarchy
    if n_levels >= tree.n_levels:
        return counts
    n_regions = int(tree.level_starts[n_levels])
    cut = Hierarchy(
        tree.level_names[:n_levels],
        tree.level_starts[: n_levels + 1].copy(),
        tree.parent[:n_regions].copy(),
        tree.labels[:n_regions].copy(),
    )
    target = np.repeat(
        np.arange(cut.n_leaves), (tree.leaf_ends - tree.leaf_starts)[tree.level_slice(n_levels - 1)]
    )
    leaf_counts = sum_over_regions(counts.leaf_counts, target, cut.n_leaves)
    return _over(cut, counts, leaf_counts)


def west_coast(counts: ConfidentialCounts) -> ConfidentialCounts:
    """The groups of three states of a country with counties: West Coast, state, county."""
    tree = counts.hierarchy
    states = np.flatnonzero(np.isin(tree.labels, WEST_COAST) & (tree.level_of == 1))
    leaves = np.concatenate(
        [np.arange(tree.leaf_starts[state], tree.leaf_ends[state]) for state in states]
    )
    first_leaf = int(tree.level_starts[2])
    paths = [
        (str(tree.labels[tree.parent[first_leaf + leaf]]), str(tree.labels[first_leaf + leaf]))
        for leaf in leaves.tolist()
    ]
    coast = hierarchy_from_leaves(list(tree.level_names[1:]), paths, root="West Coast")
    return _over(coast, counts, counts.leaf_counts.at(leaves))


def _over(tree: Hierarchy, counts: ConfidentialCounts, leaf_counts: Any) -> ConfidentialCounts:
    facts = PublicFacts(tree, unit=counts.public.unit, group=counts.public.group)
    return ConfidentialCounts(facts, leaf_counts, leaf_counts.n_groups())

"""A US-like tree down to blocks, with dials for every dimension. Synthetic: nothing in it is real."""

from dataclasses import dataclass

import numpy as np

from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.hierarchy import Hierarchy

LEVEL_NAMES = ("US", "state", "county", "tract", "block group", "block")
PREFIXES = ("", "s", "c", "t", "g", "b")
# Shares of households with 1 … 6 people; those with 7 and more fall by the ratio of the last two.
SIZE_SHARES = np.array([0.2674, 0.3275, 0.1607, 0.1338, 0.0646, 0.0264])
TAIL_RATIO = 0.56


@dataclass(frozen=True)
class Dials:
    """Regions per level (the root first), groups, largest ordinary size, group quarters per million groups, outliers."""

    regions: tuple[int, ...] = (1, 52, 3_144, 73_000, 220_000, 8_100_000)
    groups: int = 117_000_000
    distinct_sizes: int = 30
    quarters_per_million: int = 1_500
    outliers: int = 50
    largest: int = 10_000

    def fewer_blocks(self, factor: int) -> "Dials":
        """The same country with fewer blocks, and as many times fewer households."""
        regions = (*self.regions[:-1], max(self.regions[-1] // factor, self.regions[-2]))
        return Dials(regions, self.groups // factor, self.distinct_sizes)


def scale_counts(dials: Dials, seed: int = 0) -> ConfidentialCounts:
    """Counts by size per block: blocks of very different population, group quarters in some, a few outliers."""
    rng = np.random.default_rng(seed)
    hierarchy = tree(dials, rng)
    n_leaves = hierarchy.n_leaves
    weights = rng.lognormal(sigma=1.2, size=n_leaves)
    per_leaf = rng.poisson(weights * (dials.groups / weights.sum()))
    shares = size_shares(dials.distinct_sizes)
    parts = []
    left, rest = per_leaf.copy(), 1.0
    for size, share in enumerate(shares, start=1):
        here = rng.binomial(left, min(1.0, share / rest)) if size < len(shares) else left
        filled = np.flatnonzero(here)
        parts.append((filled, np.full(len(filled), size), here[filled]))
        left, rest = left - here, rest - share
    n_quarters = dials.groups * dials.quarters_per_million // 1_000_000
    for number, sizes in (
        (n_quarters, np.maximum(8, rng.lognormal(3.2, 1.0, size=n_quarters)).astype(np.int64)),
        (dials.outliers, rng.integers(1, dials.largest, size=dials.outliers, endpoint=True)),
    ):
        parts.append((rng.integers(0, n_leaves, size=number), np.minimum(sizes, dials.largest), np.ones(number)))
    region, size, count = (np.concatenate(column).astype(np.int64) for column in zip(*parts))
    leaf_counts = counts_from_runs(region, size, count, n_leaves)
    return ConfidentialCounts(hierarchy, leaf_counts, leaf_counts.n_groups(), entity="person", group="household")


def size_shares(n_sizes: int) -> np.ndarray:
    tail = SIZE_SHARES[-1] * TAIL_RATIO ** np.arange(1, max(n_sizes - 5, 1))
    shares = np.concatenate([SIZE_SHARES, tail])[:n_sizes]
    return shares / shares.sum()


def tree(dials: Dials, rng: np.random.Generator) -> Hierarchy:
    """Children spread unevenly over the regions above, at least one for each."""
    starts = np.concatenate(([0], np.cumsum(dials.regions)))
    parent = [np.array([-1])]
    for level in range(1, len(dials.regions)):
        above, here = dials.regions[level - 1], dials.regions[level]
        extra = rng.multinomial(here - above, rng.dirichlet(np.full(above, 2.0)))
        parent.append(starts[level - 1] + np.repeat(np.arange(above), 1 + extra))
    labels = [np.array(["US"], dtype=object)]
    for level in range(1, len(dials.regions)):
        width = len(str(dials.regions[level]))
        labels.append(np.array([f"{PREFIXES[level]}{i:0{width}d}" for i in range(dials.regions[level])], dtype=object))
    return Hierarchy(LEVEL_NAMES[: len(dials.regions)], starts, np.concatenate(parent), np.concatenate(labels))

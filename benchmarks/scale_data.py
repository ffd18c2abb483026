"""A US-like tree down to blocks, with dials for every dimension. Synthetic: nothing in it is real.

``python -m benchmarks.scale_data DIR`` writes it as (labels, size, count) rows, ``--people`` also
as one row per person, some 300 million of them; ``--fewer 10`` takes a tenth of the blocks and
households, ``--smaller 10`` also a tenth of the regions between states and blocks.
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.unit import Unit

LEVEL_NAMES = ("US", "state", "county", "tract", "block group", "block")
PREFIXES = ("", "s", "c", "t", "g", "b")
# Shares of households with 1 … 6 people; those with 7 and more fall by the ratio of the last two.
SIZE_SHARES = np.array([0.2674, 0.3275, 0.1607, 0.1338, 0.0646, 0.0264])
TAIL_RATIO = 0.56


@dataclass(frozen=True)
class Dials:
    """Regions per level (the root first), groups, largest ordinary size, group quarters per million
    groups, outliers.
    """

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

    def smaller(self, factor: int) -> "Dials":
        """A country with as many times fewer households and regions of all levels below the states."""
        regions = list(self.regions[:2])
        for here in self.regions[2:]:
            regions.append(max(here // factor, regions[-1]))
        return Dials(tuple(regions), self.groups // factor, self.distinct_sizes)


def scale_counts(dials: Dials, seed: int = 0) -> ConfidentialCounts:
    """Counts by size per block: blocks of very different population, group quarters in some, a few
    outliers.
    """
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
        parts.append(
            (
                rng.integers(0, n_leaves, size=number),
                np.minimum(sizes, dials.largest),
                np.ones(number),
            )
        )
    region, size, count = (np.concatenate(column).astype(np.int64) for column in zip(*parts))
    leaf_counts = counts_from_runs(region, size, count, n_leaves)
    return ConfidentialCounts(
        PublicFacts(hierarchy, unit=Unit("person"), group="household"),
        leaf_counts,
        leaf_counts.n_groups(),
    )


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
        labels.append(
            np.array(
                [f"{PREFIXES[level]}{i:0{width}d}" for i in range(dials.regions[level])],
                dtype=object,
            )
        )
    return Hierarchy(
        LEVEL_NAMES[: len(dials.regions)], starts, np.concatenate(parent), np.concatenate(labels)
    )


def label_columns(hierarchy: Hierarchy, leaf: np.ndarray) -> dict[str, pa.DictionaryArray]:
    """Labels of some leaves on every level below the root: ascending leaves, so that a dictionary
    holds neighbours only.
    """
    columns = {}
    region = leaf + hierarchy.level_slice(hierarchy.n_levels - 1).start
    for level in range(hierarchy.n_levels - 1, 0, -1):
        opens = np.flatnonzero(np.diff(region, prepend=-1))
        codes = np.repeat(np.arange(len(opens), dtype=np.int32), np.diff(opens, append=len(region)))
        names = pa.array(hierarchy.labels[region[opens]], pa.string())
        columns[hierarchy.level_names[level]] = pa.DictionaryArray.from_arrays(codes, names)
        region = hierarchy.parent[region]
    return dict(reversed(columns.items()))


def write_counts(counts: ConfidentialCounts, file: Path) -> int:
    """One row per region and size, with the number of groups; returns the number of rows."""
    runs = counts.leaf_counts
    labels = label_columns(counts.hierarchy, runs.region_of_run())
    pq.write_table(
        pa.table({**labels, "size": runs.size, "count": runs.count}), file, compression="zstd"
    )
    return len(runs.size)


def write_people(counts: ConfidentialCounts, file: Path) -> int:
    """One row per person with the number of the household, region by region as in a census file;
    returns the number of rows.
    """
    parts = people(counts)
    first = next(parts)
    n_rows = len(first)
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for part in parts:
            writer.write_table(part)
            n_rows += len(part)
    return n_rows


def people(counts: ConfidentialCounts, rows_at_once: int = 2_000_000) -> Iterator[pa.Table]:
    """The same in tables of about so many rows, households whole. Never more than one of them is in
    memory.
    """
    runs = counts.leaf_counts
    ends = np.cumsum(runs.size * runs.count)
    bounds = np.unique(
        np.searchsorted(ends, np.arange(0, ends[-1] + rows_at_once, rows_at_once)).clip(
            0, len(ends)
        )
    )
    region = runs.region_of_run()
    n_households = 0
    for start, stop in itertools.pairwise(bounds):
        size = np.repeat(runs.size[start:stop], runs.count[start:stop])
        leaf = np.repeat(np.repeat(region[start:stop], runs.count[start:stop]), size)
        household = np.repeat(n_households + np.arange(len(size)), size)
        n_households += len(size)
        yield pa.table({"household": household, **label_columns(counts.hierarchy, leaf)})


def command() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", action="store_true", help="write one row per person too")
    parser.add_argument(
        "--fewer", type=int, default=1, help="so many times fewer blocks and households"
    )
    parser.add_argument(
        "--smaller", type=int, default=1, help="so many times fewer regions and households"
    )
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    dials = Dials() if asked.smaller == 1 else Dials().smaller(asked.smaller)
    counts = scale_counts(dials if asked.fewer == 1 else dials.fewer_blocks(asked.fewer))
    print(f"{write_counts(counts, asked.folder / 'counts.parquet'):,} rows of counts")
    if asked.people:
        print(f"{write_people(counts, asked.folder / 'people.parquet'):,} people")


if __name__ == "__main__":
    command()

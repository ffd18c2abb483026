"""A US-like housing data set to try things on, made as kuo2018 §6.1 describes. Synthetic: no
household in it is real.

Household sizes per state follow the published national shares with some variation, sizes above 6
fall by the ratio of 7-person to 6-person households, 50 outliers stand for dormitories and prisons,
and groups are spread over the counties of a state in proportion to county size. NumPy's generator
is used here because nothing confidential is involved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit

# Thousands of households and number of counties per state (2010 Census, rounded). Puerto Rico's 78
# municipios are pooled, so that there are 3,144 counties in all, as in the papers.
STATES = {
    "Alabama": (1884, 67), "Alaska": (258, 29), "Arizona": (2381, 15), "Arkansas": (1147, 75), "California": (12577, 58),
    "Colorado": (1973, 64), "Connecticut": (1371, 8), "Delaware": (342, 3), "District of Columbia": (267, 1),
    "Florida": (7421, 67), "Georgia": (3586, 159), "Hawaii": (455, 5), "Idaho": (579, 44), "Illinois": (4837, 102),
    "Indiana": (2502, 92), "Iowa": (1222, 99), "Kansas": (1112, 105), "Kentucky": (1720, 120), "Louisiana": (1728, 64),
    "Maine": (557, 16), "Maryland": (2156, 24), "Massachusetts": (2547, 14), "Michigan": (3873, 83), "Minnesota": (2087, 87),
    "Mississippi": (1116, 82), "Missouri": (2376, 115), "Montana": (410, 56), "Nebraska": (721, 93), "Nevada": (1006, 17),
    "New Hampshire": (519, 10), "New Jersey": (3214, 21), "New Mexico": (791, 33), "New York": (7318, 62),
    "North Carolina": (3745, 100), "North Dakota": (281, 53), "Ohio": (4603, 88), "Oklahoma": (1460, 77), "Oregon": (1519, 36),
    "Pennsylvania": (5019, 67), "Puerto Rico": (1377, 1), "Rhode Island": (414, 5), "South Carolina": (1801, 46),
    "South Dakota": (322, 66), "Tennessee": (2494, 95), "Texas": (8923, 254), "Utah": (878, 29), "Vermont": (256, 14),
    "Virginia": (3056, 134), "Washington": (2620, 39), "West Virginia": (764, 55), "Wisconsin": (2280, 72),
    "Wyoming": (227, 23),
}  # fmt: skip
# Shares of households with 1 … 6 and with 7 or more people, United States 2010.
SIZE_SHARES = np.array([0.2674, 0.3275, 0.1607, 0.1338, 0.0646, 0.0264, 0.0196])
N_OUTLIERS = 50
LARGEST_OUTLIER = 10_000


def housing_counts(
    n_households: int = 117_000_000,
    seed: int = 0,
    *,
    outliers: tuple[int, int] = (1, LARGEST_OUTLIER),
) -> ConfidentialCounts:
    """Counts by size for every county of a US-like country: 1 / 52 / 3,144 regions; sizes of
    outliers from a range.
    """
    rng = np.random.default_rng(seed)
    leaves = [
        (state, f"{state} county {i + 1:03d}") for state, (_, n) in STATES.items() for i in range(n)
    ]
    weights = np.array([households for households, _ in STATES.values()], dtype=float)
    per_state = rng.multinomial(n_households, weights / weights.sum())
    outlier_state = rng.choice(len(STATES), size=N_OUTLIERS, p=weights / weights.sum())
    outlier_size = rng.integers(*outliers, size=N_OUTLIERS, endpoint=True)
    parts = []
    first_leaf = 0
    for state, (_, n_counties) in enumerate(STATES.values()):
        sizes, counts = _state_sizes(rng, int(per_state[state]))
        sizes = np.concatenate([sizes, outlier_size[outlier_state == state]])
        counts = np.concatenate(
            [counts, np.ones(int((outlier_state == state).sum()), dtype=np.int64)]
        )
        shares = rng.lognormal(sigma=1.3, size=n_counties)
        spread = rng.multinomial(counts, shares / shares.sum())
        run, county = np.nonzero(spread)
        parts.append((first_leaf + county, sizes[run], spread[run, county]))
        first_leaf += n_counties
    region, size, count = (np.concatenate(column).astype(np.int64) for column in zip(*parts))
    counts_by_size = counts_from_runs(region, size, count, len(leaves))
    return ConfidentialCounts(
        PublicFacts(
            hierarchy_from_leaves(["state", "county"], leaves, root="US"),
            groups_note="synthetic data: the generator's own totals",
            unit=Unit("person"),
            group="household",
        ),
        leaf_counts=counts_by_size,
        n_groups=counts_by_size.n_groups(),
    )


def _state_sizes(rng: np.random.Generator, n_households: int) -> tuple[IntArray, IntArray]:
    shares = SIZE_SHARES * rng.lognormal(sigma=0.05, size=len(SIZE_SHARES))
    counts = list(rng.multinomial(n_households, shares / shares.sum()))
    # The last bin holds 7 and more; spread it so that each size keeps the ratio r to the one
    # before, in expectation: of R households with 7 or more, R (1 − r) have 7, and that is r times
    # those with 6. In a small sample nobody may have 6; the ratio then stays below 1, so that the
    # tail ends.
    ratio = min(counts[6] / max(counts[5] + counts[6], 1), 0.9)
    remaining = counts.pop()
    while remaining > 0:
        leaving = int(rng.binomial(remaining, 1 - ratio))
        counts.append(leaving)
        remaining -= leaving
    return np.arange(1, len(counts) + 1), np.array(counts, dtype=np.int64)


def write_people(counts: ConfidentialCounts, people: Path, households: Path) -> int:
    """Write one row per person and one per household as Parquet; returns the number of people."""
    hierarchy = counts.hierarchy
    schemas = {
        people: pa.schema(
            [
                ("person", pa.int64()),
                ("household", pa.int64()),
                ("state", pa.string()),
                ("county", pa.string()),
            ]
        ),
        households: pa.schema(
            [("household", pa.int64()), ("state", pa.string()), ("county", pa.string())]
        ),
    }
    n_people = n_households = 0
    with (
        pq.ParquetWriter(people, schemas[people]) as to_people,
        pq.ParquetWriter(households, schemas[households]) as to_households,
    ):
        for start, stop in _state_slices(counts):
            labels = hierarchy.labels[hierarchy.level_slice(2)][start:stop]
            state = str(hierarchy.labels[hierarchy.parent[hierarchy.level_starts[2] + start]])
            sizes, county = _shuffled_groups(counts.leaf_counts, start, stop)
            household = n_households + np.arange(len(sizes))
            county_of = pa.array(labels, pa.string()).take(pa.array(county))
            states = pa.array([state], pa.string())
            to_households.write_batch(
                pa.record_batch(
                    [pa.array(household), _repeat(states, len(sizes)), county_of],
                    schema=schemas[households],
                )
            )
            owner = np.repeat(np.arange(len(sizes)), sizes)
            to_people.write_batch(
                pa.record_batch(
                    [
                        pa.array(n_people + np.arange(len(owner))),
                        pa.array(household[owner]),
                        _repeat(states, len(owner)),
                        county_of.take(pa.array(owner)),
                    ],
                    schema=schemas[people],
                )
            )
            n_people += len(owner)
            n_households += len(sizes)
    return n_people


def _state_slices(counts: ConfidentialCounts) -> Iterator[tuple[int, int]]:
    hierarchy = counts.hierarchy
    for state in range(*hierarchy.level_starts[1:3]):
        yield int(hierarchy.leaf_starts[state]), int(hierarchy.leaf_ends[state])


def _shuffled_groups(leaf_counts: CountsBySize, start: int, stop: int) -> tuple[IntArray, IntArray]:
    """Size and county of every household of a state, in an order that tells nothing."""
    here = leaf_counts.regions(slice(start, stop))
    sizes = np.repeat(here.size, here.count)
    county = np.repeat(here.region_of_run(), here.count)
    order = np.random.default_rng(start).permutation(len(sizes))
    return sizes[order], county[order]


def _repeat(value: pa.Array, times: int) -> pa.Array:
    return value.take(pa.array(np.zeros(times, dtype=np.int64)))

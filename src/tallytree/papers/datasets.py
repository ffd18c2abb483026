"""Real data sets that the papers used, read from a folder that the user has; none is part of
tallytree.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np

from tallytree.errors import StorageError
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_dense, counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit
from tallytree.papers.housing import LARGEST_OUTLIER, N_OUTLIERS


def taxi(data: Path) -> ConfidentialCounts:
    """kuo2018's taxi file: taxis by number of pickups, Manhattan / 2 / 28 neighbourhoods."""
    file = _file(data, "kuo2018_coco/kuo2018_taxi2013.npz")
    with np.load(file) as arrays:
        table, parent = arrays["leaf_hist"].astype(np.int64), arrays["parent"]
    leaves = [(("lower", "upper")[half], f"neighbourhood {i:02d}") for i, half in enumerate(parent)]
    counts = counts_from_dense(table)
    return ConfidentialCounts(
        PublicFacts(
            hierarchy_from_leaves(["half", "neighbourhood"], leaves, root="Manhattan"),
            unit=Unit("trip"),
            group="taxi",
        ),
        counts,
        counts.n_groups(),
    )


def hawaiian(data: Path) -> ConfidentialCounts:
    """kuo2018's root histogram of blocks by number of native Hawaiians, blocks with none included."""
    with np.load(_file(data, "kuo2018_coco/kuo2018_hawaiian_nation.npz")) as arrays:
        counts = counts_from_dense(arrays["hist"].astype(np.int64)[None, :])
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves([], [()], root="US"), unit=Unit("person"), group="block"),
        counts,
        counts.n_groups(),
    )


def county_housing(
    data: Path, seed: int = 0, *, outliers: tuple[int, int] = (1, LARGEST_OUTLIER)
) -> ConfidentialCounts:
    """Households by size of 3,108 US counties (2010 Census), with a SYNTHETIC tail above six
    people.

    The published table ends with "7 or more", and the people in that class are known; its
    households get sizes 7 + a geometric number with that mean. As in kuo2018 §6.1, 50 outliers are
    added, with up to 10,000 people unless told.
    """
    rng = np.random.default_rng(seed)
    with gzip.open(
        _file(data, "us2010_h13_county/us2010_h13_county.csv.gz"),
        "rt",
        newline="",
        encoding="utf-8",
    ) as file:
        rows = sorted(csv.DictReader(file), key=lambda row: (row["state"], row["fips"]))
    leaves = [(row["state"], row["fips"]) for row in rows]
    region, size, count = [], [], []
    for leaf, row in enumerate(rows):
        households = [int(row[f"hh{s}"]) for s in range(1, 7)]
        n_large, people = int(row["hh7plus"]), int(row["persons_in_hh7plus"])
        excess = max(people / n_large - 7, 0.0) if n_large else 0.0
        tail = 6 + rng.geometric(1 / (1 + excess), size=n_large)
        tail_size, tail_count = np.unique(tail, return_counts=True)
        region.append(np.full(6 + len(tail_size), leaf))
        size.append(np.concatenate([np.arange(1, 7), tail_size]))
        count.append(np.concatenate([households, tail_count]))
    region.append(rng.integers(0, len(rows), size=N_OUTLIERS))
    size.append(rng.integers(*outliers, size=N_OUTLIERS, endpoint=True))
    count.append(np.ones(N_OUTLIERS, dtype=np.int64))
    region_of_run, sizes, n_groups = (
        np.concatenate(column).astype(np.int64) for column in (region, size, count)
    )
    counts = counts_from_runs(region_of_run, sizes, n_groups, len(leaves))
    return ConfidentialCounts(
        PublicFacts(
            hierarchy_from_leaves(["state", "county"], leaves, root="US"),
            unit=Unit("person"),
            group="household",
        ),
        counts,
        counts.n_groups(),
    )


def _file(data: Path, name: str) -> Path:
    file = data / name
    if not file.is_file():
        raise StorageError(
            f"{file} is missing. Point --data at the folder that holds the data sets, or leave it "
            "out."
        )
    return file

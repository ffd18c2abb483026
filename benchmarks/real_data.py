"""The data sets that accuracy is measured on, from the folder that TALLYTREE_DATA names; none is
part of this repository.
"""

import csv
import gzip
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from tallytree import ConfidentialCounts, read
from tallytree.model.count_of_counts import counts_from_dense
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.papers.datasets import county_housing, taxi


def cps(folder: Path) -> ConfidentialCounts:
    """Households of the Current Population Survey by size: US / 4 regions / 9 divisions / 51
    states.
    """
    file = folder / "cps_households_state" / "cps_households_state.csv.gz"
    return read(
        str(file),
        size="size",
        levels=["region", "division", "fips"],
        root="US",
        entity="person",
        public="groups",
    )


def flights(folder: Path) -> ConfidentialCounts:
    """Planes by number of flights to each destination: New York / 3 airports / 218 airport and
    destination pairs.
    """
    file = folder / "nycflights13" / "nycflights13_plane_dest_groups.csv.gz"
    return read(
        str(file),
        size="flights",
        levels=["origin", "dest"],
        root="NYC",
        entity="flight",
        public="groups",
    )


def england_and_wales(folder: Path) -> ConfidentialCounts:
    """Households by size, 8 and more taken for 8: 2 countries / 331 districts / 7,264 / 35,672
    small areas.
    """
    sizes = [f"hh{size}" for size in range(1, 8)] + ["hh8plus"]
    file = folder / "ew2021_hhsize_lsoa" / "ew2021_hhsize_lsoa.csv.gz"
    return _table(file, ["country", "ltla", "msoa", "lsoa"], sizes, range(1, 9))


def top_coded_housing(folder: Path) -> ConfidentialCounts:
    """Households by size, 7 and more taken for 7: 51 states / 3,108 counties."""
    sizes = [f"hh{size}" for size in range(1, 7)] + ["hh7plus"]
    return _table(
        folder / "us2010_h13_county" / "us2010_h13_county.csv.gz",
        ["state", "fips"],
        sizes,
        range(1, 8),
    )


def roma(folder: Path) -> ConfidentialCounts:
    """Small areas by number of people who are "White: Roma", most of them none: 2 countries / 331
    districts.
    """
    file = folder / "ew2021_hhsize_lsoa" / "ew2021_ethnic_lsoa.csv.gz"
    return read(
        str(file),
        size="White: Roma",
        levels=["country", "ltla"],
        root="England and Wales",
        entity="person",
        public="groups",
    )


def businesses(folder: Path) -> ConfidentialCounts:
    """Establishments by class of employment, at the least size of each class: states / 3-digit /
    5-digit zip codes.
    """
    classes = [
        "n1_4",
        "n5_9",
        "n10_19",
        "n20_49",
        "n50_99",
        "n100_249",
        "n250_499",
        "n500_999",
        "n1000plus",
    ]
    file = folder / "zbp2016_estab_size" / "zbp2016_zip_sizeclass.csv.gz"
    return _table(file, ["state", "zip3", "zip5"], classes, [1, 5, 10, 20, 50, 100, 250, 500, 1000])


def _table(
    file: Path, levels: list[str], columns: list[str], sizes: Iterable[int]
) -> ConfidentialCounts:
    """Counts from a table with one row per leaf and one column per size; codes in two parents
    become two regions.
    """
    with gzip.open(file, "rt", newline="", encoding="utf-8") as text:
        rows = sorted(csv.DictReader(text), key=lambda row: [row[level] for level in levels])
    at = list(sizes)
    table = np.zeros((len(rows), max(at) + 1), dtype=np.int64)
    table[:, at] = [[int(row[column]) for column in columns] for row in rows]
    leaves = [
        tuple("/".join(row[level] for level in levels[: n + 1]) for n in range(len(levels)))
        for row in rows
    ]
    counts = counts_from_dense(table)
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(levels, leaves)), counts, counts.n_groups()
    )


DATA: dict[str, Callable[[Path], ConfidentialCounts]] = {
    "cps": cps,
    "flights": flights,
    "taxi": taxi,
    "housing": county_housing,
    "top-coded housing": top_coded_housing,
    "england and wales": england_and_wales,
    "roma": roma,
    "businesses": businesses,
}


def data_folder() -> Path | None:
    """The folder of real data, or None where there is none."""
    folder = os.environ.get("TALLYTREE_DATA")
    return Path(folder) if folder else None

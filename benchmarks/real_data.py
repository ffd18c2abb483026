"""The data sets that accuracy is measured on, from the folder that TALLYTREE_DATA names; none is part of this repository."""

import os
from collections.abc import Callable
from pathlib import Path

from tallytree import ConfidentialCounts, read
from tallytree.reproduce.datasets import county_housing, taxi


def cps(folder: Path) -> ConfidentialCounts:
    """Households of the Current Population Survey by size: US / 4 regions / 9 divisions / 51 states."""
    file = folder / "cps_households_state" / "cps_households_state.csv.gz"
    return read(str(file), size="size", levels=["region", "division", "fips"], root="US", entity="person")


def flights(folder: Path) -> ConfidentialCounts:
    """Planes by number of flights to each destination: New York / 3 airports / 218 airport and destination pairs."""
    file = folder / "nycflights13" / "nycflights13_plane_dest_groups.csv.gz"
    return read(str(file), size="flights", levels=["origin", "dest"], root="NYC", entity="flight")


DATA: dict[str, Callable[[Path], ConfidentialCounts]] = {
    "cps": cps,
    "flights": flights,
    "taxi": taxi,
    "housing": county_housing,
}


def data_folder() -> Path | None:
    """The folder of real data, or None where there is none."""
    folder = os.environ.get("TALLYTREE_DATA")
    return Path(folder) if folder else None

"""Errors of a map against the true points: for the owner of the data, and as confidential as the data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.box_tree import box_sums
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.model.notebook import html_table, plain
from tallytree.model.renamed import renamed
from tallytree.released.group_sizes.evaluation import WARNING
from tallytree.released.maps.release import SpatialRelease

# Boxes of each class have sides between half of this part of the map's and all of it.
CLASSES = {"large boxes": 1 / 2, "medium boxes": 1 / 8, "small boxes": 1 / 32}
N_BOXES = 1000
HEAD = (
    "boxes",
    "number",
    "mean count",
    "mean error",
    "of all points",
    "root mean square",
    "std error",
    "within 2",
)


@dataclass(frozen=True)
class BoxErrors:
    """Errors of the answers to boxes of about one size.

    Attributes
    ----------
    name, boxes
        The class and how many boxes were drawn.
    mean_count, mean_error, root_mean_square
        Of the true counts, of the absolute errors of the published ones, and of their squares.
    relative
        The mean error as a part of all points.
    std_error
        Mean of the standard errors that the map states, which cover noise alone.
    within_two
        Share of boxes whose true count lies within two of those of the published one.
    """

    name: str
    boxes: int
    mean_count: float
    mean_error: float
    relative: float
    root_mean_square: float
    std_error: float
    within_two: float

    standard_error = renamed("std_error", "standard_error")


@dataclass(frozen=True)
class MapEvaluation:
    """Errors of a map by the size of boxes; not private."""

    classes: tuple[BoxErrors, ...]

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {"warning": WARNING, "classes": [asdict(one) for one in self.classes]}

    def __repr__(self) -> str:
        errors = ", ".join(f"{one.name}: {plain(one.mean_error)}" for one in self.classes)
        return f"MapEvaluation(NOT PRIVATE; mean error of {errors})"

    def _repr_html_(self) -> str:
        return html_table("Errors of boxes", list(HEAD), error_rows(self.classes), note=WARNING)


def error_rows(classes: tuple[BoxErrors, ...]) -> list[list[object]]:
    """Errors as rows of a table, in the order of ``HEAD``."""
    return [list(asdict(one).values()) for one in classes]


def evaluate_map(release: SpatialRelease, truth: ConfidentialGrid) -> MapEvaluation:
    """Compare a map with the exact counts of boxes of three sizes, and of everything. The result is NOT private.

    The boxes are the same for every map of a resolution, so that evaluations can be compared.
    """
    if (truth.shape, truth.box) != (release.shape, release.box):
        raise RequestError(
            f"The map has {release.shape} cells in {release.box}, the data {truth.shape} in {truth.box}; they must be equal."
        )
    n_points = max(1, int(truth.sums.flat[-1]))
    whole = np.zeros((1, len(truth.shape)), dtype=np.int64), np.array([truth.shape])
    drawn = {name: spread_boxes(truth.shape, part) for name, part in CLASSES.items()}
    return MapEvaluation(
        tuple(_errors(name, release, truth, boxes, n_points) for name, boxes in {"everything": whole, **drawn}.items())
    )


def spread_boxes(shape: tuple[int, ...], part: float) -> tuple[IntArray, IntArray]:
    """Boxes of whole cells, evenly over the map, with sides from half of this part of the map's up to it.

    Their sides and places follow an additive recurrence with the powers of the generalised golden ratio: no randomness,
    and more even than random numbers.
    """
    n_numbers = 2 * len(shape)
    golden = 2.0
    for _ in range(60):  # the root of x^(n + 1) = x + 1
        golden = (1 + golden) ** (1 / (n_numbers + 1))
    steps = golden ** -np.arange(1.0, n_numbers + 1)
    even = (0.5 + np.arange(1, N_BOXES + 1)[:, None] * steps) % 1
    extent = np.array(shape)
    sides = np.maximum(1, np.rint(extent * part * (1 + even[:, : len(shape)]) / 2).astype(np.int64))
    low = np.floor(even[:, len(shape) :] * (extent - sides + 1)).astype(np.int64)
    return low, low + sides


def _errors(
    name: str, release: SpatialRelease, truth: ConfidentialGrid, boxes: tuple[IntArray, IntArray], n_points: int
) -> BoxErrors:
    low, high = boxes
    exact = box_sums(truth.sums, low, high)
    error = np.abs(release.surface.answer(low.astype(np.float64), high.astype(np.float64)) - exact)
    spread = np.sqrt(release.surface.uncertainty(low.astype(np.float64), high.astype(np.float64))[0])
    return BoxErrors(
        name,
        len(low),
        float(exact.mean()),
        float(error.mean()),
        float(error.mean() / n_points),
        float(np.sqrt((error**2).mean())),
        float(spread.mean()),
        float((error <= 2 * spread).mean()),
    )

"""Errors of a release that answers ranges, boxes or single counts, by class of query: for the owner
of the data, and as confidential as the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.box_tree import box_sums, prefix_sums
from tallytree.model.notebook import html_table, plain
from tallytree.releases.metrics import HEAD, QueryErrors, query_errors

WARNING = "not private: computed from the confidential data; do not publish"
# Queries of each class have sides between half of this part of the domain's and all of it.
CLASSES = {"large": 1 / 2, "medium": 1 / 8, "small": 1 / 32}
N_BOXES = 1000
# All ranges of a line are compared up to so many bins; half a million ranges take a second.
MOST_BINS_OF_ALL_RANGES = 1024

Answering = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray]]
Boxes = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class QueryEvaluation:
    """Errors of a release by class of query; not private."""

    classes: tuple[QueryErrors, ...]

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {"warning": WARNING, "classes": [asdict(one) for one in self.classes]}

    def tables(self) -> list[tuple[str, list[str], list[list[object]]]]:
        """Tables to print: title, head and rows."""
        return [("Errors of queries", list(HEAD), error_rows(self.classes))]

    def __repr__(self) -> str:
        errors = ", ".join(f"{one.name}: {plain(one.mean_error)}" for one in self.classes)
        return f"QueryEvaluation(NOT PRIVATE; mean error of {errors})"

    def _repr_html_(self) -> str:
        return html_table("Errors of queries", list(HEAD), error_rows(self.classes), note=WARNING)


def error_rows(classes: tuple[QueryErrors, ...]) -> list[list[object]]:
    """Errors as rows of a table, in the order of :data:`~tallytree.releases.metrics.HEAD`."""
    return [["–" if value is None else value for value in asdict(one).values()] for one in classes]


def evaluate_boxes(
    truth: IntArray,
    answer: Answering,
    *,
    noun: str,
    asked: Boxes | None = None,
    threshold: float | None = None,
) -> QueryEvaluation:
    """Compare answers to boxes of cells with exact counts.

    Parameters
    ----------
    truth
        Exact counts, one dimension per axis.
    answer
        Published counts and standard errors of boxes given by their first cells and one past their
        last.
    noun
        What the queries are called: ``"ranges"`` or ``"boxes"``.
    asked
        Compare these boxes; without them everything, every cell or a thousand of them, and a
        thousand boxes of each of three sizes. The boxes are the same for every release of a
        resolution, so that evaluations can be compared.
    """
    boxes = {f"given {noun}": asked} if asked is not None else spread_classes(truth.shape, noun)
    sums = prefix_sums(truth)
    total = int(sums.flat[-1])
    found = []
    for name, (low, high) in boxes.items():
        published, std_errors = answer(low, high)
        exact = box_sums(sums, low, high)
        found.append(
            query_errors(
                name, published, exact, total=total, threshold=threshold, std_errors=std_errors
            )
        )
    return QueryEvaluation(tuple(found))


def spread_classes(shape: tuple[int, ...], noun: str) -> dict[str, Boxes]:
    """Boxes by class: everything, three sizes, single cells, and of a line with few bins all
    ranges.
    """
    whole = np.zeros((1, len(shape)), dtype=np.int64), np.array([shape])
    boxes = {"everything": whole} | {
        f"{name} {noun}": spread_boxes(shape, part) for name, part in CLASSES.items()
    }
    boxes["single cells"] = _single_cells(shape)
    if len(shape) == 1 and shape[0] <= MOST_BINS_OF_ALL_RANGES:
        first, last = np.triu_indices(shape[0])
        boxes["all ranges"] = first[:, None], last[:, None] + 1
    return boxes


def _single_cells(shape: tuple[int, ...]) -> Boxes:
    if np.prod(shape) > N_BOXES:
        return spread_boxes(shape, 0.0)
    low = np.stack([place.ravel() for place in np.indices(shape)], axis=1)
    return low, low + 1


def spread_boxes(shape: tuple[int, ...], part: float) -> Boxes:
    """Boxes of whole cells, evenly over the domain, with sides from half of this part of the
    domain's up to it.

    Their sides and places follow an additive recurrence with the powers of the generalised golden
    ratio: no randomness, and more even than random numbers.
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

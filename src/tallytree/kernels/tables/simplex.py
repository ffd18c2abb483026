"""Nearest points with a given sum: projections onto {x ≥ 0, Σ x = total}, many regions at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError
from tallytree.kernels.jit import as_input, run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray


def project_to_simplex(
    values: npt.ArrayLike, offsets: IntArray, totals: npt.ArrayLike
) -> FloatArray:
    """Nearest nonnegative real numbers that sum to the region's total, per region.

    The solution is max(v − θ, 0) for one θ per region. An empty region must have total 0.

    Examples
    --------
    >>> project_to_simplex([3, 1, -2], np.array([0, 3]), [2]).tolist()
    [2.0, 0.0, 0.0]
    """
    numbers = as_input(values, np.float64)
    sums = as_input(totals, np.float64)
    places = as_input(offsets, np.int64)
    _check(places, len(numbers), sums)
    fit = np.empty(len(numbers), dtype=numbers.dtype)
    run_in_chunks(lambda start, stop: _project(numbers, places, sums, fit, start, stop), len(sums))
    return fit


def project_to_whole_simplex(
    values: npt.ArrayLike, offsets: IntArray, totals: npt.ArrayLike
) -> IntArray:
    """Whole numbers nearest to whole-number values, nonnegative and with the region's total
    (kuo2018 §4.1).

    The real projection of whole numbers gives every positive cell the same fraction, so that "the
    largest fractional parts" are all tied; the cells rounded up are spread evenly over the tied
    ones. Computed in integers throughout.

    ``values`` and the result are (n_cells,), ``offsets`` is (n_regions + 1,), ``totals``
    (n_regions,).
    """
    numbers = as_input(values, np.int64)
    sums = as_input(totals, np.int64)
    places = as_input(offsets, np.int64)
    _check(places, len(numbers), sums)
    fit = np.empty(len(numbers), dtype=numbers.dtype)
    run_in_chunks(
        lambda start, stop: _project_whole(numbers, places, sums, fit, start, stop), len(sums)
    )
    return fit


def _check(offsets: IntArray, n_values: int, totals: npt.NDArray[np.number]) -> None:
    if len(offsets) != len(totals) + 1 or offsets[0] != 0 or offsets[-1] != n_values:
        raise InputError(
            "A projection needs one total per region and offsets from 0 to the number of values."
        )
    lengths = np.diff(offsets)
    if (lengths < 0).any() or (totals < 0).any() or (totals[lengths == 0] != 0).any():
        raise InputError(
            "A projection needs totals of at least 0, and total 0 where a region has no values."
        )


@serial
def _project(values, places, totals, fit, start, stop):
    # Condition of optimality: θ = (Σ_{v > θ} v − total) / #{v > θ}. Starting from all cells, θ only
    # rises and cells only leave, so the loop ends when no cell leaves.
    for region in range(start, stop):
        first, last = places[region], places[region + 1]
        if first == last:
            continue
        n_kept = last - first
        threshold = (values[first:last].sum() - totals[region]) / n_kept
        while True:
            total = 0.0
            above = 0
            for i in range(first, last):
                if values[i] > threshold:
                    total += values[i]
                    above += 1
            # Rounding of floats may leave none above when the total is 0, or let a cell at the
            # threshold come back.
            if above >= n_kept or above == 0:
                break
            n_kept = above
            threshold = (total - totals[region]) / above
        for i in range(first, last):
            fit[i] = max(values[i] - threshold, 0.0)


@serial
def _project_whole(values, places, totals, fit, start, stop):
    # As _project with θ = floor + part / n_kept; a whole number exceeds θ exactly when it exceeds
    # floor(θ).
    for region in range(start, stop):
        first, last = places[region], places[region + 1]
        if first == last:
            continue
        n_kept = last - first
        excess = values[first:last].sum() - totals[region]
        floor = excess // n_kept
        while True:
            excess = -totals[region]
            above = 0
            for i in range(first, last):
                if values[i] > floor:
                    excess += values[i]
                    above += 1
            if above == n_kept or above == 0:
                break
            n_kept = above
            floor = excess // n_kept
        # `part` of the n_kept cells go down to v − floor − 1, spread evenly; the others stay at v −
        # floor.
        part = excess - floor * n_kept if above > 0 else 0
        seen = 0
        for i in range(first, last):
            fit[i] = 0
            if values[i] > floor:
                lowered = ((seen + 1) * part) // n_kept - (seen * part) // n_kept
                fit[i] = values[i] - floor - lowered
                seen += 1

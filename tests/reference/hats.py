"""Strategies of hats written out: all rows of the matrix, and every hat by its definition."""

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.hats import Hats


def dense_rows(hats: Hats) -> IntArray:
    """The bins and then the hats, one row each."""
    rows = np.zeros((hats.n_bins + hats.n_hats, hats.n_bins), dtype=np.int64)
    for place in range(hats.n_bins):
        rows[place, place] += hats.coefficients[0, place]
        for hat, coefficient in zip(hats.hats[:, place], hats.coefficients[1:, place]):
            rows[hats.n_bins + hat, place] += coefficient
    return rows


def straight_hats(hats: Hats) -> FloatArray:
    """Every hat: its height at the peak, 0 at the neighbouring peaks (or the end of the bins),
    straight lines between.
    """
    rows = []
    middles = np.arange(hats.n_bins) + 0.5
    for level, peaks in zip(hats.levels, hats.peaks):
        ends = [0, *peaks.tolist(), hats.n_bins]
        for before, peak, after in zip(ends, ends[1:], ends[2:]):
            rows.append(np.interp(middles, [before, peak, after], [0, level.height, 0]))
    return np.array(rows)

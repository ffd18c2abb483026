"""Nonnegative tables with given row and column sums, nearest to a table, for many blocks of rows at
once.

The nearest table is max(0, y + row price + column price). Prices of rows and columns are set in
turn, each by Newton steps for "the sum of max(0, y + price) is the total": dual coordinate ascent.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray

MAX_SWEEPS = 40
# Rows miss their totals by at most this many groups when the sweeps stop; rounding to whole numbers
# follows.
CLOSE_ENOUGH = 0.05


@serial
def _price_rows(values, row_totals, row_price, column_price):
    """One Newton step per row; returns the largest miss before it."""
    worst = 0.0
    for row in range(len(values)):
        price = row_price[row]
        total = 0.0
        n_positive = 0
        largest = -np.inf
        for column in range(values.shape[1]):
            value = values[row, column] + column_price[column]
            largest = max(largest, value)
            if value + price > 0.0:
                total += value
                n_positive += 1
        worst = max(worst, abs(total + n_positive * price - row_totals[row]))
        if n_positive == 0:
            row_price[row] = row_totals[row] - largest
        else:
            row_price[row] = (row_totals[row] - total) / n_positive
    return worst


@serial
def _price_columns(values, column_totals, row_price, column_price, total, n_positive, largest):
    """One Newton step per column; the last three are room to work in."""
    total[:] = 0.0
    n_positive[:] = 0
    largest[:] = -np.inf
    for row in range(len(values)):
        price = row_price[row]
        for column in range(values.shape[1]):
            value = values[row, column] + price
            largest[column] = max(largest[column], value)
            if value + column_price[column] > 0.0:
                total[column] += value
                n_positive[column] += 1
    for column in range(values.shape[1]):
        if n_positive[column] == 0:
            column_price[column] = column_totals[column] - largest[column]
        else:
            column_price[column] = (column_totals[column] - total[column]) / n_positive[column]


@serial
def _fit_blocks(values, offsets, row_totals, column_totals, fit, start, stop):
    n_columns = values.shape[1]
    column_price = np.empty(n_columns)
    total = np.empty(n_columns)
    n_positive = np.empty(n_columns, dtype=np.int64)
    largest = np.empty(n_columns)
    for block in range(start, stop):
        first, last = offsets[block], offsets[block + 1]
        rows = values[first:last]
        row_price = np.zeros(last - first)
        column_price[:] = 0.0
        for _ in range(MAX_SWEEPS):
            for _ in range(2):
                _price_columns(
                    rows, column_totals[block], row_price, column_price, total, n_positive, largest
                )
            worst = _price_rows(rows, row_totals[first:last], row_price, column_price)
            if worst <= CLOSE_ENOUGH:
                break
            _price_rows(rows, row_totals[first:last], row_price, column_price)
        for row in range(last - first):
            for column in range(n_columns):
                fit[first + row, column] = max(
                    0.0, rows[row, column] + row_price[row] + column_price[column]
                )


def fit_margins(
    values: FloatArray, offsets: IntArray, row_totals: FloatArray, column_totals: FloatArray
) -> FloatArray:
    """Nearest nonnegative tables with row and column sums, one table per block of rows, nearly
    exact.

    Rows ``offsets[b]:offsets[b + 1]`` of ``values`` form block ``b``, whose columns add up to
    ``column_totals[b]``.
    """
    fit = np.empty_like(values)
    run_in_chunks(
        lambda start, stop: _fit_blocks(
            values, offsets, row_totals, column_totals, fit, start, stop
        ),
        len(offsets) - 1,
    )
    return fit

"""Nearest nonnegative tables of children whose cells add up to those of their parent."""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray


@serial
def _project_children(values, offsets, totals, fit, start, stop):
    # As the projection of one region to a simplex (see simplex._project), for every cell at once:
    # the threshold θ of a cell only rises, and its children only leave, until none leaves.
    n_cells = values.shape[1]
    threshold = np.empty(n_cells)
    total = np.empty(n_cells)
    n_above = np.empty(n_cells, dtype=np.int64)
    n_kept = np.empty(n_cells, dtype=np.int64)
    for parent in range(start, stop):
        first, last = offsets[parent], offsets[parent + 1]
        total[:] = 0.0
        for child in range(first, last):
            for cell in range(n_cells):
                total[cell] += values[child, cell]
        for cell in range(n_cells):
            n_kept[cell] = last - first
            threshold[cell] = np.inf
            if totals[parent, cell] > 0:
                threshold[cell] = (total[cell] - totals[parent, cell]) / n_kept[cell]
        moving = True
        while moving:
            moving = False
            total[:] = 0.0
            n_above[:] = 0
            for child in range(first, last):
                for cell in range(n_cells):
                    value = np.float64(values[child, cell])
                    if value > threshold[cell]:
                        total[cell] += value
                        n_above[cell] += 1
            for cell in range(n_cells):
                if 0 < n_above[cell] < n_kept[cell]:
                    n_kept[cell] = n_above[cell]
                    threshold[cell] = (total[cell] - totals[parent, cell]) / n_above[cell]
                    moving = True
        for child in range(first, last):
            for cell in range(n_cells):
                fit[child, cell] = max(values[child, cell] - threshold[cell], 0.0)


def project_children(values: FloatArray, offsets: IntArray, totals: FloatArray) -> FloatArray:
    """Per parent and cell the nearest nonnegative numbers of its children that add up to its own.

    Parameters
    ----------
    values
        ``(n_children, n_cells)``, children of one parent after the other.
    offsets
        Children ``offsets[p]:offsets[p + 1]`` belong to parent p, which has one at least.
    totals
        ``(n_parents, n_cells)``, at least 0.

    Examples
    --------
    >>> values = np.array([[3.0, 1.0], [1.0, -2.0]])
    >>> project_children(values, np.array([0, 2]), np.array([[2.0, 0.0]])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    fit = np.empty_like(values)
    run_in_chunks(
        lambda start, stop: _project_children(values, offsets, totals, fit, start, stop),
        len(totals),
    )
    return fit

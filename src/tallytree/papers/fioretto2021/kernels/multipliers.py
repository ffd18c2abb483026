"""The steps between two projections of the alternating direction method of multipliers, one pass
over memory each.
"""

from __future__ import annotations

import numpy as np

from tallytree.kernels.jit import collect_in_chunks, run_in_chunks, serial
from tallytree.model.arrays import FloatArray

# Cells that make a chunk worth a thread of its own.
_SMALLEST = 20_000


@serial
def _blend(target, table, dual, penalty, out, start, stop):
    for i in range(start, stop):
        out[i] = (target[i] + penalty * (table[i] - dual[i])) / (1.0 + penalty)


def blend(target: FloatArray, table: FloatArray, dual: FloatArray, penalty: float) -> FloatArray:
    """``(target + penalty · (table − dual)) / (1 + penalty)``: what is projected next.

    All arrays have one shape, whichever.
    """
    out = np.empty_like(target)
    flat = [array.reshape(-1) for array in (target, table, dual, out)]
    run_in_chunks(
        lambda start, stop: _blend(flat[0], flat[1], flat[2], penalty, flat[3], start, stop),
        target.size,
        smallest=_SMALLEST,
    )
    return out


@serial
def _add(a, b, out, start, stop):
    for i in range(start, stop):
        out[i] = a[i] + b[i]


def add(a: FloatArray, b: FloatArray) -> FloatArray:
    """``a + b``.

    Both have one shape, whichever.
    """
    out = np.empty_like(a)
    flat = [array.reshape(-1) for array in (a, b, out)]
    run_in_chunks(
        lambda start, stop: _add(flat[0], flat[1], flat[2], start, stop), a.size, smallest=_SMALLEST
    )
    return out


@serial
def _update(dual, additive, table, before, start, stop):
    apart = 0.0
    step = 0.0
    for i in range(start, stop):
        difference = additive[i] - table[i]
        dual[i] += difference
        apart += difference * difference
        step += (table[i] - before[i]) ** 2
    return apart, step


def update_dual_in_place(
    dual: FloatArray, additive: FloatArray, table: FloatArray, before: FloatArray
) -> tuple[float, float]:
    """Add ``additive − table`` to the multipliers; root mean squares of that and of the step from
    ``before`` to ``table``.

    All arrays have one shape, whichever.
    """
    flat = [array.reshape(-1) for array in (dual, additive, table, before)]
    parts = collect_in_chunks(
        lambda start, stop: _update(flat[0], flat[1], flat[2], flat[3], start, stop),
        dual.size,
        smallest=_SMALLEST,
    )
    apart, step = (float(np.sqrt(sum(column) / dual.size)) for column in zip(*parts))
    return apart, step

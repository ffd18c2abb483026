"""How every kernel is compiled and spread over cores: the flags live here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numba
import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError

# No fastmath: results must not depend on how a compiler reorders sums. No parallel=True: kernels take a range of regions
# instead and release the interpreter lock, so that threads run them side by side and results do not depend on their number.
serial = numba.njit(cache=True, nogil=True)

Result = TypeVar("Result")
Number = TypeVar("Number", np.int64, np.float64)


def as_input(values: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    """The values as a contiguous array of one type that kernels read: the array itself where it is that already.

    Always marked read-only, because Numba compiles a kernel anew for writable and for read-only arrays.
    """
    given = np.asarray(values)
    if dtype is np.int64 and given.dtype.kind not in "iub" and given.size:
        raise InputError(f"Whole numbers are needed here, got an array of {given.dtype}.")
    array = np.ascontiguousarray(given, dtype=dtype).view()
    array.setflags(write=False)
    return array


@cache
def n_workers() -> int:
    """Number of threads that kernels are spread over."""
    return os.cpu_count() or 1


def run_in_chunks(work: Callable[[int, int], None], n_items: int, *, smallest: int = 1) -> None:
    """Call ``work(start, stop)`` on consecutive chunks of ``range(n_items)``, side by side in threads.

    ``work`` must write only to places that belong to its own chunk. Chunks are a few times as many as the cores, so that
    uneven items balance; a chunk holds at least ``smallest`` items.
    """
    collect_in_chunks(work, n_items, smallest=smallest)


def collect_in_chunks(work: Callable[[int, int], Result], n_items: int, *, smallest: int = 1) -> list[Result]:
    """Like :func:`run_in_chunks`, for kernels that return what they made: the results in the order of the chunks."""
    n_chunks = max(1, min(n_items // max(smallest, 1), 8 * n_workers()))
    if n_chunks == 1 or n_workers() == 1:
        return [work(0, n_items)]
    bounds = [n_items * chunk // n_chunks for chunk in range(n_chunks + 1)]
    with ThreadPoolExecutor(n_workers()) as pool:
        return [result.result() for result in [pool.submit(work, *pair) for pair in pairwise(bounds)]]

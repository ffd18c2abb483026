"""How every kernel is compiled and spread over cores: the flags live here and nowhere else."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from itertools import pairwise
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError

# No fastmath: results must not depend on how a compiler reorders sums. No parallel=True: kernels
# take a range of regions instead and release the interpreter lock, so that threads run them side by
# side and results do not depend on their number. Division by zero is IEEE's: the check for it would
# be compiled into every division. No entry for C callbacks: none calls.
FLAGS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class Kernel:
    """A function that Numba compiles when it is first called, for each combination of argument
    types.

    Importing a module of kernels costs next to nothing: Numba is loaded with the first call. What
    Python calls is kept on disk, so that a machine compiles it once. A kernel that another kernel
    calls is compiled into it, without the entry that only Python needs and without a copy on disk
    of its own; both are a good part of the time that compiling takes.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled for the types of the arguments."""
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """What Python calls; it takes the kernel's place in its module, so that the next call goes
        there straight.
        """
        compiled = _numba().njit(cache=True, **FLAGS)(self.function)
        module = self.function.__globals__
        if module.get(self.function.__name__) is self:
            module[self.function.__name__] = compiled
        return compiled

    @cached_property
    def part(self) -> Any:
        """What other kernels call: what Python calls, where that is there already."""
        if "compiled" in self.__dict__:
            return self.compiled
        return _numba().njit(no_cpython_wrapper=True, **FLAGS)(self.function)


serial = Kernel

# What is told when a kernel is compiled that is not yet on this machine's disk; see `telling`.
_listeners: list[Callable[[], None]] = []


@contextmanager
def telling(compiling: Callable[[], None]) -> Iterator[None]:
    """Call ``compiling`` whenever a kernel begins to be compiled, in any thread, until the block
    ends.
    """
    _listeners.append(compiling)
    try:
        yield
    finally:
        _listeners.remove(compiling)


@cache
def _numba() -> Any:
    """Numba, told that a kernel named inside another one is a compiled function, and what to do
    while it compiles.
    """
    import numba
    from numba.core import event
    from numba.extending import typeof_impl

    @typeof_impl.register(Kernel)
    def type_of_kernel(kernel: Kernel, context: object) -> object:
        return numba.types.Dispatcher(kernel.part)

    class Compiling(event.Listener):  # type: ignore[misc]
        """Tells listeners, and pauses Python's collector of garbage, which costs a tenth of the
        time and finds nothing.
        """

        depth = 0
        collects = False

        def on_start(self, event: object) -> None:
            if self.depth == 0:
                self.collects = gc.isenabled()
                gc.disable()
                for compiling in list(_listeners):
                    compiling()
            self.depth += 1

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if self.depth == 0 and self.collects:
                gc.enable()

    # Numba compiles under one lock for all threads, so that events of a thread never cross those of
    # another.
    event.register("numba:compile", Compiling())
    return numba


Item = TypeVar("Item")
Result = TypeVar("Result")
Number = TypeVar("Number", np.int64, np.float64)


def as_input(values: npt.ArrayLike, dtype: type[Number]) -> npt.NDArray[Number]:
    """The values as a contiguous array of one type that kernels read: the array itself where it is
    that already.

    Always marked read-only, because Numba compiles a kernel anew for writable and for read-only
    arrays.
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


# Threads cost a fifth of a millisecond to start. What is done sooner than this is done without
# them.
_SOON = 0.001  # seconds
# Chunks whose results are collected, whatever the number of cores: sums over them have the same
# last digits everywhere.
_COLLECTED = 64
_own = threading.local()


def _is_alone() -> bool:
    """Whether kernels run in this thread alone: on one core, or because threads around it share the
    cores already.
    """
    return n_workers() == 1 or getattr(_own, "busy", False)


def side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call ``work`` on every item, as many at a time as there are cores, each in one thread;
    results in the order of items.

    For work in several steps on pieces that do not touch each other: kernels inside it are not
    spread over threads again, and never more pieces are in memory than cores.
    """
    if len(items) <= 1 or _is_alone():
        return [work(item) for item in items]

    def alone(item: Item) -> Result:
        _own.busy = True
        return work(item)

    with ThreadPoolExecutor(n_workers()) as pool:
        return list(pool.map(alone, items))


def run_in_chunks(work: Callable[[int, int], None], n_items: int, *, smallest: int = 1) -> None:
    """Call ``work(start, stop)`` on consecutive chunks of ``range(n_items)``, side by side in
    threads.

    ``work`` must write only to places that belong to its own chunk. Chunks are a few times as many
    as the cores, so that uneven items balance; a chunk holds at least ``smallest`` items. The first
    items are done here, in chunks that double, so that few and small items need no threads.
    """
    if _is_alone() or n_items < 2 * max(smallest, 1):
        work(0, n_items)
        return
    start, size, enough = 0, max(smallest, 1), max(smallest, n_items // (8 * n_workers()), 1)
    soon = perf_counter() + _SOON
    while start < n_items and perf_counter() < soon:
        stop = min(start + size, n_items)
        work(start, stop)
        start, size = stop, min(2 * size, enough)
    if start < n_items:
        _in_threads(work, _chunks(start, n_items, smallest, 8 * n_workers()))


def collect_in_chunks(
    work: Callable[[int, int], Result], n_items: int, *, smallest: int = 1
) -> list[Result]:
    """Like :func:`run_in_chunks`, for kernels that return what they made: the results in the order
    of the chunks.

    Where chunks begin depends neither on how long they take nor on the number of cores, so that
    sums over chunks are always the same.
    """
    chunks = _chunks(0, n_items, smallest, _COLLECTED)
    if len(chunks) == 1 or _is_alone():
        return [work(*chunk) for chunk in chunks]
    results: list[Result] = []
    soon = perf_counter() + _SOON
    while len(results) < len(chunks) and perf_counter() < soon:
        results.append(work(*chunks[len(results)]))
    rest = chunks[len(results) :]
    return results + _in_threads(work, rest) if rest else results


def sums_over_chunks(work: Callable[[int, int], Sequence[float]], n_items: int) -> list[float]:
    """Several sums at once, each over what :func:`collect_in_chunks` makes of the chunks, in their
    order.
    """
    return [float(sum(parts)) for parts in zip(*collect_in_chunks(work, n_items))]


def _in_threads(work: Callable[[int, int], Result], chunks: list[tuple[int, int]]) -> list[Result]:
    if len(chunks) <= 1:
        return [work(*chunk) for chunk in chunks]
    with ThreadPoolExecutor(n_workers()) as pool:
        return [result.result() for result in [pool.submit(work, *chunk) for chunk in chunks]]


def _chunks(start: int, stop: int, smallest: int, most: int) -> list[tuple[int, int]]:
    """Consecutive chunks of about equal size, at most so many."""
    n_items = stop - start
    n_chunks = max(1, min(n_items // max(smallest, 1), most))
    return list(pairwise(start + n_items * chunk // n_chunks for chunk in range(n_chunks + 1)))

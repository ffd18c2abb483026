"""How long steps report that they are getting on, without showing anything confidential."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

# Called with what is done, what there is to do in all, and the name of the step that begins.
Progress = Callable[[int, int, str], None]


def silent(done: int, total: int, step: str) -> None:
    """Report nothing."""


def by_work(progress: Progress, work: Sequence[int]) -> Progress:
    """Report steps as the share of the work that lies before them, so that the time left follows
    from the time taken.

    ``work`` holds the predicted work of each step, from public facts. Reports in other steps are
    passed on as they are.

    Examples
    --------
    >>> report = by_work(lambda done, total, step: print(done, total, step), [1, 9])
    >>> report(1, 2, "the long one")
    1 10 the long one
    """
    before = [0, *accumulate(work)]

    def report(done: int, total: int, step: str) -> None:
        if total == len(work) and before[-1] > 0:
            progress(before[done], before[-1], step)
        else:
            progress(done, total, step)

    return report

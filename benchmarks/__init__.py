"""Benchmarks: one script per question; those about speed have a ``main`` that measures ratios in
one run and returns them.
"""

import time
from collections.abc import Callable
from pathlib import Path

# Whether to take the full sizes (``python -m benchmarks --full``), for which a quiet machine needs
# about an hour.
FULL = False
# The mechanism that scripts take where they ask for the default one; None for what the package
# takes by itself.
MECHANISM: str | None = None


def default_options() -> dict[str, str]:
    """Options of a release by the default mechanism, or by the one that was named with
    ``--mechanism``.
    """
    return {} if MECHANISM is None else {"mechanism": MECHANISM}


def peak_memory() -> float:
    """GB of this process at its peak; without what the process that started it had, which getrusage
    counts.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e6


def least_seconds(work: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Seconds and CPU seconds, each the least of some repeats; other programs on the machine change
    the latter less.
    """
    seconds, cpu_seconds = float("inf"), float("inf")
    for _ in range(repeats):
        start, start_of_work = time.perf_counter(), time.process_time()
        work()
        seconds = min(seconds, time.perf_counter() - start)
        cpu_seconds = min(cpu_seconds, time.process_time() - start_of_work)
    return seconds, cpu_seconds

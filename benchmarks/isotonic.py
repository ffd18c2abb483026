"""How fast isotonic regression is: beside SciPy and HiGHS on one array, and on as many cells as
counties × 100,000 sizes.
"""

import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression, linprog
from scipy.sparse import eye_array, hstack, vstack

from tallytree.kernels.isotonic import cumulative_runs, isotonic_l1, isotonic_l2

N_VALUES = 3_000_000
LENGTHS = (10_000, 1_000_000, 10_000_000)
N_REGIONS, MAX_SIZE, N_GROUPS = 320, 100_000, 5_000
ALL_REGIONS = 3_197
N_PROGRAM = 20_000


def seconds(work: Callable[[], object]) -> float:
    """The least of at least three times, and of as many as half a second holds."""
    work()  # compiles the kernel
    taken: list[float] = []
    while len(taken) < 3 or sum(taken) < 0.5:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def noise(rng: np.random.Generator, shape: int | tuple[int, int]) -> np.ndarray:
    return rng.geometric(0.28, shape) - rng.geometric(0.28, shape)


def highs_l1(values: np.ndarray) -> float:
    """The least sum of |x_i − y_i| over x_1 ≤ x_2 ≤ …, as a linear program: t_i ≥ ±(x_i − y_i)."""
    n = len(values)
    one, rising = eye_array(n), eye_array(n - 1, n) - eye_array(n - 1, n, k=1)
    rows = vstack(
        [hstack([one, -one]), hstack([-one, -one]), hstack([rising, 0 * rising])], format="csr"
    )
    bounds = np.concatenate([values, -values, np.zeros(n - 1)])
    found = linprog(
        np.repeat([0.0, 1.0], n), A_ub=rows, b_ub=bounds, bounds=(None, None), method="highs"
    )
    return float(found.fun)


def against_highs(sizes: np.ndarray) -> float:
    """HiGHS's time over ours on the same values, with the same least distance."""
    start = time.perf_counter()
    least = highs_l1(sizes.astype(np.float64))
    theirs = time.perf_counter() - start
    assert abs(least - np.abs(isotonic_l1(sizes) - sizes).sum()) < 1e-6 * least
    return theirs / seconds(lambda: isotonic_l1(sizes))


def against_scipy(rng: np.random.Generator, n: int) -> float:
    """SciPy's time over ours on noisy sizes, in least squares, on one core."""
    sizes = (np.sort(rng.geometric(0.3, n)) + noise(rng, n)).astype(np.float64)
    return seconds(lambda: isotonic_regression(sizes)) / seconds(lambda: isotonic_l2(sizes))


def main() -> dict[str, float]:
    rng = np.random.default_rng(0)
    sizes = np.sort(rng.geometric(0.3, N_VALUES)) + noise(rng, N_VALUES)
    l1 = seconds(lambda: isotonic_l1(sizes))
    household = np.minimum(rng.geometric(0.3, N_GROUPS), MAX_SIZE - 1)
    cells = np.cumsum(np.bincount(household, minlength=MAX_SIZE)) + noise(
        rng, (N_REGIONS, MAX_SIZE)
    )
    offsets, n_groups = np.arange(N_REGIONS + 1) * MAX_SIZE, np.full(N_REGIONS, N_GROUPS)
    many = (
        seconds(lambda: cumulative_runs(cells.ravel(), offsets, n_groups, norm=1))
        * ALL_REGIONS
        / N_REGIONS
    )
    program = np.sort(rng.geometric(0.3, N_PROGRAM)) + noise(rng, N_PROGRAM)
    figures = {
        f"L1: HiGHS's time / ours, n = {N_PROGRAM:,}": against_highs(program),
        **{f"L2: SciPy's time / ours, n = {n:,}": against_scipy(rng, n) for n in LENGTHS},
        "L1: nanoseconds per value, one core": 1e9 * l1 / N_VALUES,
        "L1: seconds for 3,197 regions of 100,000 cells": many,
    }
    for name, figure in figures.items():
        print(f"   {name}: {figure:.2f}")
    return figures


if __name__ == "__main__":
    main()

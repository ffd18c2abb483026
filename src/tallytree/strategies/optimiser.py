"""A strategy optimiser of our own: every bin, plus a few overlapping weighted sums of bins, all
weights optimised.

The strategies searched are A = [I; Θ]·diag(1/c) with c = 1 + Σ_i θ_ij and Θ ≥ 0: the bins and p
further rows, each column scaled to sum 1 (the p-identity form of McKenna et al. 2018, HDMM). Their
error is smooth in Θ, so that L-BFGS with the exact gradient applies. What makes the difference is
where it starts. The optimum for ranges is not a tree of blocks but overlapping bumps, much like
linear B-splines, on one level for hundreds of bins and on two for a thousand: the edges of blocks
are where a tree loses. So the search starts at levels of hat functions of several spacings, and the
best after a few steps is refined.

Nothing here depends on data. Results are cached by :mod:`tallytree.strategies.optimised`.
"""

from __future__ import annotations

import math

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.strategies.workloads import AllRanges, GivenRanges, Marginals, Workload

LARGEST_WEIGHT = (
    20.0  # of an entry of Θ; optima stay near 1, and without a bound a bin's own row could vanish
)
FIRST_STEPS, NEXT_STEPS = 25, 60
LAST_STEPS, WORK = (
    400,
    2e9,
)  # last steps, fewer where N·p² times steps would exceed the work of about half a minute
ONE_START_FROM = (
    2049  # bins; of several starts at 4,096 this one was the best, and each takes half a minute
)
TWO_LEVELS_FROM = 400  # bins; below it a second level of hats gains nothing


class BumpObjective:
    """Average error of [I; Θ] over a workload, and its gradient, in O(p²N) and products of p rows
    with WᵀW.
    """

    def __init__(self, workload: Workload, n_bumps: int) -> None:
        self.workload = workload
        self.shape = (n_bumps, workload.n_bins)
        # Forming WᵀW once is cheaper than applying it by its parts, unless the workload has the
        # running sums of all ranges.
        self.gram = None if isinstance(workload, AllRanges) else workload.gram()
        place = np.arange(1.0, workload.n_bins + 1)
        self.diagonal = (
            place * (workload.n_bins + 1 - place)
            if self.gram is None
            else np.diag(self.gram).copy()
        )

    def __call__(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Error for Laplace noise at ε = 1 and gradient.

        With M = (I + ΘᵀΘ)⁻¹ = I − ΘᵀKΘ, K = (I + ΘΘᵀ)⁻¹ and B = diag(c)·G·diag(c), the error is
        trace(MB). Its slope is −2ΘMBM through M, where ΘM = KΘ, plus 2(M∘G)c for every entry of a
        column through c.
        """
        from scipy.linalg import cho_factor, cho_solve

        bumps = flat.reshape(self.shape)
        sums = 1.0 + bumps.sum(axis=0)
        scaled = bumps * sums
        applied = self.workload.times_gram(scaled) if self.gram is None else scaled @ self.gram
        weighted = applied * sums  # ΘB
        inner = np.eye(len(bumps)) + bumps @ bumps.T
        factor = cho_factor(inner, lower=True, check_finite=False)
        shrunk = cho_solve(factor, bumps, check_finite=False)  # KΘ
        outer = weighted @ bumps.T  # ΘBΘᵀ
        error = float(self.diagonal @ sums**2) - float(
            np.trace(cho_solve(factor, outer, check_finite=False))
        )
        slope = cho_solve(factor, outer @ shrunk - weighted, check_finite=False)
        slope += self.diagonal * sums - np.einsum("ij,ij->j", shrunk, applied)
        per_query = 2.0 / self.workload.n_queries
        return per_query * error, (2.0 * per_query) * slope.ravel()


def optimise_bumps(workload: Workload) -> FloatArray:
    """The best Θ found from all starts; no rows where nothing but the bins is worth measuring."""
    starts = [start for start in initial_bumps(workload) if len(start)]
    if not starts:
        return np.zeros((0, workload.n_bins))
    tried = sorted(
        (refine(workload, start, FIRST_STEPS) for start in starts), key=lambda found: found[0]
    )
    again = sorted(
        (refine(workload, bumps, NEXT_STEPS) for _, bumps in tried[:2]), key=lambda found: found[0]
    )
    best = again[0][1]
    return refine(workload, best, min(LAST_STEPS, int(WORK / (workload.n_bins * len(best) ** 2))))[
        1
    ]


def refine(workload: Workload, bumps: FloatArray, steps: int) -> tuple[float, FloatArray]:
    """Error and bumps after a number of L-BFGS steps."""
    from scipy.optimize import Bounds, minimize

    options = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9}
    objective = BumpObjective(workload, len(bumps))
    bounds = Bounds(0.0, LARGEST_WEIGHT)
    found = minimize(
        objective, bumps.ravel(), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return float(found.fun), found.x.reshape(bumps.shape)


def initial_bumps(workload: Workload) -> list[FloatArray]:
    """Where the search starts: hats for ordered bins, the queries themselves for marginals."""
    match workload:
        case AllRanges() | GivenRanges():
            return hat_starts(workload.n_bins)
        case Marginals():
            return marginal_starts(workload)
        case _:
            raise RequestError(f"No start is known for a workload of {workload.name}.")


def hat_starts(n_bins: int) -> list[FloatArray]:
    """Levels of hat functions: one level of several spacings, or for more bins a fine level and a
    few wide hats.
    """
    counts: set[tuple[int, ...]] = {(round(n_bins / spacing),) for spacing in (12, 16, 21, 28, 40)}
    if n_bins >= TWO_LEVELS_FROM:
        counts = {(round(n_bins / spacing), wide) for spacing, wide in ((16, 5), (16, 9), (21, 6))}
    if n_bins >= ONE_START_FROM:
        counts = {(round(n_bins / 21), round(n_bins / 340))}
    # A touch everywhere lets a bump grow beyond where it starts.
    return [
        np.concatenate([hats(n_bins, count) for count in level]) + 1e-3
        for level in sorted(counts)
        if min(level) > 0
    ]


def hats(n_bins: int, count: int) -> FloatArray:
    """``count`` hat functions with evenly spaced centres, each falling to 0 at its neighbours'
    centres.
    """
    place = (np.arange(n_bins) + 0.5) / n_bins
    centres = (np.arange(count) + 0.5) / count
    return np.maximum(0.0, 1.0 - np.abs(place - centres[:, None]) * count)


def marginal_starts(workload: Marginals) -> list[FloatArray]:
    """Cells of marginals as rows: of the smallest, of the two smallest, …, as long as they are
    fewer than the bins.
    """
    starts: list[FloatArray] = []
    rows = np.zeros((0, workload.n_bins))
    sizes = [
        [size if axis in axes else 1 for axis, size in enumerate(workload.shape)]
        for axes in workload.kept
    ]
    for kept in sorted(sizes, key=math.prod):
        if len(rows) + math.prod(kept) > workload.n_bins:
            break
        cell = np.broadcast_to(np.arange(math.prod(kept)).reshape(kept), workload.shape).ravel()
        rows = np.concatenate(
            [rows, (cell == np.arange(math.prod(kept))[:, None]).astype(np.float64)]
        )
        starts.append(rows + 1e-3)
    return starts

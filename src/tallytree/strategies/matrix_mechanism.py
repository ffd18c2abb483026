"""The matrix mechanism: what any strategy matrix costs on any workload, and two published ways to
choose one.

A strategy A is measured once, every row with the noise that its sensitivity Δ asks for: the largest
sum of absolute values in a column for Laplace noise, the root of the largest sum of squares for
Gaussian noise. Queries W are then answered from least-squares estimates. Their total variance is
V·Δ²·trace((AᵀA)⁻¹WᵀW), V being the variance of noise for sensitivity 1, 2/ε² for Laplace noise (Li
et al. 2010; qardaji2013 §4.1). It does not depend on the data, so it is known beforehand.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.privacy.noise_variances import NoiseKind, noise_variance
from tallytree.strategies.bump_rows import BumpRows
from tallytree.strategies.workloads import Workload

SMALLEST_PIVOT = (
    1e-7  # of the Cholesky factor, relative to the largest: below it rows count as dependent
)
# bins in the sums that low_rank starts from, near the best branching factor (qardaji2013 §3.2)
NEIGHBOURS = 16
RANK_TOLERANCE = (
    1e-8  # relative size of what a strategy may miss of a workload before it counts as unanswerable
)


def strategy_norm(matrix: FloatArray | IntArray, noise: NoiseKind = "laplace") -> float:
    """Sensitivity of all rows together: largest L1 norm of a column, L2 for Gaussian noise."""
    columns = np.asarray(matrix, dtype=np.float64)
    if noise == "gaussian":
        return float(np.sqrt(np.square(columns).sum(axis=0).max()))
    return float(np.abs(columns).sum(axis=0).max())


def expected_error(
    matrix: FloatArray | IntArray,
    workload: Workload,
    *,
    budget: float = 1.0,
    noise: NoiseKind = "laplace",
) -> float:
    """Average variance of the workload's queries under a strategy.

    Parameters
    ----------
    matrix
        One row per strategy query, one column per bin. With continuous noise, scaling all of it
        changes nothing.
    workload
        What is to be answered. A strategy that cannot answer it is refused.
    """
    return unit_variance(strategy_norm(matrix, noise), budget, noise) * relative_error(
        matrix, workload, noise=noise
    )


def unit_variance(norm: float, budget: float, noise: NoiseKind) -> float:
    """Variance of noise on a strategy of some sensitivity, over the square of the sensitivity."""
    return noise_variance(noise, budget, norm) / norm**2


def relative_error(
    matrix: FloatArray | IntArray, workload: Workload, *, noise: NoiseKind = "laplace"
) -> float:
    """Δ²·trace((AᵀA)⁻¹WᵀW) over the number of queries: the average variance in units of that of one
    count.
    """
    strategy = np.asarray(matrix, dtype=np.float64)
    if strategy.ndim != 2 or strategy.shape[1] != workload.n_bins:
        raise RequestError(
            f"A strategy for {workload.n_bins} bins has as many columns, got the shape "
            f"{strategy.shape}."
        )
    strategy = strategy / strategy_norm(strategy, noise)
    bumps = BumpRows.of(strategy)
    if bumps is not None:
        return bumps.total_error(workload) / workload.n_queries
    gram = workload.gram()
    return float(np.sum(covariance(strategy, gram) * gram)) / workload.n_queries


def covariance(strategy: FloatArray, gram: FloatArray) -> FloatArray:
    """(AᵀA)⁻¹, or its pseudo-inverse where A has less than full rank but answers all of the
    workload.
    """
    from scipy.linalg import cho_factor, cho_solve

    precision = strategy.T @ strategy
    try:
        factor = cho_factor(precision, lower=True)
        pivots = np.diag(factor[0])
        if pivots.min() > SMALLEST_PIVOT * pivots.max():
            return cho_solve(factor, np.eye(len(precision)))
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(precision)
    kept = values > values.max() * len(values) * np.finfo(np.float64).eps
    basis = vectors[:, kept]
    missed = gram - (gram @ basis) @ basis.T
    if np.abs(missed).max() > RANK_TOLERANCE * np.abs(gram).max():
        raise RequestError(
            f"The strategy cannot answer the workload: its {len(strategy)} queries have rank "
            f"{int(kept.sum())}, and some "
            f"queries over the {strategy.shape[1]} bins are no combination of them. Add queries, "
            "for instance one per bin."
        )
    return (basis / values[kept]) @ basis.T


def error_lower_bound(workload: Workload) -> float:
    """No strategy has a relative error below this, for either kind of noise: (Σ √s_i)²/N over the
    number of queries.

    s_i are the eigenvalues of WᵀW (Li and Miklau's singular value bound). It is tight up to a few
    percent for Gaussian noise.
    """
    values = np.linalg.eigvalsh(workload.gram())
    return float(np.sqrt(np.maximum(values, 0.0)).sum()) ** 2 / workload.n_bins / workload.n_queries


def eigen_select(workload: Workload) -> FloatArray:
    """Strategy of weighted eigenvectors of WᵀW (Li and Miklau 2012), weights optimal for Laplace
    noise.

    With eigenvalues s_i and eigenvectors q_i, rows w_i·q_i cost Σ s_i/w_i² at sensitivity max_j Σ_i
    w_i·|q_ij|. The weights solve that convex program through its dual: maximise Σ
    (27/4·s_i·g_i²)^(1/3) − Σ λ_j over λ ≥ 0, g = |Q|λ, at w_i = (2s_i/g_i)^(1/3).
    """
    from scipy.optimize import minimize

    values, vectors = np.linalg.eigh(workload.gram())
    kept = values > values.max() * 1e-12
    values, absolute = values[kept] / values.max(), np.abs(vectors[:, kept])

    def dual(prices: FloatArray) -> tuple[float, FloatArray]:
        load = prices @ absolute
        parts = np.cbrt(6.75 * values * load**2)
        return float(prices.sum() - parts.sum()), 1.0 - absolute @ (2.0 / 3.0 * parts / load)

    start = np.full(len(absolute), 1.0)
    options = {"maxiter": 2000, "maxfun": 4000, "ftol": 1e-14, "gtol": 1e-10}
    prices = minimize(
        dual,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(1e-12, None)] * len(start),
        options=options,
    ).x
    weights = np.cbrt(2.0 * values / (prices @ absolute))
    strategy = weights[:, None] * vectors[:, kept].T
    return strategy / strategy_norm(strategy)


def low_rank(workload: Workload, *, rounds: int = 300) -> FloatArray:
    """Strategy L of the low-rank mechanism (Yuan et al. 2012): W = BL, ‖columns of L‖₁ ≤ 1,
    trace(BᵀB) least.

    For a given L the best B is W·L⁺, whose trace is trace((LᵀL)⁻¹WᵀW). So B is eliminated, and L,
    its columns divided by their norms, is moved by L-BFGS. (The paper alternates under a growing
    penalty instead; what comes out depends much on the schedule.) The problem has many local
    optima, so there are two starts: the paper's, the singular vectors of W, mixed with the bins
    themselves, which ends lower; and the bins with sums of 16 neighbours, so that L has a few more
    rows than the rank of W, as the paper advises. The better end is taken, and the bins themselves
    where they are better still: the flat method is a strategy of this form too.
    """
    gram = workload.gram()
    values, vectors = np.linalg.eigh(gram)
    if values.min() <= values.max() * 1e-12:
        raise RequestError(
            "The low-rank strategy is offered for workloads that determine every bin; this one "
            "does not."
        )
    bins = np.eye(len(vectors))
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(len(vectors))]
    singular = bins + 0.3 * eigen_select(workload) * np.sign(largest)[:, None]
    blocks = 0.3 * np.add.reduceat(bins, np.arange(0, len(bins), NEIGHBOURS), axis=0)
    # A little of everything everywhere: an entry of exactly 0 has no slope and would never move.
    wide = np.concatenate([blocks, bins]) + 1e-3
    ends = [bins, *(_descend(gram, start, rounds) for start in (singular, wide))]
    return min(ends, key=lambda rows: relative_error(rows, workload))


def _descend(gram: FloatArray, start: FloatArray, rounds: int) -> FloatArray:
    """A local optimum of trace((LᵀL)⁻¹WᵀW) over matrices whose columns have L1 norm 1, from a
    start.
    """
    from scipy.optimize import minimize
    from threadpoolctl import threadpool_limits

    shape = start.shape

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        rows = flat.reshape(shape)
        norms = np.abs(rows).sum(axis=0)
        inverse = np.linalg.inv(rows.T @ rows)
        weighted = gram * np.outer(norms, norms)
        slope_rows = -2.0 * (rows @ inverse) @ weighted @ inverse
        slope_norms = 2.0 * (inverse * gram) @ norms
        slope = slope_rows + np.sign(rows) * slope_norms
        return float(np.sum(inverse * weighted)) / scale, slope.ravel() / scale

    scale = float(np.trace(gram))
    options = {"maxiter": rounds, "maxfun": 2 * rounds, "maxcor": 20}
    # One thread: many small products wait for each other's threads on a busy machine, for minutes.
    with threadpool_limits(limits=1, user_api="blas"):
        found = minimize(
            objective, start.ravel(), jac=True, method="L-BFGS-B", options=options
        ).x.reshape(shape)
    return np.asarray(found / np.abs(found).sum(axis=0), dtype=np.float64)

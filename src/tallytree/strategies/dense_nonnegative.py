"""Nonnegative least squares with a dense matrix, exactly: block principal pivoting."""

from __future__ import annotations

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray, FloatArray

# exchanges of whole blocks without progress before single exchanges, which always end, take over
PATIENCE = 10
MOST_STEPS = 10_000


def dense_nonnegative_least_squares(gram: FloatArray, target: FloatArray) -> FloatArray:
    """min ½ xᵀGx − hᵀx over x ≥ 0, for a positive definite matrix G (AᵀA) and h (Aᵀy).

    A set of bins is held at 0 and the rest solved freely; bins that turn negative join the set,
    bins whose gradient is negative leave it, all at once, until neither is left. Where that cycles,
    only the last such bin is exchanged (Murty's rule), which ends for every positive definite G
    (Portugal, Júdice and Vicente 1994). A handful of solves is usual.
    """
    free = np.ones(len(target), dtype=bool)
    fewest, patience = len(target) + 1, PATIENCE
    for _ in range(MOST_STEPS):
        x, gradient = _solve_free(gram, target, free)
        scale = np.abs(x).max(initial=1.0)
        wrong = np.where(
            free, x < -1e-12 * scale, gradient < -1e-10 * np.abs(target).max(initial=1.0)
        )
        n_wrong = int(wrong.sum())
        if n_wrong == 0:
            return np.maximum(x, 0.0)
        if n_wrong < fewest:
            fewest, patience = n_wrong, PATIENCE
        elif patience > 0:
            patience -= 1
        else:
            last = np.flatnonzero(wrong)[-1]
            wrong = np.zeros_like(wrong)
            wrong[last] = True
        free ^= wrong
    raise RequestError("Nonnegative least squares did not settle. Use nonnegative 'top-down'.")


def _solve_free(
    gram: FloatArray, target: FloatArray, free: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Minimiser with the other bins at 0, and the gradient at those (0 at free bins)."""
    from scipy.linalg import cho_factor, cho_solve

    x, gradient = np.zeros(len(target)), np.zeros(len(target))
    inside, outside = np.flatnonzero(free), np.flatnonzero(~free)
    if len(inside):
        x[inside] = cho_solve(
            cho_factor(gram[np.ix_(inside, inside)], check_finite=False), target[inside]
        )
    gradient[outside] = gram[np.ix_(outside, inside)] @ x[inside] - target[outside]
    return x, gradient

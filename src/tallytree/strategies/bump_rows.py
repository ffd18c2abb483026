"""Strategies that measure every bin and some sums of bins: A = [D; Θ] with D diagonal. Their
inverse takes O(p²N), not O(N³).

With T = ΘD⁻¹ and K = (I + TTᵀ)⁻¹, a p x p matrix, (AᵀA)⁻¹ = D⁻¹(I − TᵀKT)D⁻¹, and (AᵀA)⁻¹Aᵀ = D⁻¹[I
− TᵀKT, TᵀK].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.workloads import AllRanges, Workload


@dataclass(frozen=True, eq=False)
class BumpRows:
    """The rows of such a strategy.

    Attributes
    ----------
    diagonal
        What every bin counts by itself, D.
    shapes
        The sums of bins over it, T, one row each.
    kernel
        K.
    """

    diagonal: FloatArray
    shapes: FloatArray
    kernel: FloatArray

    @classmethod
    def of(cls, rows: FloatArray | IntArray) -> BumpRows | None:
        """The parts of a matrix whose first rows are the bins, one by one; None for any other."""
        n_bins = rows.shape[1]
        top = np.asarray(rows[:n_bins], dtype=np.float64)
        diagonal = np.diagonal(top).copy() if len(top) == n_bins else np.zeros(1)
        if np.any(diagonal <= 0) or np.count_nonzero(top) != n_bins:
            return None
        from scipy.linalg import cho_factor, cho_solve

        shapes = np.asarray(rows[n_bins:], dtype=np.float64) / diagonal
        unit = np.eye(len(shapes))
        factor = cho_factor(unit + shapes @ shapes.T, lower=True, check_finite=False)
        return cls(diagonal, shapes, cho_solve(factor, unit, check_finite=False))

    def total_error(self, workload: Workload) -> float:
        """trace((AᵀA)⁻¹WᵀW)."""
        scaled = self.shapes / self.diagonal
        if isinstance(workload, AllRanges):
            place = np.arange(1.0, workload.n_bins + 1)
            own, applied = place * (workload.n_bins + 1 - place), workload.times_gram(scaled)
        else:
            gram = workload.gram()
            own, applied = np.diagonal(gram), scaled @ gram
        return float((own / self.diagonal**2).sum() - (self.kernel * (applied @ scaled.T)).sum())

    def inverse(self) -> FloatArray:
        """(AᵀA)⁻¹Aᵀ: noisy answers to least-squares estimates of the bins."""
        answers = self.shapes.T @ self.kernel
        own = np.eye(len(self.diagonal)) - answers @ self.shapes
        return np.concatenate([own, answers], axis=1) / self.diagonal[:, None]

"""Estimates and their errors from noisy answers to bins and nested levels of hats, without ever
forming a dense matrix.

With D the coefficients of the bins, Θ those of the hats and T = ΘD⁻¹, K = (I + TTᵀ)⁻¹ is sparse
before it is inverted, and for weights w of the bins, v = TD⁻¹w and x = Kv the estimate of Σ
w_j·count_j has the coefficients x on the noise of the hats and w_j/d_j − (Tᵀx)_j on that of the
bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.hats import Hats

BLOCK = 1 << 22  # numbers held at once


@dataclass(frozen=True, eq=False)
class HatErrors:
    """A strategy of hats whose rows all have noise of one variance and fourth cumulant."""

    hats: Hats
    variance: float
    cumulant: float

    @cached_property
    def _own(self) -> FloatArray:
        return self.hats.coefficients[0].astype(np.float64)

    @cached_property
    def _shapes(self) -> Any:
        """T, sparse."""
        from scipy.sparse import csr_array

        layers, places = len(self.hats.hats), np.arange(self.hats.n_bins)
        values = (self.hats.coefficients[1:] / self._own).ravel()
        shape = (self.hats.n_hats, self.hats.n_bins)
        return csr_array((values, (self.hats.hats.ravel(), np.tile(places, layers))), shape=shape)

    @cached_property
    def _solver(self) -> Any:
        """Solves (I + TTᵀ)x = v. Every hat meets few others, so that hardly anything fills up."""
        from scipy.sparse import csc_array, eye_array
        from scipy.sparse.linalg import splu

        inner = eye_array(self.hats.n_hats) + self._shapes @ self._shapes.T
        return splu(
            csc_array(inner),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def moments(
        self, first: IntArray, last: IntArray, share: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant of the estimate of bins first … last − 1, less ``share``
        times that of all bins.
        """
        variance, cumulant = np.empty(len(first)), np.empty(len(first))
        places = np.arange(self.hats.n_bins)[:, None]
        block = max(1, BLOCK // self.hats.n_bins)
        for start in range(0, len(first), block):
            here = slice(start, start + block)
            bins = (((places >= first[here]) & (places < last[here])) - share) / self._own[:, None]
            hats = self._solver.solve(self._shapes @ bins)
            bins -= self._shapes.T @ hats
            noise = np.concatenate([bins, hats])
            np.square(noise, out=noise)
            variance[here] = noise.sum(axis=0) * self.variance
            cumulant[here] = np.einsum("ij,ij->j", noise, noise) * self.cumulant
        return variance, cumulant

    @cached_property
    def bin_and_prefix_variances(self) -> tuple[FloatArray, FloatArray]:
        """Variances of all bins and of all prefixes, the empty one first, in linear time."""
        bins, prefixes, _ = self.hats.variances()
        return bins * self.variance, prefixes * self.variance

    def prefix_variances(self, share: float) -> FloatArray:
        """Variance of every prefix less ``share`` times all bins, the empty prefix first, in linear
        time.
        """
        prefixes = self.bin_and_prefix_variances[1]
        with_all = np.concatenate(
            [[0.0], np.cumsum(self._covariance(1 / self._own)) * self.variance]
        )
        return np.maximum(prefixes - 2 * share * with_all + share**2 * prefixes[-1], 0.0)

    def _covariance(self, bins: FloatArray) -> FloatArray:
        """D⁻¹(I − TᵀKT) times something: (AᵀA)⁻¹w from w/d."""
        return (bins - self._shapes.T @ self._solver.solve(self._shapes @ bins)) / self._own

    def estimates(self, noisy: IntArray) -> FloatArray:
        """Least-squares estimate of each bin: D⁻¹(y + TᵀK(z − Ty)) from answers y of the bins and z
        of the hats.
        """
        bins, hats = np.split(noisy.astype(np.float64), [self.hats.n_bins])
        return (bins + self._shapes.T @ self._solver.solve(hats - self._shapes @ bins)) / self._own

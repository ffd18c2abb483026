"""Estimates and their errors from noisy answers to the rows of a strategy matrix (the matrix
mechanism).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.strategies.bump_rows import BumpRows

SMALLEST_PIVOT = (
    1e-7  # of the Cholesky factor, relative to the largest: below it rows count as dependent
)


@dataclass(frozen=True, eq=False)
class MatrixErrors:
    """A strategy matrix of full column rank whose rows all have noise of one variance and fourth
    cumulant.
    """

    rows: IntArray
    variance: float
    cumulant: float

    @cached_property
    def inverse(self) -> FloatArray:
        """(AᵀA)⁻¹Aᵀ: noisy answers to least-squares estimates of the bins."""
        bumps = BumpRows.of(self.rows)
        if bumps is not None:
            return bumps.inverse()
        from scipy.linalg import cho_factor, cho_solve

        rows = self.rows.astype(np.float64)
        try:
            factor, lower = cho_factor(rows.T @ rows, lower=True, check_finite=False)
            pivots = np.abs(np.diag(factor))
            enough = pivots.min() > SMALLEST_PIVOT * pivots.max()
        except np.linalg.LinAlgError:
            enough = False
        if not enough:
            raise RequestError(
                f"The strategy cannot answer every range: its {len(rows)} queries have a rank "
                f"below the {rows.shape[1]} bins. "
                "Add queries, for instance one per bin."
            )
        return cho_solve((factor, lower), rows.T, check_finite=False)

    @cached_property
    def _prefixes(self) -> FloatArray:
        """Row k: coefficients of the noise in the estimate of the first k bins."""
        inverse = self.inverse
        prefixes = np.zeros((inverse.shape[0] + 1, inverse.shape[1]))
        np.cumsum(inverse, axis=0, out=prefixes[1:])
        return prefixes

    def moments(
        self, first: IntArray, last: IntArray, share: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant of the estimate of bins first … last − 1, less ``share``
        times that of all bins.
        """
        variance, cumulant = np.empty(len(first)), np.empty(len(first))
        block = max(1, (1 << 22) // self._prefixes.shape[1])
        for start in range(0, len(first), block):
            here = slice(start, start + block)
            noise = self._prefixes[last[here]] - self._prefixes[first[here]]
            if share:
                noise -= share * self._prefixes[-1]
            np.square(noise, out=noise)
            variance[here] = noise.sum(axis=1) * self.variance
            cumulant[here] = np.einsum("ij,ij->i", noise, noise) * self.cumulant
        return variance, cumulant

    def estimates(self, noisy: IntArray) -> FloatArray:
        """Least-squares estimate of each bin."""
        return self.inverse @ noisy.astype(np.float64)

"""From noisy answers to unbiased estimates, and to the error of any range: the same three steps for
every strategy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.privacy.noise import Noise
from tallytree.strategies.hat_estimates import HatErrors
from tallytree.strategies.matrix import MatrixErrors
from tallytree.strategies.noise_moments import fourth_cumulant
from tallytree.strategies.strategies import (
    HatStrategy,
    MatrixStrategy,
    Strategy,
    TreeStrategy,
    WaveletStrategy,
)
from tallytree.strategies.tree import TreeErrors
from tallytree.strategies.wavelet import WaveletErrors, haar_estimates

SMALLEST_VARIANCE = (
    1e-60  # stands for noise that a huge budget makes vanish, so that formulas may divide by it
)


class RangeErrors(Protocol):
    """How uncertain the estimates of ranges are, known before any data are seen."""

    def moments(
        self, first: IntArray, last: IntArray, share: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant of the estimate of bins first … last − 1, less ``share``
        times that of all bins.
        """


AnyErrors = TreeErrors | WaveletErrors | MatrixErrors | HatErrors


def range_errors(strategy: Strategy, noise: Sequence[Noise | None]) -> AnyErrors:
    """Errors of a strategy measured with the given noise per level; None for a level that is not
    measured.
    """
    variance = np.array(
        [np.inf if level is None else max(level.variance, SMALLEST_VARIANCE) for level in noise]
    )
    cumulant = np.array([0.0 if level is None else fourth_cumulant(level) for level in noise])
    match strategy:
        case TreeStrategy():
            return TreeErrors(strategy.layout, variance, cumulant)
        case WaveletStrategy():
            return WaveletErrors(strategy.n_bins, variance, cumulant)
        case MatrixStrategy():
            return MatrixErrors(strategy.rows, float(variance[0]), float(cumulant[0]))
        case HatStrategy():
            return HatErrors(strategy.hats, float(variance[0]), float(cumulant[0]))


def estimate_bins(errors: AnyErrors, noisy: Sequence[IntArray]) -> FloatArray:
    """Unbiased least-squares estimate of every bin from the noisy answers of each level."""
    match errors:
        case TreeErrors():
            return errors.node_estimates(noisy)[errors.layout.leaves]
        case WaveletErrors():
            return haar_estimates(list(noisy), errors.n_bins)
        case MatrixErrors() | HatErrors():
            return errors.estimates(noisy[0])


def bin_variances(errors: RangeErrors, n_bins: int) -> FloatArray:
    """Variance of the estimate of every bin."""
    if isinstance(errors, HatErrors):
        return errors.bin_and_prefix_variances[0]
    places = np.arange(n_bins)
    return errors.moments(places, places + 1)[0]

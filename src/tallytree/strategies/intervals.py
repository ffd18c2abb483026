"""Intervals around estimates whose errors are sums of independent noise: how many standard
deviations to go.

A normal law would do for sums of many draws, but a single Laplace draw has heavier tails, and short
ranges are sums of few. The excess kurtosis κ₄ / variance² tells how far a sum is from normal. The
law used here is the one with the right variance and kurtosis among differences of two gamma
variables of shape k = 3 / kurtosis: exact for a single Laplace draw (k = 1), for sums of k equal
ones, and for the normal limit. Where all draws have coefficient 1 and only small whole-number
errors occur, the law of the sum itself is used.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.privacy.noise import DiscreteLaplace, Noise

LARGEST_KURTOSIS = 12.0  # beyond it, noise is almost always 0 and the width hardly matters
SMALL_ERRORS = 60.0  # standard deviations up to which whole-number sums get their own law


def check_confidence(confidence: float) -> float:
    """A confidence between 0 and 1, such as 0.95."""
    if (
        isinstance(confidence, bool)
        or not isinstance(confidence, int | float)
        or not 0 < confidence < 1
    ):
        raise RequestError(f"A confidence lies between 0 and 1, such as 0.95; got {confidence!r}.")
    return float(confidence)


def half_widths(variance: FloatArray, cumulant: FloatArray, confidence: float) -> FloatArray:
    """Half-widths of intervals that hold an error of the given variance and fourth cumulant with
    probability ``confidence``.
    """
    squared = np.maximum(variance, np.finfo(np.float64).tiny)
    kurtosis = np.clip(cumulant / squared / squared, 0.0, LARGEST_KURTOSIS)
    grid, quantiles = _quantiles(check_confidence(confidence))
    return np.interp(np.sqrt(kurtosis), grid, quantiles) * np.sqrt(variance)


def largest_half_widths(variance: FloatArray, kurtosis: float, confidence: float) -> FloatArray:
    """What :func:`half_widths` cannot exceed for sums of draws of one kurtosis: Σa⁴ ≤ (Σa²)², so
    that sums have no more.
    """
    grid, quantiles = _quantiles(check_confidence(confidence))
    reached = grid <= np.sqrt(kurtosis) + grid[1]
    return quantiles[reached].max() * np.sqrt(variance) * (1 + 1e-9)


@lru_cache(maxsize=16)
def _quantiles(confidence: float) -> tuple[FloatArray, FloatArray]:
    """Two-sided quantiles in standard deviations over a grid of √kurtosis."""
    grid = np.linspace(0.0, np.sqrt(LARGEST_KURTOSIS), 41)
    return grid, np.array([_quantile(confidence, root * root) for root in grid])


def _quantile(confidence: float, kurtosis: float) -> float:
    """x with P(|X| ≤ x) = confidence, X = √G · Z, Z normal and G gamma with mean 1 and shape 3 /
    kurtosis.
    """
    from scipy import special
    from scipy.optimize import brentq

    normal = float(special.ndtri((1 + confidence) / 2))
    if kurtosis < 1e-3:
        return normal
    shape = 3.0 / kurtosis
    # The mixing variable at equally likely points of its law; 4,000 of them give four digits.
    points = special.gammaincinv(shape, (np.arange(4000) + 0.5) / 4000) / shape
    roots = np.sqrt(np.maximum(points, 1e-300))
    return float(
        brentq(
            lambda x: float(np.mean(special.ndtr(-x / roots))) - (1 - confidence) / 2,
            0.0,
            normal * 20,
        )
    )


def whole_half_widths(noise: Noise, n_draws: IntArray, confidence: float) -> FloatArray:
    """Smallest whole w with P(|sum of n draws| ≤ w) ≥ confidence, for the sums of n draws of the
    same noise.
    """
    check_confidence(confidence)
    widths = np.empty(len(n_draws))
    for n in np.unique(n_draws):
        widths[n_draws == n] = _whole_half_width(noise, int(n), float(confidence))
    return widths


@lru_cache(maxsize=4096)
def _whole_half_width(noise: Noise, n_draws: int, confidence: float) -> int:
    """By the characteristic function: a fast Fourier transform of its n-th power gives the law of
    the sum.
    """
    reach = int(40 * np.sqrt(n_draws * noise.variance)) + 64
    size = 1 << (2 * reach).bit_length()
    angles = 2 * np.pi * np.arange(size) / size
    probabilities = np.real(np.fft.ifft(_characteristic(noise, angles) ** n_draws))
    tail = np.concatenate([probabilities[:1], 2 * probabilities[1 : size // 2]])
    return int(np.searchsorted(np.cumsum(tail), confidence - 1e-12))


def _characteristic(noise: Noise, angles: FloatArray) -> FloatArray:
    if isinstance(noise, DiscreteLaplace):
        p = float(np.exp(-1 / float(noise.scale)))
        return (1 - p) ** 2 / (1 - 2 * p * np.cos(angles) + p * p)
    reach = int(12 * np.sqrt(float(noise.sigma2))) + 8
    values = np.arange(1, reach)
    weights = np.exp(-(values**2) / (2 * float(noise.sigma2)))
    total = np.ones_like(angles)
    for value, weight in zip(values, weights):
        total += 2 * weight * np.cos(value * angles)
    return total / (1 + 2 * weights.sum())

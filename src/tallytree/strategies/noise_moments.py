"""Variance and fourth cumulant of exact noise: what error bars are made of."""

from __future__ import annotations

import math

import numpy as np

from tallytree.privacy.noise import DiscreteLaplace, Noise


def fourth_cumulant(noise: Noise) -> float:
    """κ₄ of the noise; for independent noise it adds up with the fourth powers of the coefficients.

    Discrete Laplace is the difference of two geometric variables, so κ₄ = 2p(1 + 4p + p²)/(1 − p)⁴
    with p = exp(−1/scale). The discrete Gaussian's is 0 up to terms of order exp(−2π²σ²), computed
    where they matter.
    """
    if isinstance(noise, DiscreteLaplace):
        p = math.exp(-1 / noise.scale)
        return 2 * p * (1 + 4 * p + p * p) / math.expm1(-1 / noise.scale) ** 4
    sigma2 = float(noise.sigma2)
    if sigma2 > 10:
        return 0.0
    values = np.arange(-64, 65, dtype=np.float64)
    weights = np.exp(-(values**2) / (2 * max(sigma2, 1e-3)))
    weights /= weights.sum()
    return float((values**4 * weights).sum() - 3 * (values**2 * weights).sum() ** 2)

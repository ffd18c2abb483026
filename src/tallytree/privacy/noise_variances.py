"""Variance of one noisy count for a given budget: the unit in which every predicted error is
expressed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from tallytree.errors import RequestError

NoiseKind = Literal["laplace", "discrete-laplace", "gaussian"]
# stands for a variance that a huge budget makes vanish, so that formulas may divide by it
SMALLEST = 1e-100


def noise_variance(kind: NoiseKind, budget: float | Fraction, sensitivity: float = 1.0) -> float:
    """Variance of the noise on a count of the given sensitivity.

    ``laplace`` is the continuous law of the papers, 2 (Δ/ε)²; ``discrete-laplace`` the law that is
    really drawn, 2p / (1 − p)² with p = e^(−ε/Δ) (ERRATA on kuo2018 §5.1); ``gaussian`` is Δ²/(2ρ)
    under zCDP, which the discrete Gaussian meets up to a relative e^(−2π²σ²).
    """
    if not 0 < budget < math.inf:
        raise RequestError(f"A budget is a positive number, got {budget}.")
    rate = float(budget) / sensitivity
    match kind:
        case "laplace":
            return 2.0 / rate**2
        case "discrete-laplace":
            return max(2.0 * math.exp(-rate) / math.expm1(-rate) ** 2, SMALLEST)
        case "gaussian":
            return sensitivity**2 / (2.0 * float(budget))
        case _:
            raise RequestError(
                f"Noise is one of laplace, discrete-laplace and gaussian, got {kind!r}."
            )


def level_variances(
    shares: Sequence[Fraction | float],
    *,
    budget: float | Fraction = 1.0,
    noise: NoiseKind = "laplace",
) -> tuple[float, ...]:
    """Variance of a noisy count on each level; a level without any share is not measured (infinite
    variance).
    """
    return tuple(
        noise_variance(noise, float(share) * float(budget)) if share > 0 else math.inf
        for share in shares
    )

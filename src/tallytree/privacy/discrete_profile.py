"""The (ε, δ) of discrete Gaussian noise on many answers, asked in rounds, from the noise itself
instead of from ρ.

The conversion of :mod:`tallytree.privacy.conversion` knows ρ alone and must allow for the worst
mechanism of that ρ. Gaussian noise is better than that: at the same (ε, δ) it needs 7 to 15 % less
variance. For whole numbers this is a theorem with a small correction.

**Theorem.** Let a mechanism answer queries in rounds, each with discrete Gaussian noise on every
 answer, the queries and the noise of a round chosen from the answers before. Suppose that for every
 pair of neighbours and every course of the answers Σ s²/(2σ²) <= ρ, where s runs over the
 whole-number differences of the true answers and σ² over their noise; at most n differences are not
 0; and σ² >= σ₀² wherever one is not. Then for every 0 < τ² < σ₀² it is (ε, δ)-DP with

    δ = e**(nκ) δ_G(μ², ε - 2nκ),   μ² = 2ρ σ₀²/(σ₀² - τ²),
    κ = ln((1 + η)/(1 - η)),        η = 2 Σ_{j >= 1} exp(-2π² τ² j²),

where δ_G is the profile of Gaussian noise
(:func:`~tallytree.privacy.gaussian_profile.gaussian_delta`), ε >= 2nκ.

*Proof.* (1) One answer. Draw y from N(0, σ² - τ²), then a whole number k with probability
 proportional to exp(-(k - y)²/(2τ²)). The normaliser θ(y) = Σ_k exp(-(k - y)²/(2τ²)) lies within
 √(2π)τ (1 ± η), by Poisson's summation formula, and ∫ N(y; 0, σ² - τ²) exp(-(k - y)²/(2τ²)) dy is
 proportional to exp(-k²/(2σ²)). So the probability of k is that of the discrete Gaussian times a
 constant times a factor in [1/(1 + η), 1/(1 - η)]; as both add up to 1, the constant lies in [1 -
 η, 1 + η], and the two probabilities differ by a factor within e**±κ. A true answer s moves y, and
 with it k, by exactly s.

(2) All answers. For two neighbours, compare the mechanism with one that draws each answer whose
difference is not 0 as in (1), and all others as they are. Along each course of answers at most n
factors differ from 1, so the probabilities P, Q of the mechanism on the neighbours and P', Q' of
the other satisfy P <= e**(nκ) P', Q >= e**(-nκ) Q', hence P(S) - e**ε Q(S) <= e**(nκ) (P'(S) -
e**(ε - 2nκ) Q'(S)) for every set S of outcomes.

(3) The other mechanism is post-processing, the same for both neighbours, of real answers y with
Gaussian noise in rounds, whose shifts in units of the noise, a_t, are known from the past and
satisfy Σ a_t² <= 2ρ σ₀²/(σ₀² - τ²) = μ². Add a last answer that makes it exactly μ². Under Q' the
shifts' part of the noise, M = Σ a_t Z_t, has E exp(iθM + θ²/2 Σ a_t²) = 1, taking expectations
backwards round by round, so M is N(0, μ²), and the logarithm of the likelihood ratio, M - μ²/2, is
distributed as for one Gaussian answer of shift μ; under P' likewise. ∎

Rounds may thus be adaptive, scales too, as long as ρ, n and σ₀² bound every course: budgets fixed
beforehand do, what one course happened to take does not. Part (3) is the filter of Smith and
Thakurta 2022, "Fully Adaptive Composition for Gaussian Differential Privacy"; (1) is Gaussian
rounding, as in Peikert 2010, "An Efficient and Parallel Gaussian Sampler for Lattices".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction

from tallytree.errors import RequestError
from tallytree.privacy.accounting import Composition, MechanismRecord, Record
from tallytree.privacy.conversion import decimal_of, delta_from_rho, rounded
from tallytree.privacy.gaussian_profile import gaussian_delta, rough_gaussian_delta
from tallytree.privacy.noise import DiscreteGaussian

# 2π² rounded down: e**-(2π² τ²) comes out too large, which is the safe side.
_TWO_PI_SQUARED = Decimal("19.7392088021787172376")
# The τ² that are tried, as hundredths. Below a fifth η is too large to be of use, above 8 it is
# nothing.
_ROUNDINGS = tuple(
    Fraction(hundredths, 100) for hundredths in (*range(20, 200, 5), *range(200, 801, 50))
)


@dataclass(frozen=True)
class GaussianLoss:
    """What the theorem needs to know of answers with discrete Gaussian noise, and all that
    composition needs.

    Attributes
    ----------
    rho
        Bound on Σ s²/(2σ²) over neighbours and courses: the zCDP loss.
    least_sigma2
        The smallest σ² of any answer.
    most_changed
        How many answers one unit can change.
    """

    rho: Fraction
    least_sigma2: Fraction
    most_changed: int

    def __post_init__(self) -> None:
        if self.rho <= 0 or self.least_sigma2 <= 0 or self.most_changed < 1:
            raise RequestError(
                "A Gaussian loss has rho and sigma2 above 0 and at least one answer that changes."
            )

    def then(self, other: GaussianLoss) -> GaussianLoss:
        """Both, one after the other, about the same data."""
        return GaussianLoss(
            self.rho + other.rho,
            min(self.least_sigma2, other.least_sigma2),
            self.most_changed + other.most_changed,
        )

    def beside(self, other: GaussianLoss) -> GaussianLoss:
        """Both, about disjoint entities; see :class:`~tallytree.privacy.accounting.Composition` for
        units of several.
        """
        return GaussianLoss(
            max(self.rho, other.rho),
            min(self.least_sigma2, other.least_sigma2),
            max(self.most_changed, other.most_changed),
        )


def gaussian_loss_of(record: Record) -> GaussianLoss | None:
    """The loss of a tree of measurements, None where one of them has other noise.

    Only for scales that were fixed before the first answer. Where later scales follow from earlier
    answers, state the bounds that hold on every course instead: the whole ρ, the smallest σ² that
    the largest possible share allows.
    """
    if isinstance(record, MechanismRecord):
        if not isinstance(record.noise, DiscreteGaussian):
            return None
        sensitivity = record.sensitivity
        # A difference that is not 0 is at least 1, in L1 and in squared L2.
        return GaussianLoss(
            sensitivity.l2_squared / (2 * record.noise.sigma2),
            record.noise.sigma2,
            min(sensitivity.l1, sensitivity.l2_squared),
        )
    total: GaussianLoss | None = None
    for part in record.parts:
        loss = gaussian_loss_of(part)
        if loss is None:
            return None
        total = loss if total is None else _combined(record, total, loss)
    return total


def _combined(record: Composition, one: GaussianLoss, other: GaussianLoss) -> GaussianLoss:
    return one.beside(other) if record.kind == "parallel" else one.then(other)


def discrete_delta(loss: GaussianLoss, epsilon: Fraction) -> Fraction:
    """A δ, rounded up to 12 digits, for which all answers together are (ε, δ)-DP: the theorem's, or
    ρ's where that is less.

    Examples
    --------
    >>> loss = GaussianLoss(Fraction(1, 60), Fraction(90), 3)
    >>> float(discrete_delta(loss, Fraction(1))), float(delta_from_rho(Fraction(1, 60), Fraction(1)))
    (1.2500557248e-09, 6.06057853475e-09)
    """
    known = delta_from_rho(loss.rho, epsilon)
    rounding = best_rounding(loss, epsilon)
    return known if rounding is None else min(known, _delta_with(loss, epsilon, rounding))


def best_rounding(loss: GaussianLoss, epsilon: Fraction) -> Fraction | None:
    """The τ² of the theorem that gives the least δ, None where none is of use; found in floating
    point.
    """
    usable = [rounding for rounding in _ROUNDINGS if rounding < loss.least_sigma2]
    if not usable:
        return None
    found = {rounding: rough_delta(loss, float(epsilon), rounding) for rounding in usable}
    best = min(usable, key=lambda rounding: found[rounding])
    return best if found[best] < 1 else None


def rough_delta(loss: GaussianLoss, epsilon: float, rounding: Fraction) -> float:
    """The theorem's δ for one τ² in floating point; 1 where it says nothing."""
    width = 2 * math.exp(-float(_TWO_PI_SQUARED) * float(rounding))
    exponent = loss.most_changed * math.log((1 + width) / (1 - width))
    if 2 * exponent >= epsilon:
        return 1.0
    shrunk = float(loss.least_sigma2 / (loss.least_sigma2 - rounding))
    delta = rough_gaussian_delta(math.sqrt(2 * float(loss.rho) * shrunk), epsilon - 2 * exponent)
    return min(1.0, math.exp(exponent) * delta)


def _delta_with(loss: GaussianLoss, epsilon: Fraction, rounding: Fraction) -> Fraction:
    """The theorem's δ for one τ², every step rounded to the safe side."""
    with localcontext(prec=60):
        power = (-_TWO_PI_SQUARED * decimal_of(rounding)).exp()
        # Σ q**(j²) <= q + q⁴ + q⁷ + … = q/(1 - q³), as j² >= 1 + 3 (j - 1).
        eta = 2 * power / (1 - power**3) + Decimal("1e-50")
        exponent = loss.most_changed * ((1 + eta) / (1 - eta)).ln() + Decimal("1e-40")
        factor, cost = Fraction(exponent.exp()), Fraction(2 * exponent)
    if cost >= epsilon:
        return Fraction(1)
    mu_squared = 2 * loss.rho * loss.least_sigma2 / (loss.least_sigma2 - rounding)
    with localcontext(prec=60):
        delta = rounded(
            decimal_of(factor * gaussian_delta(mu_squared, epsilon - cost)), ROUND_CEILING
        )
    return min(Fraction(1), delta)

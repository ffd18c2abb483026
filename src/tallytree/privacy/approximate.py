"""A privacy loss stated as (ε, δ): the largest ρ whose Gaussian noise keeps it, and the (ε, δ) of a
release.

Enters: ε and δ, and what is known beforehand of the answers. Leaves: a zCDP budget, which is split,
charged and checked like any other. It is the true ρ of the noise: larger than the ρ that would
imply (ε, δ) by conversion, and it is what a ledger must be charged, since ρ adds up over releases
and the profile of one release does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, localcontext
from fractions import Fraction

from tallytree.errors import RequestError
from tallytree.privacy.accounting import MechanismRecord, Record, total_loss
from tallytree.privacy.budget import Budget, exact, plain_number
from tallytree.privacy.conversion import (
    LEAST_RHO,
    MOST_RHO,
    decimal_of,
    delta_from_rho,
    epsilon_from_rho,
    rho_from_epsilon,
    rounded,
)
from tallytree.privacy.discrete_profile import GaussianLoss, discrete_delta, gaussian_loss_of
from tallytree.privacy.lattice_profile import lattice_delta
from tallytree.privacy.noise import DiscreteGaussian

# Halvings of an interval that is at most a factor of 2 wide: ρ is found to a part in 10**7.
_HALVINGS = 24


@dataclass(frozen=True)
class AnswerBounds:
    """What is known of all answers before the budget is split; the defaults hold for whatever is
    asked.

    Attributes
    ----------
    least_ratio
        Lower bound on l2²/share over measurements: σ² = ratio/(2ρ). A share is at most 1 and l2² at
        least 1.
    most_changed
        How many answers one unit can change, over all measurements.
    shares
        The shares of all measurements, where they are fixed and a unit changes one answer of each
        by 1; then the accounting is exact. None otherwise.
    """

    least_ratio: Fraction = Fraction(1)
    most_changed: int = 1 << 20
    shares: tuple[Fraction, ...] | None = None

    def __post_init__(self) -> None:
        if self.least_ratio < 1 or self.most_changed < 1:
            raise RequestError(
                "Answers have l2²/share of at least 1, and at least one of them changes."
            )
        if self.shares is not None and not (
            self.shares and min(self.shares) > 0 and sum(self.shares) <= 1
        ):
            raise RequestError("Shares of a budget are above 0 and add up to at most 1.")

    def delta(self, rho: Fraction, epsilon: Fraction) -> Fraction:
        """A δ that holds when the whole budget is ``rho``."""
        loss = GaussianLoss(rho, self.least_ratio / (2 * rho), self.most_changed)
        known = discrete_delta(loss, epsilon)
        if self.shares is None:
            return known
        found = lattice_delta([1 / (2 * rho * share) for share in self.shares], epsilon)
        return known if found is None else min(known, found)


ANY_ANSWERS = AnswerBounds()


@dataclass(frozen=True)
class ApproximateBudget:
    """A stated (ε, δ) and the zCDP budget that keeps it."""

    epsilon: Fraction
    delta: Fraction
    budget: Budget

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon}, delta = {self.delta} ({self.budget})"


def approximate_budget(
    epsilon: object, delta: object, answers: AnswerBounds = ANY_ANSWERS
) -> ApproximateBudget:
    """The budget of a user who states ε and δ; all noise must then be discrete Gaussian.

    Examples
    --------
    >>> stated = approximate_budget(1, "1e-9", AnswerBounds(shares=(Fraction(1, 3),) * 3))
    >>> round(float(stated.budget.total / rho_from_epsilon(Fraction(1), Fraction(1, 10**9))), 3)
    1.106
    """
    loss, chance = exact(epsilon, "epsilon"), exact(delta, "delta")
    return ApproximateBudget(loss, chance, Budget("zcdp", largest_rho(loss, chance, answers)))


def largest_rho(
    epsilon: Fraction, delta: Fraction, answers: AnswerBounds = ANY_ANSWERS
) -> Fraction:
    """The largest ρ found, rounded down to 12 digits, whose discrete Gaussian noise is (ε, δ)-DP;
    never below the conversion's.

    Every ρ that is tried is checked by a rigorous bound; that bounds nearly grow with ρ matters to
    how close the result is to the largest one, not to whether it is right.
    """
    low = rho_from_epsilon(epsilon, delta)
    if not LEAST_RHO <= low <= MOST_RHO:
        kept, way = ("less than 1e-15", "more") if low < LEAST_RHO else ("more than 1e9", "less")
        raise RequestError(
            f"epsilon = {plain_number(epsilon)} with delta = {plain_number(delta)} is kept by a "
            f"rho of {kept}, which is not calculated with. Ask for {way}, or leave delta out."
        )
    high = 2 * low
    for _ in range(_HALVINGS):
        middle = _twelve_digits((low + high) / 2)
        if answers.delta(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low


def record_delta(record: Record, epsilon: Fraction) -> Fraction:
    """A δ, rounded up, for which a release with this record is (ε, δ)-DP; its scales fixed before
    the first answer.

    The least of what ρ implies, what the theorem says where all noise is discrete Gaussian, and the
    exact δ where one unit changes one answer of each measurement by 1.
    """
    known = delta_from_rho(total_loss(record, "zcdp"), epsilon)
    loss = gaussian_loss_of(record)
    if loss is None:
        return known
    found = [known, discrete_delta(loss, epsilon)]
    scales = _scales_in_turn(record)
    exactly = None if scales is None else lattice_delta(scales, epsilon)
    return min(found if exactly is None else [*found, exactly])


def record_epsilon(record: Record, delta: Fraction) -> Fraction:
    """The smallest ε found, rounded up to 12 digits, for which a release with this record is (ε,
    δ)-DP.
    """
    high = epsilon_from_rho(total_loss(record, "zcdp"), delta)
    if gaussian_loss_of(record) is None or high == 0:
        return high
    return _smallest(lambda epsilon: record_delta(record, epsilon) <= delta, high)


def _smallest(holds: Callable[[Fraction], bool], high: Fraction) -> Fraction:
    """The smallest number that was tried and holds, between half of one that holds and that one."""
    low = high / 2
    for _ in range(_HALVINGS):
        with localcontext(prec=60):
            middle = rounded(decimal_of((low + high) / 2), ROUND_CEILING)
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _scales_in_turn(record: Record) -> list[Fraction] | None:
    """σ² of all measurements, where they follow one another and each has sensitivity 1."""
    if isinstance(record, MechanismRecord):
        # A whole-number vector of L2 norm 1 is ±1 at one place.
        if isinstance(record.noise, DiscreteGaussian) and record.sensitivity.l2_squared == 1:
            return [record.noise.sigma2]
        return None
    if record.kind == "parallel":
        return None
    found: list[Fraction] = []
    for part in record.parts:
        scales = _scales_in_turn(part)
        if scales is None:
            return None
        found += scales
    return found


def _twelve_digits(rho: Fraction) -> Fraction:
    with localcontext(prec=60):
        return rounded(decimal_of(rho), ROUND_FLOOR)

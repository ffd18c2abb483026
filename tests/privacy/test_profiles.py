"""(ε, δ) of discrete Gaussian noise: against sums over all outcomes, the best adversary, and
another library.
"""

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.privacy.accounting import Composition, MechanismRecord
from tallytree.privacy.approximate import (
    ANY_ANSWERS,
    AnswerBounds,
    approximate_budget,
    largest_rho,
    record_delta,
    record_epsilon,
)
from tallytree.privacy.budget import stated_budget
from tallytree.privacy.conversion import delta_from_rho, epsilon_from_rho, rho_from_epsilon
from tallytree.privacy.discrete_profile import GaussianLoss, discrete_delta, gaussian_loss_of
from tallytree.privacy.gaussian_profile import (
    _rough_mills_ratio,
    gaussian_delta,
    rough_gaussian_delta,
)
from tallytree.privacy.lattice_profile import lattice_delta
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace
from tallytree.privacy.sensitivity import Sensitivity
from tests.reference import profiles

THIRDS = (Fraction(1, 3),) * 3


@pytest.mark.parametrize(
    ("mu_squared", "epsilon"),
    [
        ("1", "1"),
        ("1/30", "1"),
        ("1e-6", "1/100"),
        ("1e-14", "1e-6"),
        ("3", "10"),
        ("100", "1"),
        ("9", "0"),
        ("1/2", "20"),
    ],
)
def test_the_gaussian_profile_is_right_in_twelve_digits_and_rounded_up(
    mu_squared: str, epsilon: str
) -> None:
    found = gaussian_delta(Fraction(mu_squared), Fraction(epsilon))
    right = profiles.gaussian_delta(Fraction(mu_squared), Fraction(epsilon))
    assert right <= profiles.number(found) <= right * (1 + Fraction(1, 10**11))
    assert rough_gaussian_delta(
        math.sqrt(Fraction(mu_squared)), float(Fraction(epsilon))
    ) == pytest.approx(float(found), rel=1e-6)


def test_far_tails_need_no_digits() -> None:
    assert gaussian_delta(Fraction(1, 10**8), Fraction(10)) == Fraction(1, 10**300)
    with pytest.raises(RequestError, match="mu² must be"):
        gaussian_delta(Fraction(0), Fraction(1))


@settings(deadline=None, max_examples=30)
@given(
    st.lists(
        st.sampled_from([Fraction(text) for text in ("1/3", "1/2", "2", "7/2", "5")]),
        min_size=1,
        max_size=2,
    ),
    st.fractions(0, 5, max_denominator=20),
)
def test_the_exact_profile_is_the_sum_over_all_outcomes(
    sigma2s: list[Fraction], epsilon: Fraction
) -> None:
    found = lattice_delta(sigma2s, epsilon)
    right = profiles.discrete_delta([(1, sigma2) for sigma2 in sigma2s], epsilon)
    assert found is not None
    assert right <= profiles.number(found) <= right * (1 + Fraction(1, 10**9)) + Fraction(1, 10**39)


@pytest.mark.parametrize(
    "shifts",
    [
        [(1, Fraction(20))],
        [(-3, Fraction(60))],
        [(1, Fraction(9)), (1, Fraction(9))],
        [(2, Fraction(30)), (-1, Fraction(12))],
        [(1, Fraction(6)), (4, Fraction(100))],
    ],
)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(7, 3)])
def test_the_theorem_bounds_the_sum_over_all_outcomes(
    shifts: list[tuple[int, Fraction]], epsilon: Fraction
) -> None:
    rho = sum((Fraction(shift**2) / (2 * sigma2) for shift, sigma2 in shifts), Fraction(0))
    loss = GaussianLoss(rho, min(sigma2 for _, sigma2 in shifts), len(shifts))
    found = discrete_delta(loss, epsilon)
    assert profiles.discrete_delta(shifts, epsilon) <= profiles.number(found)
    assert found <= delta_from_rho(rho, epsilon)


@pytest.mark.parametrize(("rho", "epsilon"), [("1/8", "1"), ("1/8", "3/2"), ("1/6", "2")])
def test_the_theorem_bounds_every_adversary_that_chooses_shifts_and_scales_in_rounds(
    rho: str, epsilon: str
) -> None:
    """Two rounds, three scales, every shift that the budget allows, the second round chosen after
    the first answer.
    """
    scales = [Fraction(4), Fraction(9), Fraction(18)]
    worst = profiles.adversary_delta(Fraction(rho), scales, Fraction(epsilon), rounds=2)
    found = discrete_delta(GaussianLoss(Fraction(rho), Fraction(4), 2), Fraction(epsilon))
    assert worst <= profiles.number(found)
    assert found < delta_from_rho(Fraction(rho), Fraction(epsilon)) * Fraction(3, 4)


def test_the_profile_of_real_noise_alone_would_be_too_optimistic() -> None:
    """So the correction for whole numbers is needed: between two values of the loss δ is a chord
    above the curve.
    """
    sigma2, epsilon = Fraction(30), Fraction(1)
    assert profiles.number(gaussian_delta(1 / sigma2, epsilon)) < profiles.discrete_delta(
        [(1, sigma2)], epsilon
    )


def test_large_noise_costs_what_real_noise_costs() -> None:
    loss = GaussianLoss(Fraction(1, 60), Fraction(10**6), 1000)
    assert discrete_delta(loss, Fraction(1)) / gaussian_delta(
        Fraction(1, 30), Fraction(1)
    ) < Fraction(10001, 10000)
    assert discrete_delta(loss, Fraction(1)) >= gaussian_delta(Fraction(1, 30), Fraction(1))
    assert lattice_delta([Fraction(10**9)] * 3, Fraction(1)) is None


def test_small_noise_falls_back_to_rho() -> None:
    loss = GaussianLoss(Fraction(5), Fraction(1, 10), 1)
    assert discrete_delta(loss, Fraction(10)) == delta_from_rho(Fraction(5), Fraction(10))


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
@pytest.mark.parametrize("sigma2", ["2", "9", "30", "81"])
@pytest.mark.parametrize("rounds", [1, 4])
def test_another_library_encloses_our_delta(sigma2: str, epsilon: str, rounds: int) -> None:
    """dp-accounting rounds losses to a grid, down for its optimistic and up for its pessimistic
    figure.
    """
    ours = lattice_delta([Fraction(sigma2)] * rounds, Fraction(epsilon))
    low, high = (
        _peer_delta(Fraction(sigma2), Fraction(epsilon), rounds, pessimistic=way)
        for way in (False, True)
    )
    assert ours is not None
    if high < 1e-13:  # its convolutions are no better
        assert ours < Fraction(1, 10**13)
        return
    assert low * (1 - 1e-9) <= float(ours) <= high * (1 + 1e-9)
    assert high / low < 1.05
    # What ρ implies lies above, and so does the theorem.
    loss = GaussianLoss(rounds / (2 * Fraction(sigma2)), Fraction(sigma2), rounds)
    assert (
        low
        <= float(discrete_delta(loss, Fraction(epsilon)))
        <= float(delta_from_rho(loss.rho, Fraction(epsilon)))
    )


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
@pytest.mark.parametrize("delta", ["1e-5", "1e-9"])
def test_stated_losses_need_less_variance_and_another_library_agrees(
    epsilon: str, delta: str
) -> None:
    stated = approximate_budget(epsilon, delta, AnswerBounds(shares=THIRDS))
    sigma2 = 3 / (2 * stated.budget.total)
    assert _peer_delta(sigma2, Fraction(epsilon), 3, pessimistic=False) <= float(Fraction(delta))
    saved = 1 - rho_from_epsilon(Fraction(epsilon), Fraction(delta)) / stated.budget.total
    assert 0.07 < saved < 0.16
    # A hundredth less variance would break the promise, by the library's optimistic figure already.
    assert _peer_delta(sigma2 * Fraction(99, 100), Fraction(epsilon), 3, pessimistic=False) > float(
        Fraction(delta)
    )


def _peer_delta(sigma2: Fraction, epsilon: Fraction, rounds: int, *, pessimistic: bool) -> float:
    law = pld.from_discrete_gaussian_mechanism(
        math.sqrt(sigma2), pessimistic_estimate=pessimistic, value_discretization_interval=2e-4
    )
    return law.self_compose(rounds).get_delta_for_epsilon(float(epsilon))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "2", "12"])
@pytest.mark.parametrize(
    "answers", [ANY_ANSWERS, AnswerBounds(Fraction(3), 40), AnswerBounds(shares=THIRDS)]
)
def test_the_largest_rho_keeps_what_is_stated(epsilon: str, answers: AnswerBounds) -> None:
    delta = Fraction(1, 10**7)
    rho = largest_rho(Fraction(epsilon), delta, answers)
    assert answers.delta(rho, Fraction(epsilon)) <= delta
    assert rho >= rho_from_epsilon(Fraction(epsilon), delta)
    if float(epsilon) <= 1:
        assert rho > rho_from_epsilon(Fraction(epsilon), delta) * Fraction(106, 100)
        assert answers.delta(rho * Fraction(1001, 1000), Fraction(epsilon)) > delta


def _measurement(l1: int, l2_squared: int, sigma2: Fraction | None) -> MechanismRecord:
    noise = DiscreteLaplace(Fraction(10)) if sigma2 is None else DiscreteGaussian(sigma2)
    sensitivity = Sensitivity(l1, l2_squared)
    stated = Fraction(l1, 10) ** 2 / 2 if sigma2 is None else l2_squared / (2 * sigma2)
    return MechanismRecord("test", 0, "counts", "one person", sensitivity, noise, stated)


def test_records_compose_and_state_their_profile() -> None:
    plain = [_measurement(1, 1, Fraction(40)), _measurement(1, 1, Fraction(80))]
    both = Composition("sequential", tuple(plain))
    assert gaussian_loss_of(both) == GaussianLoss(Fraction(3, 160), Fraction(40), 2)
    assert record_delta(both, Fraction(1)) == lattice_delta(
        [Fraction(40), Fraction(80)], Fraction(1)
    )
    beside = Composition("parallel", (both, _measurement(2, 4, Fraction(50))))
    assert gaussian_loss_of(beside) == GaussianLoss(Fraction(1, 25), Fraction(40), 2)
    loss = gaussian_loss_of(beside)
    assert loss is not None
    assert record_delta(beside, Fraction(1)) == discrete_delta(loss, Fraction(1))
    mixed = Composition("sequential", (*plain, _measurement(1, 1, None)))
    assert gaussian_loss_of(mixed) is None
    assert record_delta(mixed, Fraction(1)) == delta_from_rho(
        Fraction(3, 160) + Fraction(1, 200), Fraction(1)
    )


def test_two_changed_answers_are_no_single_change() -> None:
    """Sensitivities of squared length 2 and 3 change two and three answers: the exact profile of
    one is not theirs.
    """
    for length in (2, 3):
        record = _measurement(length, length, Fraction(40))
        assert record_delta(record, Fraction(1)) >= lattice_delta(
            [Fraction(40)] * length, Fraction(1)
        )


def test_the_epsilon_of_a_record_holds_and_is_below_what_rho_implies() -> None:
    record = Composition("sequential", tuple(_measurement(1, 1, Fraction(90)) for _ in range(3)))
    delta = Fraction(1, 10**9)
    epsilon = record_epsilon(record, delta)
    assert (
        record_delta(record, epsilon) <= delta < record_delta(record, epsilon * Fraction(999, 1000))
    )
    assert epsilon < epsilon_from_rho(Fraction(1, 60), delta) * Fraction(97, 100)


def test_bounds_that_cannot_be_meant_are_refused() -> None:
    with pytest.raises(RequestError, match="l2²/share"):
        AnswerBounds(Fraction(1, 2))
    with pytest.raises(RequestError, match="Shares"):
        AnswerBounds(shares=(Fraction(2, 3), Fraction(1, 2)))
    with pytest.raises(RequestError, match="delta must"):
        approximate_budget(1, 0)
    with pytest.raises(RequestError, match="delta must"):
        approximate_budget(1, 2)
    with pytest.raises(RequestError, match="Gaussian loss"):
        GaussianLoss(Fraction(1), Fraction(0), 1)
    with pytest.raises(RequestError, match="at least one sigma2"):
        lattice_delta([], Fraction(1))


def test_users_state_epsilon_and_delta() -> None:
    budget = stated_budget(1, None, "pure", delta="1e-9")
    assert replace(budget, asked=None) == approximate_budget(1, "1e-9").budget
    assert (budget.definition, budget.asked) == ("zcdp", (1, Fraction(1, 10**9)))
    assert str(approximate_budget(1, "1e-9")).startswith(
        "epsilon = 1, delta = 1/1000000000 (rho = "
    )
    with pytest.raises(RequestError, match="delta goes with epsilon"):
        stated_budget(None, 1, "zcdp", delta="1e-9")
    with pytest.raises(RequestError, match=r"epsilon = 0.000000001 with .*Ask for more"):
        stated_budget("1e-9", None, "pure", delta="1e-9")
    with pytest.raises(
        RequestError, match=r"epsilon = 10000000000 with delta = 0.1 .*Ask for less"
    ):
        stated_budget("1e10", None, "pure", delta="0.1")


@pytest.mark.parametrize("x", [0.1, 3.0, 24.9, 25.0, 26.0, 60.0, 1e4])
def test_the_rough_ratio_of_tail_and_density_has_nine_digits(x: float) -> None:
    exact = (
        mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2))
        / 2
        * mpmath.sqrt(2 * mpmath.pi)
        * mpmath.exp(mpmath.mpf(x) ** 2 / 2)
    )
    # The next term of the series is 105/x⁸, 7·10⁻¹⁰ where the series begins.
    assert _rough_mills_ratio(x) == pytest.approx(float(exact), rel=1e-9)

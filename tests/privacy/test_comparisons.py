from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from tallytree.boxes.measure import level_bias, parts_noise, splits_noise
from tallytree.errors import RequestError
from tallytree.privacy.budget import Budget, pure_loss
from tallytree.privacy.comparisons import cheapest_parts, exceed_zero
from tallytree.privacy.journal import Journal
from tallytree.privacy.noise import DiscreteLaplace
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import descent_sensitivity, tiling_sensitivity
from tests.attacks.transcript import log_probability
from tests.reference.partitions import absolute_deviations, all_tilings, tiling_probabilities

# Four cells, two halves, the whole: node 0 is all of it, 1 and 2 its halves, then the cells.
STARTS = [1, 3, 5, 7, 7, 7, 7, 7]


def costs_of(counts):
    return np.array(
        [absolute_deviations(counts[a:b]) for a, b in [(0, 4), (0, 2), (2, 4)]] + [0] * 4
    )


def neighbours(n, seed):
    """Counts of four cells and the same with one entity more, in every cell."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        counts = rng.choice([0, 1, 2, 5, 9], size=4)
        for cell in range(4):
            more = counts.copy()
            more[cell] += 1
            yield counts, more


def test_no_neighbour_changes_the_difference_of_two_tilings_by_more_than_the_sensitivity():
    worst = 0
    tilings = list(all_tilings(STARTS))
    for counts, more in neighbours(200, 1):
        change = costs_of(more) - costs_of(counts)
        moved = [sum(change[node] for node in tiling) for tiling in tilings]
        worst = max(worst, max(moved) - min(moved))
    assert worst == tiling_sensitivity().l1
    assert tiling_sensitivity(contributions=3).l1 == 6


def loss_of_tilings(scale, price=3, **law):
    worst = 0.0
    for counts, more in neighbours(25, 2):
        one, other = (
            tiling_probabilities(costs_of(c), price, scale, **law) for c in (counts, more)
        )
        worst = max(
            worst,
            *(abs(np.log(one[tiling] / other[tiling])) for tiling in one if one[tiling] > 1e-9),
        )
    return worst


def test_the_choice_of_a_tiling_costs_what_is_paid_and_half_the_noise_more():
    """The law of the outcome itself, summed over all noise, for all neighbours."""
    epsilon = 1
    scale = float(parts_noise(Budget("pure", Fraction(epsilon)), 1).scale)
    assert scale == 2
    assert 0.5 < loss_of_tilings(scale) <= epsilon
    assert loss_of_tilings(scale / 2) > epsilon


def test_without_noise_on_single_cells_one_outcome_speaks_of_all_boxes_around_a_cell():
    """All cells single: each of the boxes around a cell must have cost more, so that an entity's
    losses in all of them add up.

    Eight cells, all empty or one of them with one entity: three boxes of 2, 4 and 8 cells hold that
    cell, and each costs 1 more. They are refused where their noise is above (cells − 1) price −
    cost. Half of that again with eight cells, and without bound with more. With stretches that
    begin anywhere instead of halves of halves there are seven such boxes.
    """
    scale, price = 2.0, 3
    beyond = [lambda cost, n=n: np.log(tail(scale, (n - 1) * price - cost)) for n in (2, 4, 8)]
    assert sum(one(1) - one(0) for one in beyond) == pytest.approx(1.5)


def tail(scale, bound):
    """P(noise > bound) for discrete Laplace noise and a bound of 0 or more."""
    q = np.exp(-1 / scale)
    return q ** (bound + 1) / (1 + q)


def test_tilings_are_chosen_by_their_law():
    counts, price, scale, n = np.array([9, 9, 0, 1]), 3, Fraction(2), 4000
    costs = costs_of(counts)
    expected = tiling_probabilities(costs, price, float(scale))
    found = dict.fromkeys(expected, 0)
    for seed in range(n):
        marks = cheapest_parts(
            costs,
            price,
            np.array(STARTS),
            DiscreteLaplace(scale),
            KeyStream.from_insecure_seed(seed),
            level=0,
            query="t",
        )
        found[tuple(np.flatnonzero(marks))] += 1
    for tiling, probability in expected.items():
        assert binomtest(found[tiling], n, probability).pvalue > 1e-4, tiling
    wrong = tiling_probabilities(costs, price, 0.7 * float(scale))
    assert min(binomtest(found[tiling], n, wrong[tiling]).pvalue for tiling in wrong) < 1e-6


def test_decisions_have_their_probability_and_not_that_of_noise_30_percent_off():
    law, n = DiscreteLaplace(Fraction(5)), 20_000
    for value in (-7, 0, 1, 6):
        stream = KeyStream.from_insecure_seed(value + 50)
        found = int(exceed_zero(np.full(n, value), law, stream, level=0, query="split").sum())
        assert binomtest(found, n, np.exp(log_probability(value, 1, law))).pvalue > 1e-4
        if value in (-7, 6):
            for off in (Fraction(7, 10), Fraction(13, 10)):
                wrong = np.exp(log_probability(value, 1, DiscreteLaplace(5 * off)))
                assert binomtest(found, n, wrong).pvalue < 1e-6


def loss_on_the_way(counts, delta, law):
    """Losses of one entity in all decisions on the way down to it, whose boxes hold these counts
    without it; the last box is split too, or is not.
    """
    biased = [
        [max(c + more - depth * delta, -delta) for depth, c in enumerate(counts)] for more in (0, 1)
    ]
    split = [log_probability(b, 1, law) - log_probability(a, 1, law) for a, b in zip(*biased)]
    kept = [log_probability(b, 0, law) - log_probability(a, 0, law) for a, b in zip(*biased)]
    return max(sum(map(abs, split)), sum(map(abs, split[:-1])) + abs(kept[-1]))


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(2), Fraction(9)])
def test_all_decisions_of_a_descent_together_cost_what_is_paid(dimensions, epsilon):
    law = splits_noise(Budget("pure", epsilon), dimensions, 1)
    delta = level_bias(law, dimensions)
    assert np.exp(-delta / float(law.scale)) <= 2.0**-dimensions
    falls = [0, 1, delta // 2, delta]
    worst = 0.0
    for last, steps in product(range(0, 3), product(falls, repeat=4)):
        # Counts that never grow on the way down, around those where the biased count of the last
        # boxes is near 0.
        for depth in range(5):
            counts = last + depth * delta + np.cumsum((0, *steps))[::-1] - sum(steps[: 4 - depth])
            if counts.min() >= 0 and np.all(np.diff(counts) <= 0):
                worst = max(worst, loss_on_the_way(counts.tolist(), delta, law))
    assert 0.4 * float(epsilon) < worst <= float(epsilon) * (1 + 1e-12)


def test_less_bias_than_needed_costs_more():
    law = splits_noise(Budget("pure", Fraction(1, 4)), 2, 1)
    delta = level_bias(law, 2)
    for bias, within in ((delta, True), (delta // 8, False)):
        counts = [bias * depth + 1 for depth in (7, 7, 7, 7, 7, 7, 7, 7)]
        assert (loss_on_the_way(counts, bias, law) <= 0.25) == within


def test_a_step_of_pure_loss_is_charged_for_under_zcdp():
    for rho in (Fraction(1, 3), Fraction(1, 10**9), Fraction(50)):
        epsilon = pure_loss(Budget("zcdp", rho))
        assert epsilon**2 / 2 <= rho < (epsilon * Fraction(1_000_001, 1_000_000)) ** 2 / 2
    assert pure_loss(Budget("pure", Fraction(1, 3))) == Fraction(1, 3)


def test_noisy_values_are_neither_returned_nor_kept(tmp_path):
    stream = KeyStream.from_insecure_seed(3, Journal(tmp_path))
    law = DiscreteLaplace(Fraction(50))
    marks = cheapest_parts(
        np.array([700, 300, 300]), 9, np.array([1, 3, 3, 3]), law, stream, level=0, query="parts"
    )
    above = exceed_zero(np.array([700, -700]), law, stream, level=1, query="split")
    assert marks.tolist() in ([1, 0, 0], [0, 1, 1])
    for file in tmp_path.glob("*.answer"):
        values = np.frombuffer(file.read_bytes().split(b"\n", 3)[3], dtype="<i8")
        assert set(values.tolist()) <= {0, 1}
    # A run that goes on gets the outcomes that were kept, under whatever key.
    other = KeyStream.from_insecure_seed(4, Journal(tmp_path))
    again = cheapest_parts(
        np.array([0, 0, 0]), 9, np.array([1, 3, 3, 3]), law, other, level=0, query="parts"
    )
    assert again.tolist() == marks.tolist()
    assert (
        exceed_zero(np.array([0, 0]), law, other, level=1, query="split").tolist() == above.tolist()
    )


def test_enormous_values_do_not_wrap_around():
    law, stream = DiscreteLaplace(Fraction(2)), KeyStream.from_insecure_seed(1)
    assert exceed_zero(
        np.array([2**62, -(2**62)]), law, stream, level=0, query="split"
    ).tolist() == [1, 0]
    costs = np.array([2**61, 0, 0])
    assert cheapest_parts(
        costs, 5, np.array([1, 3, 3, 3]), law, stream, level=0, query="t"
    ).tolist() == [0, 1, 1]


def test_a_fanout_is_at_least_two():
    assert [descent_sensitivity(1 << d) for d in (1, 2, 3)] == [3, Fraction(7, 3), Fraction(15, 7)]
    assert descent_sensitivity(4, contributions=2) == Fraction(14, 3)
    with pytest.raises(RequestError, match="2 or more"):
        descent_sensitivity(1)

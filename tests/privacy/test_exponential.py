import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from tallytree.errors import RequestError
from tallytree.privacy.budget import Budget
from tallytree.privacy.exponential import (
    choose_candidates,
    choose_exactly,
    exponential_rate,
    weight_tables,
)
from tallytree.privacy.randomness import KeyStream
from tests.reference.exponential import choice_of, choice_probabilities


class Script:
    """Given bits instead of random ones: one word per draw, then the words that continue it."""

    def __init__(self, words, more=()):
        self.words, self.more, self.extended = words, more, 0

    def claim(self, places):
        """Scripts may be asked again."""

    def block(self, places, start, stop, words_per_draw):
        return np.array(self.words[start:stop], dtype=np.uint64)

    def attempt(self, places, draws, attempt):
        raise AssertionError("the exponential mechanism never rejects")

    def extension(self, places, draw, word, attempt):
        self.extended += 1
        yield from self.more
        yield from itertools.repeat(0)


def choose(scores, rate, source):
    scores = np.array(scores, dtype=np.int64)
    return int(
        choose_candidates(scores, np.array([0, len(scores)]), rate, source, level=0, query="test")[
            0
        ]
    )


def test_frequencies_are_those_of_the_mechanism_and_not_of_a_rate_30_percent_off():
    scores, rate, n = [0, -3, -1, -7, -1, 2], Fraction(2, 7), 20_000
    stream = KeyStream.from_insecure_seed(5)
    lists = np.tile(np.array(scores, dtype=np.int64), n)
    chosen = choose_candidates(
        lists, np.arange(n + 1) * len(scores), rate, stream, level=0, query="test"
    )
    counts = np.bincount(chosen, minlength=len(scores))
    assert chisquare(counts, n * np.array(choice_probabilities(scores, rate))).pvalue > 1e-4
    for off in (Fraction(7, 10), Fraction(13, 10)):
        assert (
            chisquare(counts, n * np.array(choice_probabilities(scores, rate * off))).pvalue < 1e-6
        )


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(-90, 90), min_size=1, max_size=12),
    rate=st.fractions(Fraction(1, 5000), 2, max_denominator=5000),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4),
)
def test_a_scripted_draw_picks_the_candidate_of_its_uniform_number(scores, rate, words):
    source = Script(words[:1], words[1:])
    # After the four words the script goes on with zeros, so this is the whole number.
    u = Fraction(sum(word << 64 * place for place, word in enumerate(reversed(words))), 1 << 256)
    assert choose(scores, rate, source) == choice_of(u, scores, rate)


def test_exact_path_agrees_with_quick_path():
    rng = np.random.default_rng(3)
    rate = Fraction(1, 90)
    for _ in range(200):
        scores = rng.integers(-500, 500, size=rng.integers(2, 40))
        word = int(rng.integers(0, 2**63)) * 2
        lag = scores.max() - scores
        exact = choose_exactly(lag, rate, word, iter([1 << 40, 7]))
        assert choose(scores, rate, Script([word], [1 << 40, 7])) == exact


def test_a_draw_on_a_boundary_asks_for_more_bits():
    # Two equal weights: the boundary is at U = 1/2 exactly.
    just_below, just_above = Script([2**63 - 1], [2**64 - 1] * 3), Script([2**63])
    assert choose([0, 0], Fraction(1), just_below) == 0
    assert choose([0, 0], Fraction(1), just_above) == 1
    assert just_below.extended
    assert just_above.extended


def test_far_scores_neither_overflow_nor_win():
    for scores in ([-(2**62), 2**62], [-(2**63), 0, -1]):
        assert choose(scores, Fraction(50), KeyStream.from_insecure_seed(1)) == 1


def test_weights_are_lower_bounds_within_their_slack():
    for rate in (Fraction(1, 10**6), Fraction(3, 1000), Fraction(5)):
        tables = weight_tables(rate)
        lag = np.unique(
            np.array([0, 1, 2, 3, 2047, 2048, 99_999, tables.end - 1, tables.end, 2**60])
        )
        units = 2.0**31 * np.exp(-float(rate) * lag.astype(float))
        found = tables.weights(lag)
        assert np.all(found <= units + 1e-3)
        assert np.all(units - found < tables.slack + 1e-3)


def test_rate_of_a_budget():
    assert exponential_rate(Budget("pure", Fraction(1, 10)), 1) == Fraction(1, 20)
    assert exponential_rate(Budget("pure", Fraction(1, 10)), 3) == Fraction(1, 60)
    for rho in (Fraction(1, 2), Fraction(3, 10**7), Fraction(40)):
        epsilon = 2 * exponential_rate(Budget("zcdp", rho), 1)
        assert epsilon**2 / 8 <= rho
        assert epsilon**2 / 8 > rho * Fraction(999_999, 1_000_000)


def test_bad_choices_are_refused():
    with pytest.raises(RequestError, match="candidates"):
        choose_candidates(
            np.array([1]),
            np.array([0, 1, 1]),
            Fraction(1),
            KeyStream.from_insecure_seed(1),
            level=0,
            query="x",
        )
    with pytest.raises(RequestError, match="rate"):
        choose([1, 2], Fraction(0), KeyStream.from_insecure_seed(1))


def test_the_largest_draw_of_all_takes_the_last_candidate():
    """U just below 1, however many bits are taken: the last candidate has no upper end that it must
    stay below.
    """
    ones = (1 << 64) - 1
    assert choose_exactly(np.array([0, 3, 0]), Fraction(1, 3), ones, iter([ones] * 4)) == 2

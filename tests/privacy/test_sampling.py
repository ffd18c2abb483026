"""The sampling kernels against their slow twins."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.privacy.inversion import build_table
from tallytree.privacy.kernels import (
    REJECTED,
    UNDECIDED,
    Span,
    _upper_half,
    accept_within_block,
    add_in_place,
    fill_counters,
    gather_words_in_place,
    invert,
    sign_in_place,
)
from tallytree.privacy.probabilities import LaplaceMagnitude, enclose_exp, floor_of
from tallytree.privacy.samplers import acceptance_tables
from tests.reference.sampling import invert as slow_invert

lengths = st.lists(st.integers(0, 7), min_size=1, max_size=8)


@given(lengths, st.integers(0, 3), st.integers(1, 3), st.data())
def test_counters_and_words_of_any_span_are_those_of_the_whole(
    lengths: list[int], first_draw: int, words_per_draw: int, data: st.DataObject
) -> None:
    offsets = 5 + np.cumsum([0, *lengths])
    n_draws = sum(lengths)
    start = data.draw(st.integers(0, n_draws))
    stop = data.draw(st.integers(start, n_draws))
    # Instead of a cipher: word w of region r stands for itself.
    wanted = []
    for row, length in enumerate(lengths):
        before = first_draw if row == 0 else 0
        wanted += [
            (40 + row, word)
            for word in range(before * words_per_draw, (before + length) * words_per_draw)
        ]
    span = Span(offsets, 40, first_draw, start, stop, words_per_draw)
    buffer, n_counters = fill_counters(span)
    assert len(buffer) >= 2 * n_counters + 2
    regions, blocks = buffer[: 2 * n_counters : 2].copy(), buffer[1 : 2 * n_counters : 2].copy()
    buffer[: 2 * n_counters : 2] = regions * 1000 + 2 * blocks
    buffer[1 : 2 * n_counters : 2] = regions * 1000 + 2 * blocks + 1
    words = gather_words_in_place(span, buffer)
    expected = [
        1000 * region + word
        for region, word in wanted[start * words_per_draw : stop * words_per_draw]
    ]
    assert words.tolist() == expected


@pytest.mark.parametrize(
    "scale", [Fraction(1, 50), Fraction(2, 3), Fraction(9), Fraction(300)], ids=str
)
def test_inversion_counts_the_thresholds_above(scale: Fraction) -> None:
    table = build_table(LaplaceMagnitude(scale))
    thresholds = table.thresholds.tolist()
    words = [int(w) for w in np.random.default_rng(3).integers(0, 2**64, 300, dtype=np.uint64)]
    # Every threshold, and a little to either side; small words reach the end of the table.
    sample = thresholds[1 :: max(1, len(thresholds) // 100)]
    words += [2 * t + d for t in sample for d in (-2, -1, 0, 1, 2, 3) if 0 <= 2 * t + d < 2**64]
    words += [0, 1, 2, 3, 2**64 - 1, *(2**b for b in range(64))]
    values = np.empty(len(words), dtype=np.int64)
    n_undecided = invert(np.array(words, dtype=np.uint64), table.thresholds, table.bounds, values)
    expected = [slow_invert(word, thresholds) for word in words]
    assert n_undecided == expected.count(None) > 0
    assert values.tolist() == [UNDECIDED if e is None else e for e in expected]


def test_sign_is_the_lowest_bit() -> None:
    values = np.array([0, 3, 4, 2**62], dtype=np.int64)
    sign_in_place(values, np.array([1, 1, 2, 2**64 - 1], dtype=np.uint64))
    assert values.tolist() == [0, -3, 4, -(2**62)]


def test_sums_are_clipped() -> None:
    noise = np.array([5, -5, 100, -100, 100])
    add_in_place(noise, np.array([1, 1, 1, 60, -60]), 50)
    assert noise.tolist() == [6, -4, 50, -50, 50]


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_upper_half_of_a_product(a: int, b: int) -> None:
    assert int(_upper_half(np.uint64(a), np.uint64(b))) == a * b >> 64


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(2**21, 2**61),
    st.integers(0, 599),
    st.integers(0, 2**25 - 1),
    st.integers(-40, 40),
)
def test_acceptance_is_certain_only_where_it_is_true(
    sigma2: Fraction, block: int, place: int, distance: int
) -> None:
    """Bits close to the exact threshold: the kernel decides rightly or not at all, and decides all
    but the closest.
    """
    shift = ((sigma2.numerator // sigma2.denominator).bit_length() - 1) // 2 - 6
    place %= 1 << shift
    digits = 64 - shift
    start = block << shift
    exponent = place * (2 * start + place) / (2 * sigma2)
    threshold = floor_of(lambda bits: enclose_exp(exponent, bits), digits) if place else 1 << digits
    u = min(max(threshold + distance, 0), (1 << digits) - 1)
    magnitudes = np.empty(1, dtype=np.int64)
    words = np.array([[0, place << digits | u]], dtype=np.uint64)
    accept_within_block(
        np.array([block]), words, shift, acceptance_tables(sigma2, shift, 600), magnitudes
    )
    if magnitudes[0] == UNDECIDED:
        # At 2**-63 the slack is 16; with fewer digits only the threshold itself and a neighbour are
        # in doubt.
        assert abs(u - threshold) <= 1 + (32 >> (shift - 1))
    else:
        assert magnitudes[0] == (start + place if u < threshold else REJECTED)

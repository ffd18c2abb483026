"""The weighted whole isotonic fit: exact where sums are huge and means differ by less than a float
can tell.
"""

from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import InputError
from tallytree.papers.fioretto2021.kernels.chain import fit_chain


def exact_fit(total: list[int], weight: list[int]) -> list[int]:
    """Min-max formula in rational numbers, rounded half up."""
    n = len(total)
    fit = []
    for i in range(n):
        mean = max(
            min(Fraction(sum(total[a : b + 1]), sum(weight[a : b + 1])) for b in range(i, n))
            for a in range(i + 1)
        )
        fit.append((2 * mean.numerator + mean.denominator) // (2 * mean.denominator))
    return fit


@pytest.mark.parametrize("magnitude", [3, 1000, 10**15])
def test_equals_the_rational_solution(magnitude: int) -> None:
    rng = np.random.default_rng(magnitude % 97)
    for _ in range(150):
        n = int(rng.integers(1, 9))
        weight = rng.integers(1, 10**6 if magnitude > 1000 else 4, n)
        total = rng.integers(-magnitude, magnitude + 1, n)
        fitted = fit_chain(total, weight, lower=-(2**60), upper=2**60)
        assert fitted.tolist() == exact_fit(total.tolist(), weight.tolist())


def test_means_that_floats_cannot_tell_apart_are_compared_exactly() -> None:
    # Two means around 10^8 + 1/2 that differ by 10^-15: as floats both are equal, pooled or not
    # decides the rounding.
    weight = [30_000_001, 30_000_000]
    total = [10**8 * weight[0] + 15_000_001, 10**8 * weight[1] + 14_999_999]
    assert fit_chain(np.array(total), np.array(weight), lower=0, upper=2**60).tolist() == exact_fit(
        total, weight
    )


def test_bounds_clip_the_fit() -> None:
    assert fit_chain(
        np.array([-4, 3, 99]), np.ones(3, dtype=np.int64), lower=0, upper=7
    ).tolist() == [0, 3, 7]


def test_wrong_weights_are_refused() -> None:
    with pytest.raises(InputError, match="weight of at least 1"):
        fit_chain(np.array([1, 2]), np.array([1, 0]), lower=0, upper=1)
    with pytest.raises(InputError, match="2\\^62"):
        fit_chain(np.array([2**61, 2**61]), np.array([1, 1]), lower=0, upper=1)

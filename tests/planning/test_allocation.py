from fractions import Fraction

import numpy as np
import pytest

from tallytree.model.arrays import IntArray
from tallytree.planning.allocation import shares_for_levels
from tests.planning.test_first_look import look_at

HOUSEHOLDS = np.random.default_rng(1).geometric(0.4, 100_000)


def laplace(epsilon: float):  # type: ignore[no-untyped-def]
    return lambda share: float(np.sqrt(2) / (epsilon * float(share)))


def tree(*widths: int, groups: int = 100_000) -> list[IntArray]:
    return [np.full(width, groups // width) for width in widths]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("widths", [(1,), (1, 5), (1, 10, 500), (1, 2, 40, 800, 5000), (1, 1, 1, 30)])
def test_shares_add_up_and_the_leaves_keep_much(epsilon: float, widths: tuple[int, ...]) -> None:
    shares = shares_for_levels(look_at(HOUSEHOLDS, 50 / epsilon), tree(*widths), laplace(epsilon))
    assert sum(shares) == 1
    assert all(share == 0 or share >= Fraction(3, 100) for share in shares)
    assert all(share.denominator <= 200 for share in shares)
    assert shares[-1] >= Fraction(2, 5)


def test_a_level_that_its_few_children_describe_gets_nothing() -> None:
    shares = shares_for_levels(look_at(HOUSEHOLDS, 50), tree(1, 20, 40), laplace(1.0))
    assert shares[1] == 0


def test_a_root_of_many_leaves_is_measured_above_them() -> None:
    shares = shares_for_levels(look_at(HOUSEHOLDS, 50), tree(1, 3000), laplace(1.0))
    assert shares[0] > 0


@pytest.mark.parametrize("noise_std", [100.0, 0.0])
def test_empty_regions_and_looks_do_no_harm(noise_std: float) -> None:
    empty = look_at(np.zeros(5, dtype=np.int64), noise_std)
    groups = [np.array([5]), np.array([5, 0]), np.array([3, 2, 0])]
    assert sum(shares_for_levels(empty, groups, laplace(1.0))) == 1


def test_a_blind_look_gives_clear_leaves_everything() -> None:
    few = HOUSEHOLDS[:300]
    groups = tree(1, 3, 12, groups=300)
    assert shares_for_levels(look_at(few, 47), groups, laplace(1.0)) == (0, 0, 1)
    # The same look over leaves that their own noise hides plans as always.
    shares = shares_for_levels(look_at(few, 47), groups, laplace(0.1))
    assert sum(shares) == 1
    assert shares != (0, 0, 1)

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from tallytree.group_sizes.plan.allocation import _descend, _Model, shares_for_levels
from tallytree.group_sizes.plan.goals import Goal, GoalName
from tallytree.model.arrays import FloatArray, IntArray
from tests.group_sizes.test_first_look import look_at

HOUSEHOLDS = np.random.default_rng(1).geometric(0.4, 100_000)


def laplace(epsilon: float):  # type: ignore[no-untyped-def]
    return lambda share: float(np.sqrt(2) / (epsilon * float(share)))


def tree(*widths: int, groups: int = 100_000) -> list[IntArray]:
    return [np.full(width, groups // width) for width in widths]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(
    "widths", [(1,), (1, 5), (1, 10, 500), (1, 2, 40, 800, 5000), (1, 1, 1, 30)]
)
def test_shares_add_up_and_the_leaves_keep_much(epsilon: float, widths: tuple[int, ...]) -> None:
    shares = shares_for_levels(look_at(HOUSEHOLDS, 50 / epsilon), tree(*widths), laplace(epsilon))
    assert sum(shares) == 1
    assert all(share == 0 or share >= Fraction(3, 100) for share in shares)
    assert all(share.denominator <= 200 for share in shares)
    assert shares[-1] >= Fraction(1, 4)


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


def test_a_blind_look_shares_equally() -> None:
    groups = tree(1, 3, 12, groups=300)
    assert (
        shares_for_levels(look_at(HOUSEHOLDS[:300], 47), groups, laplace(1.0))
        == (Fraction(1, 3),) * 3
    )


def test_a_level_of_single_children_gets_nothing_whatever_the_goal() -> None:
    groups = tree(1, 1, 40, 40)
    for name in get_args(GoalName):
        for noise_std in (50.0, 1e5):
            shares = shares_for_levels(
                look_at(HOUSEHOLDS, noise_std), groups, laplace(1.0), Goal(name)
            )
            assert shares[0] == shares[2] == 0
            assert shares[1] > 0


def test_goals_move_the_split_where_they_say() -> None:
    look, groups = look_at(HOUSEHOLDS, 50), tree(1, 20, 400)
    found = {
        name: shares_for_levels(look, groups, laplace(1.0), Goal(name))
        for name in get_args(GoalName)
    }
    assert found["no-level-behind"] == (Fraction(1, 3),) * 3
    assert found["leaves"][-1] > max(
        found[name][-1] for name in ("balanced", "top", "no-level-behind")
    )
    assert found["top"][0] > found["balanced"][0]


def test_targets_come_before_everything_else() -> None:
    look, groups = look_at(HOUSEHOLDS, 50), tree(1, 20, 400)
    model = _Model(look, groups, laplace(1.0))
    wanted = 0.8 * model.errors(shares_for_levels(look, groups, laplace(1.0)))[1]
    shares = shares_for_levels(look, groups, laplace(1.0), Goal(targets={1: wanted}))
    assert model.errors(shares)[1] <= wanted * 1.01


def one_pair_at_a_time(regret, shares):  # type: ignore[no-untyped-def]
    """The descent over splits without weighing pairs together."""
    best = regret(np.array([shares]))[0]
    for step in (40, 20, 10, 6, 4, 2, 1):
        improved = True
        while improved:
            improved = False
            for giver in range(len(shares)):
                for taker in range(len(shares)):
                    amount = min(step, shares[giver])
                    if giver == taker or amount == 0 or taker == 1:
                        continue
                    moved = list(shares)
                    moved[giver] -= amount
                    moved[taker] += amount
                    found = regret(np.array([moved]))[0]
                    if found < best - 1e-6:
                        shares, best, improved = moved, found, True
    return shares


@pytest.mark.parametrize("seed", range(5))
def test_pairs_weighed_together_are_pairs_one_at_a_time(seed: int) -> None:
    wanted = np.random.default_rng(seed).dirichlet(np.ones(5)) * 200

    def regret(splits: IntArray) -> FloatArray:
        found: FloatArray = ((splits - wanted) ** 2 / wanted + np.sin(splits)).sum(axis=1)
        return found

    start = (*(Fraction(share, 200) for share in (20, 0, 40, 10)), Fraction(130, 200))
    useful = [True, False, True, True, True]
    slow = one_pair_at_a_time(regret, [20, 0, 40, 10, 130])
    assert _descend(regret, start, useful).tolist() == slow

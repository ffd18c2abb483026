"""Rows of streams over all neighbours: every way to place the entities of one unit among the steps."""

import itertools

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.privacy.sensitivity import running_rows_sensitivity
from tallytree.streams.kernels import square_root_weights, weighted_rows


@pytest.mark.parametrize("n_steps", [1, 2, 5])
@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_rows_change_by_at_most_the_sensitivity_and_by_no_less(
    n_steps: int, contributions: int
) -> None:
    rng = np.random.default_rng(n_steps)
    counts, weights = rng.integers(0, 9, n_steps), square_root_weights(n_steps)
    stated = running_rows_sensitivity(weights, contributions=contributions)
    before = weighted_rows(weights, counts, 0)
    l1, l2_squared = 0, 0
    for steps in itertools.combinations_with_replacement(range(n_steps), contributions):
        more = counts.copy()
        np.add.at(more, list(steps), 1)
        change = weighted_rows(weights, more, 0) - before
        l1, l2_squared = max(l1, int(np.abs(change).sum())), max(l2_squared, int((change**2).sum()))
    assert (stated.l1, stated.l2_squared) == (l1, l2_squared)


def test_the_sensitivity_of_rounded_weights_is_a_whole_number_without_rounding() -> None:
    weights = square_root_weights(65_536)
    stated = running_rows_sensitivity(weights)
    assert stated.l2_squared == sum(int(weight) ** 2 for weight in weights)
    assert stated.l2_squared / 2**32 == pytest.approx(4.59644, rel=1e-4)


def test_an_entity_that_changes_its_step_between_rows_is_not_covered() -> None:
    """Why the past must stay as it was: seen in the newest step by every row, an entity changes all
    by the first weight.
    """
    weights = square_root_weights(5)
    moved = sum(int(weights[0]) ** 2 for _ in range(5))
    assert moved > running_rows_sensitivity(weights).l2_squared


@pytest.mark.parametrize(
    "weights",
    [np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int64), np.ones(3), np.array([2**20])],
)
def test_weights_that_ask_nothing_or_too_much_are_refused(weights: np.ndarray) -> None:
    with pytest.raises(RequestError, match=r"weights|Weights"):
        running_rows_sensitivity(weights)

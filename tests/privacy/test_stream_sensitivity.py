"""Rows of streams over all neighbours: every way to place the entities of one unit among the steps."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.kernels.stream_rows import Factors, column_sums, halves, weighted_rows
from tallytree.model.arrays import IntArray
from tallytree.privacy.sensitivity import (
    Sensitivity,
    returning_rows_sensitivity,
    running_rows_sensitivity,
)
from tallytree.streams.factors import BITS, scaled_root_factors, square_root_factors

FACTORS = {
    "square root": square_root_factors,
    "scaled, mean": lambda n: scaled_root_factors(n, "mean", BITS["mean"][0]),
    "scaled, mean, coarse": lambda n: scaled_root_factors(n, "mean", BITS["mean"][-1]),
    "scaled, largest": lambda n: scaled_root_factors(n, "largest", BITS["largest"][0]),
}


def rows_of(factors: Factors, counts: IntArray) -> IntArray:
    high, low = halves(counts, factors.columns)
    return weighted_rows(factors.narrow, factors.rows, high, low, 0)


def largest_change(
    factors: Factors, n_steps: int, patterns: Iterator[tuple[int, ...]]
) -> Sensitivity:
    counts = np.random.default_rng(n_steps).integers(0, 9, n_steps)
    before = rows_of(factors, counts)
    l1, l2_squared = 0, 0
    for steps in patterns:
        more = counts.copy()
        np.add.at(more, list(steps), 1)
        change = (rows_of(factors, more) - before).tolist()
        l1 = max(l1, sum(map(abs, change)))
        l2_squared = max(l2_squared, sum(value**2 for value in change))
    return Sensitivity(l1, l2_squared)


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("n_steps", [1, 2, 5])
@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_rows_change_by_at_most_the_sensitivity_and_by_no_less(
    kind: str, n_steps: int, contributions: int
) -> None:
    factors = FACTORS[kind](n_steps)
    patterns = itertools.combinations_with_replacement(range(n_steps), contributions)
    stated = running_rows_sensitivity(factors, contributions=contributions)
    assert stated == largest_change(factors, n_steps, patterns)


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("n_steps", [1, 2, 3, 17, 130])
def test_the_sensitivity_is_that_of_the_largest_column(kind: str, n_steps: int) -> None:
    factors = FACTORS[kind](n_steps)
    columns = rows_matrix(factors)
    stated = running_rows_sensitivity(factors)
    assert stated.l1 == max(sum(column) for column in columns)
    assert stated.l2_squared == max(sum(value**2 for value in column) for column in columns)


def rows_matrix(factors: Factors) -> list[list[int]]:
    """Columns of the matrix, in Python's whole numbers."""
    weights, rows, columns = (
        array.tolist() for array in (factors.weights, factors.rows, factors.columns)
    )
    n_steps = len(weights)
    return [
        [rows[t] * weights[t - s] * columns[s] for t in range(s, n_steps)] for s in range(n_steps)
    ]


@pytest.mark.parametrize("kind", ["scaled, mean", "scaled, largest"])
def test_columns_of_the_scaled_root_have_nearly_the_same_norm(kind: str) -> None:
    norms = [sum(v**2 for v in column) ** 0.5 for column in rows_matrix(FACTORS[kind](200))]
    assert min(norms) / max(norms) > 0.995


@pytest.mark.parametrize("gap", [1, 2, 3, 7])
@pytest.mark.parametrize("contributions", [1, 2, 3])
@pytest.mark.parametrize("n_steps", [1, 2, 5, 8])
def test_a_unit_that_comes_back_changes_rows_by_its_worst_pattern(
    n_steps: int, contributions: int, gap: int
) -> None:
    factors = square_root_factors(n_steps)
    patterns = (
        steps
        for entities in range(1, contributions + 1)
        for steps in itertools.combinations(range(n_steps), entities)
        if all(later - earlier >= gap for earlier, later in itertools.pairwise(steps))
    )
    stated = returning_rows_sensitivity(factors.weights, contributions=contributions, min_gap=gap)
    assert stated == largest_change(factors, n_steps, patterns)


def test_a_gap_hides_four_visits_with_much_less_noise() -> None:
    """Beside k² times the norm of one column: 4 visits a year, a quarter apart."""
    factors = square_root_factors(365)
    any_steps = running_rows_sensitivity(factors, contributions=4)
    apart = returning_rows_sensitivity(factors.weights, contributions=4, min_gap=91)
    assert apart.l2_squared / any_steps.l2_squared == pytest.approx(0.381, abs=0.001)


def test_many_visits_one_step_apart_are_bounded_at_once() -> None:
    """Without a pass over all steps for each visit."""
    weights = square_root_factors(2**18).weights
    everyone = returning_rows_sensitivity(weights, contributions=2**30, min_gap=1)
    assert everyone.l1 == sum(np.cumsum(weights).tolist())
    once = returning_rows_sensitivity(weights, contributions=3, min_gap=2**40)
    assert once == running_rows_sensitivity(square_root_factors(2**18))


def test_weights_that_rise_have_no_such_pattern() -> None:
    """With weights 0, 0, 1 the worst of two steps that are one apart are not 0 and 1, but ones
    whose rows are there.
    """
    with pytest.raises(RequestError, match="never rise"):
        returning_rows_sensitivity(np.array([1, 2, 1]), contributions=2, min_gap=1)


def test_the_sensitivity_of_rounded_weights_is_a_whole_number_without_rounding() -> None:
    factors = square_root_factors(65_536)
    stated = running_rows_sensitivity(factors)
    assert stated.l2_squared == sum(int(weight) ** 2 for weight in factors.weights)
    assert stated.l2_squared / 2**32 == pytest.approx(4.59644, rel=1e-4)


def test_sums_over_columns_go_over_runs_of_equal_rows() -> None:
    rng = np.random.default_rng(1)
    weights, rows = rng.integers(0, 50, 30), np.repeat(rng.integers(1, 4, 10), 3)
    expected = [sum(rows[t] * weights[t - s] for t in range(s, 30)) for s in range(30)]
    assert column_sums(weights, rows).tolist() == expected


def test_an_entity_that_changes_its_step_between_rows_is_not_covered() -> None:
    """Why the past must stay as it was: seen in the newest step by every row, an entity changes all
    by the first weight.
    """
    factors = square_root_factors(5)
    moved = sum(int(factors.weights[0]) ** 2 for _ in range(5))
    stated = running_rows_sensitivity(factors)
    assert moved > stated.l2_squared


@pytest.mark.parametrize(
    "weights",
    [
        np.zeros(3, dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.ones(3),
        np.array([2**20]),
        np.array([-1, 2]),
        np.full(2**17, 2**16),
    ],
)
def test_weights_that_ask_nothing_or_too_much_are_refused(weights: np.ndarray) -> None:
    ones = np.ones(len(weights), dtype=np.int64)
    with pytest.raises(RequestError, match=r"weights|Weights"):
        running_rows_sensitivity(Factors(weights, ones, ones))

"""The lower bound on linear mechanisms with Gaussian noise, against strategies that know nothing of
symmetry.
"""

import numpy as np
import pytest
from benchmarks.accuracy.bound import (
    EvenTree,
    best_shares,
    best_strategy,
    even_tree,
    level_errors,
    levelled,
)
from benchmarks.accuracy.data import Dials, made_up
from scipy.optimize import minimize

from tallytree.model.arrays import FloatArray

# Two regions of two leaves each, two sizes: eight cells.
REGIONS = (1, 2, 4)
VARIANCE = 0.5


def _tree() -> EvenTree:
    covariances = [
        np.array([[2.0, 1.0], [1.0, 1.5]]),
        np.array([[3.0, -0.5], [-0.5, 0.4]]),
        np.array([[0.8, 0.3], [0.3, 0.2]]),
    ]
    return EvenTree(REGIONS, tuple(covariances))


def _basis() -> list[FloatArray]:
    """Orthonormal bases over the four leaves: their mean, the difference of both regions,
    differences inside each.
    """
    half = np.sqrt(0.5)
    return [
        np.full((1, 4), 0.5),
        np.array([[0.5, 0.5, -0.5, -0.5]]),
        np.array([[half, -half, 0.0, 0.0], [0.0, 0.0, half, -half]]),
    ]


def _whole(tables: list[FloatArray]) -> FloatArray:
    """A matrix over all cells, leaf by leaf, from one table of sizes × sizes per component."""
    return np.asarray(
        sum(np.kron(basis.T @ basis, table) for basis, table in zip(_basis(), tables))
    )


def _sums() -> list[FloatArray]:
    """Per level the rows that add leaves up to regions, for every size."""
    return [np.kron(np.repeat(np.eye(n), 4 // n, axis=1), np.eye(2)) for n in REGIONS]


def _errors(moments: FloatArray, covariance: FloatArray) -> FloatArray:
    """Mean over regions of the earth mover's distance, cell by cell, with plain inverses."""
    left = np.linalg.inv(np.linalg.inv(covariance) + moments / VARIANCE)
    of_levels = [
        np.sqrt(2 * np.diag(rows @ left @ rows.T) / np.pi).sum() / n
        for rows, n in zip(_sums(), REGIONS)
    ]
    return np.array(of_levels)


def test_errors_of_a_strategy_are_those_of_all_cells_together() -> None:
    tree = _tree()
    shares = np.array([0.2, 0.3, 0.5])
    rows = np.concatenate([np.sqrt(share) * sums for share, sums in zip(shares, _sums())])
    np.testing.assert_allclose((rows**2).sum(axis=0), 1.0)
    np.testing.assert_allclose(rows.T @ rows, _whole(tree.shares(shares)), atol=1e-12)
    found = level_errors(tree, tree.shares(shares), VARIANCE)
    np.testing.assert_allclose(found, _errors(rows.T @ rows, _whole(list(tree.covariances))))


def test_no_strategy_over_all_cells_is_below_the_bound_and_the_best_one_reaches_it() -> None:
    tree = _tree()
    covariance = _whole(list(tree.covariances))
    shares, split = best_shares(tree, VARIANCE)
    best = best_strategy(tree, VARIANCE, shares)

    def mean_of(flat: FloatArray) -> float:
        factor = flat.reshape(8, 8)
        factor = factor / np.sqrt((factor**2).sum(axis=0))
        return float(np.log(_errors(factor.T @ factor, covariance)).mean())

    starts = np.random.default_rng(0).standard_normal((4, 64))
    found = [float(np.exp(minimize(mean_of, start, method="L-BFGS-B").fun)) for start in starts]
    assert min(found) >= best.bound * (1 - 1e-9)
    assert min(found) == pytest.approx(best.bound, rel=1e-3)
    # Here regions and sizes tell of each other, so a joint strategy beats every split.
    of_split, of_best = (float(np.exp(np.log(errors).mean())) for errors in (split, best.errors))
    assert of_best == pytest.approx(best.bound, rel=1e-4)
    assert best.bound < 0.995 * of_split


def test_a_split_is_the_best_of_a_grid() -> None:
    tree = _tree()
    _, split = best_shares(tree, VARIANCE)
    parts = [np.array([a, b, 20 - a - b]) / 20 for a in range(21) for b in range(21 - a)]
    of_grid = [np.log(level_errors(tree, tree.shares(shares), VARIANCE)).mean() for shares in parts]
    assert np.log(split).mean() <= min(of_grid) + 1e-6


def test_levelled_data_have_equal_regions_and_the_covariance_they_were_drawn_with() -> None:
    counts = levelled(
        made_up(Dials(fan_outs=(10, 40), groups=200_000, mean=2.0, unlike=0.0, uneven=0.0))
    )
    assert set(counts.leaf_counts.n_groups().tolist()) == {500}
    tree = even_tree(counts)
    assert tree.n_regions == (1, 10, 400)
    # Geometric sizes of mean 2: N(i) has the mean 500/2ⁱ, and leaves differ by chance alone, once
    # as they were made and once more as they were drawn anew.
    chance = 2.0 ** -np.arange(1, 6)
    expected = 500 * (np.minimum.outer(chance, chance) - np.outer(chance, chance))
    for covariance, drawn in zip((tree.covariances[0], tree.covariances[2]), (1, 2)):
        np.testing.assert_allclose(covariance[:5, :5], drawn * expected, rtol=0.25, atol=4.0)

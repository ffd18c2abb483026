"""Two passes over the tree equal the dense weighted least-squares fit."""

import numpy as np
import pytest

from tallytree.errors import InputError
from tallytree.kernels.trees.projection import project_on_tree_in_place
from tests.reference.noisy_trees import random_hierarchy
from tests.reference.projections import project_on_tree


def test_equals_dense_least_squares_for_uneven_trees_and_weights() -> None:
    rng = np.random.default_rng(21)
    for _ in range(150):
        hierarchy = random_hierarchy(rng)
        weights = rng.uniform(0.2, 5.0, hierarchy.n_levels)
        table = rng.normal(size=(hierarchy.n_regions, 3))
        fitted = table.copy()
        project_on_tree_in_place(hierarchy, fitted, weights)
        np.testing.assert_allclose(fitted, project_on_tree(hierarchy, table, weights), atol=1e-10)


def test_the_last_column_can_have_a_fixed_root() -> None:
    rng = np.random.default_rng(22)
    for _ in range(50):
        hierarchy = random_hierarchy(rng)
        table = rng.normal(size=(hierarchy.n_regions, 2))
        fitted = table.copy()
        project_on_tree_in_place(hierarchy, fitted, last_root=7.0)
        assert fitted[0, 1] == 7.0
        # Fixing the root is the limit of a root that weighs much more than all else.
        table[0, 1] = 7.0
        heavy = np.ones(hierarchy.n_levels)
        heavy[0] = 1e9
        np.testing.assert_allclose(
            fitted[:, 1], project_on_tree(hierarchy, table, heavy)[:, 1], atol=1e-6
        )


def test_weights_and_tables_that_do_not_fit_are_refused() -> None:
    hierarchy = random_hierarchy(np.random.default_rng(0))
    with pytest.raises(InputError, match="one positive weight"):
        project_on_tree_in_place(
            hierarchy, np.zeros((hierarchy.n_regions, 1)), np.zeros(hierarchy.n_levels)
        )
    with pytest.raises(InputError, match="contiguous table"):
        project_on_tree_in_place(hierarchy, np.zeros((hierarchy.n_regions + 1, 1)))

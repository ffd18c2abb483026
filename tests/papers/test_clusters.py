from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes.checks import check_map
from tallytree.boxes.draft import Draft
from tallytree.boxes.measure import PrivateSurvey
from tallytree.boxes.methods import grow
from tallytree.errors import RequestError
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.options.maps import MethodOptions
from tallytree.papers.rivals.clusters import (
    cluster_edges,
    clustered_cells,
    clusters_of,
    costs_of_beginning,
)
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tests.boxes.surveys import PlainSurvey
from tests.reference.clusters import clustered


def places(seed=1):
    """Two heights, in cells from anywhere."""
    counts = np.zeros((8, 8), dtype=np.int64)
    rng = np.random.default_rng(seed)
    counts.ravel()[rng.choice(64, 14, replace=False)] = np.repeat([5000, 800], [6, 8])
    return counts


def test_clusters_join_counts_that_are_nearly_alike():
    assert cluster_edges(np.array([90.0, 89, 40, 40, 39, 0, 0]), 4.0).tolist() == [0, 2, 5, 7]
    assert cluster_edges(np.array([3.0, 2, 1]), 1e9).tolist() == [0, 3]
    # A count that others like it follow may begin a cluster, one that is alone pays its noise
    # alone.
    assert cluster_edges(np.array([10.0, 10, 7, 7, 7, 7]), 4.0).tolist() == [0, 2, 6]
    assert cluster_edges(np.array([10.0, 10, 9]), 4.0).tolist() == [0, 3]
    assert costs_of_beginning(np.array([10.0, 6, 0]), 8.0).tolist() == [6.0, 8.0, 8.0]


def test_cells_have_the_mean_of_their_cluster_as_the_slow_twin_has_it():
    counts = np.random.default_rng(3).integers(0, 400, (5, 6))
    draft = Draft(counts.shape, PlainSurvey(counts))
    grow(draft, MethodOptions(mechanism="ahp"))
    tree, (cells, sums) = draft.finish()
    exact = counts[tuple(tree.low[cells.nodes].T)].tolist()
    cluster = clusters_of(cells.values, cells.variance, sums.variance)
    means, by_cluster = clustered(exact, cluster.tolist(), exact)
    assert 2 < len(by_cluster) < 30
    assert sorted(set(sums.values.tolist())) == sorted(set(by_cluster))
    found = clustered_cells(tree, (cells, sums), nonnegative=True)
    np.testing.assert_allclose(found[cells.nodes], means)
    assert found.sum() == pytest.approx(counts.sum())


def test_its_two_questions_share_no_noise_and_cost_what_they_state():
    counts = places()
    made = tt.spatial(counts=counts, mechanism="ahp", epsilon=1, insecure_seed=1)
    cells, sums = made.noisy
    assert [(one.query, one.share) for one in made.noisy] == [
        ("cell", Fraction(17, 20)),
        ("cluster", Fraction(3, 20)),
    ]
    assert len(np.unique(sums.values)) < 8
    assert (
        np.abs(
            made.estimates.published[made.estimates.leaves] - cells.values[np.argsort(cells.nodes)]
        ).max()
        < 60
    )
    exact = counts[tuple(made.estimates.tree.low[cells.nodes].T)]
    cluster = clusters_of(cells.values, cells.variance, sums.variance)
    noise = [cells.values - exact, sums.values - np.bincount(cluster, exact)[cluster]]
    assert noise[0].tolist() != noise[1].tolist()


def test_a_sum_of_clusters_that_was_changed_is_noticed():
    made = tt.spatial(counts=places(), mechanism="ahp", epsilon=1, insecure_seed=1)
    cells, sums = made.noisy
    assert check_map(made.estimates, made.manifest, made.noisy).passed
    one = np.eye(1, len(sums.values), dtype=np.int64)[0]
    for changed in (
        replace(sums, values=sums.values + 100),
        replace(sums, values=sums.values + one),
        replace(sums, share=Fraction(1, 5)),
    ):
        assert not check_map(made.estimates, made.manifest, (cells, changed)).passed
    assert not check_map(
        made.estimates, made.manifest, (replace(cells, values=cells.values[::-1]), sums)
    ).passed


@pytest.mark.parametrize("rule", ["no", "least-squares", "subtree"])
def test_other_rules_are_saved_and_verified(rule, tmp_path):
    made = tt.spatial(
        counts=places(), mechanism="ahp", epsilon=1, nonnegative=rule, insecure_seed=1
    )
    assert made.verify(), made.verify()
    assert tt.verify(made.save(tmp_path / "map"))


def test_epsilon_with_delta_is_taken(tmp_path):
    counts = places()
    made = tt.spatial(counts=counts, mechanism="ahp", epsilon=1, delta=1e-6)
    assert tt.verify(made.save(tmp_path / "map"))
    part = made.range([(0, 4), (0, 8)])
    assert abs(part.estimate - counts[:4].sum()) < 7 * part.std_error + 400


def test_clusters_that_overlap_are_refused():
    grid = ConfidentialGrid(places(), PublicGrid(((0.0, 8.0),) * 2, ("x", "y"), places().shape))
    survey = PrivateSurvey(grid, Budget("pure", Fraction(1)), KeyStream.from_insecure_seed(1))
    low, high = np.array([[0, 0], [1, 1]]), np.array([[2, 2], [3, 3]])
    with pytest.raises(RequestError, match="must not overlap"):
        survey.sums(low, high, np.array([0, 1]), Fraction(1), "cluster")
    assert len(survey.sums(low[:1], high[:1], np.array([0]), Fraction(1), "cluster")) == 1

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from tallytree.boxes.draft import Draft
from tallytree.boxes.measure import (
    CellCharges,
    PrivateSurvey,
    measure_map,
    median_scores,
    tree_deviations,
)
from tallytree.boxes.methods import NAMES, method_named
from tallytree.errors import RequestError
from tallytree.model.box_tree import prefix_sums
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.model.limits import MOST_ENTITIES
from tallytree.options.maps import MethodOptions
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import median_score_sensitivity
from tests.reference.boxes import best_median_cuts
from tests.reference.partitions import absolute_deviations


def confidential(counts, **options):
    counts = np.asarray(counts, dtype=np.int64)
    box = tuple((0.0, float(n)) for n in counts.shape)
    return ConfidentialGrid(
        counts, PublicGrid(box, ("x", "y")[: counts.ndim], counts.shape, **options)
    )


def boxes(*pairs):
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])


def test_scores_of_medians_are_those_of_the_slow_twin():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 9, size=(6, 7))
    low, high = boxes(((0, 0), (6, 7)), ((1, 2), (4, 7)), ((3, 3), (5, 5)))
    for axis in (0, 1):
        scores, offsets = median_scores(prefix_sums(counts), low, high, axis)
        for i in range(3):
            expected = best_median_cuts(counts, low[i].tolist(), high[i].tolist(), axis)
            assert scores[offsets[i] : offsets[i + 1]].tolist() == list(expected.values())


@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_no_neighbour_changes_a_median_score_by_more_than_the_sensitivity(contributions):
    rng = np.random.default_rng(contributions)
    low, high = boxes(((0, 0), (4, 3)))
    worst = 0
    for _ in range(5):
        counts = rng.integers(0, 4, size=(4, 3))
        before, _ = median_scores(prefix_sums(counts), low, high, 0)
        # All ways to add a unit's points to cells; taking them away again is the same pair the
        # other way round.
        for cells in product(range(12), repeat=contributions):
            neighbour = counts.copy().ravel()
            np.add.at(neighbour, list(cells), 1)
            after, _ = median_scores(prefix_sums(neighbour.reshape(4, 3)), low, high, 0)
            worst = max(worst, int(np.abs(after - before).max()))
    assert worst == median_score_sensitivity(contributions=contributions).l1


def test_cells_are_never_asked_for_more_than_the_whole_budget():
    charges = CellCharges((4, 4))
    charges.charge(*boxes(((0, 0), (2, 4)), ((2, 0), (4, 4))), Fraction(1, 3))
    charges.charge(*boxes(((0, 0), (2, 4))), Fraction(2, 3))
    assert charges.most() == 1
    charges.charge(*boxes(((2, 0), (3, 4))), Fraction(1, 2))
    with pytest.raises(RequestError, match="more than the whole budget"):
        charges.charge(*boxes(((0, 0), (1, 1))), Fraction(1, 10**6))
    with pytest.raises(RequestError, match="must not overlap"):
        charges.charge(*boxes(((2, 0), (4, 2)), ((3, 1), (4, 4))), Fraction(1, 10))
    with pytest.raises(RequestError, match="share between 0 and 1"):
        charges.charge(*boxes(((2, 0), (4, 2))), Fraction(0))


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize("definition", ["pure", "zcdp"])
def test_every_method_spends_the_whole_budget_on_every_cell_and_no_more(method, definition):
    # What merges neighbours along a line finds one boundary.
    counts = (
        np.repeat([2, 200], 128)
        if method_named(method).one_column
        else np.random.default_rng(3).poisson(2, size=(16, 16))
    )
    survey_budget = Budget(definition, Fraction(1, 2))
    noisy = measure_map(
        confidential(counts),
        survey_budget,
        MethodOptions(mechanism=method),
        KeyStream.from_insecure_seed(4),
    )
    charges = CellCharges(counts.shape)
    for one in noisy.measurements:
        charges.charge(*one.boxes(noisy.tree), one.share)
    # Choices, and counts that only served them, were asked of all cells.
    kept = {one.query for one in noisy.measurements}
    unseen = sum((step.share for step in noisy.steps if step.query not in kept), Fraction(0))
    assert charges.most() + unseen == 1
    if not unseen:
        assert charges.spent.min() == charges.denominator


def test_noise_has_the_stated_variance_and_is_not_shared_between_steps():
    survey = PrivateSurvey(
        confidential(np.zeros((64, 64))),
        Budget("pure", Fraction(1)),
        KeyStream.from_insecure_seed(9),
    )
    cells = np.stack(np.meshgrid(np.arange(64), np.arange(64), indexing="ij"), axis=-1).reshape(
        -1, 2
    )
    first = survey.count(cells, cells + 1, Fraction(1, 2), "one")
    second = survey.count(cells, cells + 1, Fraction(1, 2), "two")
    assert np.var(first) == pytest.approx(survey.variance(Fraction(1, 2)), rel=0.15)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.06


def test_private_medians_find_the_middle_when_the_budget_is_large():
    counts = np.zeros((32, 8), dtype=np.int64)
    counts[5] = 100
    counts[20] = 100
    survey = PrivateSurvey(
        confidential(counts), Budget("pure", Fraction(50)), KeyStream.from_insecure_seed(1)
    )
    cut = int(survey.cut(*boxes(((0, 0), (32, 8))), 0, Fraction(1, 2), "median")[0])
    assert 6 <= cut <= 20
    with pytest.raises(RequestError, match="one cell"):
        survey.cut(*boxes(((0, 0), (1, 8))), 0, Fraction(1, 8), "median")


def test_costs_of_parts_are_those_of_the_slow_twin():
    counts = np.random.default_rng(6).integers(0, 30, size=(5, 8))
    draft = Draft(counts.shape, None)
    nodes = draft.root
    for _ in range(3):
        nodes, _ = draft.split_grid(nodes, 2)
    tree = draft.so_far()[0]
    inside = [
        counts[a[0] : b[0], a[1] : b[1]].ravel().tolist() for a, b in zip(tree.low, tree.high)
    ]
    assert tree_deviations(confidential(counts), tree).tolist() == [
        absolute_deviations(part) for part in inside
    ]


def test_parts_are_even_and_splits_go_where_points_are_when_the_budget_is_large():
    counts = np.zeros((16, 16), dtype=np.int64)
    counts[:8, :8] = 1000
    counts[12, 3] = 50_000
    for method, even in (("dawa", 64), ("privtree", 1)):
        noisy = measure_map(
            confidential(counts),
            Budget("pure", Fraction(60)),
            MethodOptions(mechanism=method),
            KeyStream.from_insecure_seed(2),
        )
        leaves = np.flatnonzero(noisy.leaves)
        # Even and full, one full cell, even and empty: PrivTree splits what is full, DAWA what is
        # uneven.
        for cell, volume in (((2, 2), even), ((12, 3), 1), ((2, 12), 64)):
            holds = leaves[
                np.all((noisy.tree.low[leaves] <= cell) & (noisy.tree.high[leaves] > cell), axis=1)
            ]
            assert noisy.tree.volume[holds].tolist() == [volume]


def test_a_descent_goes_down_and_does_not_ask_twice():
    def begun():
        survey = PrivateSurvey(
            confidential(np.full((4, 4), 10**6)),
            Budget("pure", Fraction(1)),
            KeyStream.from_insecure_seed(1),
        )
        descent = survey.descend(Fraction(1, 2), "splits")
        assert descent.worth(*boxes(((0, 0), (4, 4)))).all()
        return survey, descent

    halves = boxes(((0, 0), (2, 4)), ((2, 0), (4, 4)))
    survey, descent = begun()
    assert descent.worth(*halves).all()
    assert survey.charges.most() == Fraction(1, 2)
    assert [(step.query, step.boxes) for step in survey.steps] == [("splits", 3)]
    with pytest.raises(RequestError, match="inside one"):
        descent.worth(*boxes(((1, 0), (3, 4))))  # lies in two of the boxes above
    _, descent = begun()
    with pytest.raises(RequestError, match="overlap"):
        descent.worth(*boxes(((0, 0), (2, 4)), ((1, 0), (3, 4))))
    assert "1000000" not in repr(descent)


def test_confidential_grids_show_nothing_and_are_not_pickled():
    import pickle

    grid = confidential([[987654, 1], [2, 3]])
    assert "987654" not in repr(grid)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(grid)


def test_enormous_counts_do_not_wrap_around():
    survey = PrivateSurvey(
        confidential(np.full((2, 2), 2**62)),
        Budget("pure", Fraction(1)),
        KeyStream.from_insecure_seed(1),
    )
    assert survey.count(*boxes(((0, 0), (2, 2))), Fraction(1), "all")[0] == pytest.approx(
        4 * MOST_ENTITIES
    )

"""Estimates from noisy counts of bins, against dense matrices, and what pooling does and does not."""

import numpy as np
import pytest

from tallytree.group_sizes.estimate import siblings as pooling
from tallytree.group_sizes.estimate.bin_blocks import posterior, precision, solve, solve_diagonal
from tallytree.group_sizes.estimate.siblings import (
    MOVES,
    Differences,
    find_differences,
    moves_of,
    siblings_of,
)
from tallytree.group_sizes.estimate.size_bins import (
    combine_upwards,
    doubts,
    fit_size_bins,
    least_squares,
)
from tallytree.group_sizes.measure.size_bins import answers_of
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tests.reference import size_bins as reference


def tree(*fan_outs: int) -> Hierarchy:
    leaves = [
        tuple(f"{'.'.join(map(str, path[: n + 1]))}" for n in range(len(path)))
        for path in np.ndindex(*fan_outs)
    ]
    return hierarchy_from_leaves([f"level {n}" for n in range(len(fan_outs))], leaves)


def table_of(hierarchy: Hierarchy, leaves: np.ndarray) -> np.ndarray:
    return np.stack([hierarchy.sum_from_leaves(column) for column in leaves.T], axis=1)


BINS = [SizeBins(np.arange(7)), SizeBins(np.arange(7), 2), SizeBins(np.arange(8), 3)]


@pytest.mark.parametrize("bins", BINS)
def test_levels_are_combined_by_generalised_least_squares(bins: SizeBins) -> None:
    """Upwards the root has used every answer, so it is the optimum over the whole tree."""
    hierarchy = tree(3, 2)
    rng = np.random.default_rng(2)
    truth = table_of(hierarchy, rng.integers(0, 50, (6, bins.n_bins)))
    variances = np.array([3.0, 1.0, 7.0])
    noisy = answers_of(truth, bins) + rng.integers(
        -5, 6, (hierarchy.n_regions, len(reference.questions(bins)))
    )
    own = least_squares(noisy, bins)
    combined, variance = combine_upwards(hierarchy, own, variances)
    slow = reference.generalised_least_squares(
        hierarchy.parent, noisy, variances[hierarchy.level_of], bins
    )
    np.testing.assert_allclose(combined[0], slow[0])
    # 1/variance of the root: its own, and that of sums of sums.
    states = 1 / (1 / 1.0 + 1 / 14.0)
    assert variance[0] == pytest.approx(1 / (1 / 3.0 + 1 / (3 * states)))


@pytest.mark.parametrize("bins", BINS)
def test_what_is_believed_of_a_deviation(bins: SizeBins) -> None:
    rng = np.random.default_rng(4)
    deviation, room = rng.normal(0, 5, bins.n_bins), rng.uniform(0, 30, bins.n_bins)
    room[1] = 0.0
    noise = np.array([[2.5]])
    fine, coarse = bins.weights
    free = room[None] * noise / (noise + fine**2 * room[None])
    found = posterior(deviation[None], free, coarse**2 / noise, noise, bins)[0]
    np.testing.assert_allclose(found, reference.believed(deviation, room, 2.5, bins), atol=1e-9)


def planted(seed: int, bins: SizeBins) -> tuple[Hierarchy, np.ndarray, Differences]:
    hierarchy = tree(3)
    counts = table_of(hierarchy, np.random.default_rng(seed).integers(1, 90, (3, bins.n_bins)))
    return hierarchy, counts, Differences(0.2, 0.01, (0.03, 0.02, 0.005))


def prior_variances(differences: Differences, groups: float, mean: float) -> list[float]:
    return [differences.groups * mean**2, *(variance * groups**2 for variance in differences.moves)]


@pytest.mark.parametrize("bins", BINS)
def test_moves_are_orthonormal_polynomials_of_the_rank(bins: SizeBins) -> None:
    shape = np.random.default_rng(1).dirichlet(np.ones(bins.n_bins), 2)
    found = moves_of(shape)
    for region in range(2):
        np.testing.assert_allclose(
            found[:, region], reference.moves(shape[region], MOVES), atol=1e-9
        )
        gram = (found[:, region] / shape[region]) @ found[:, region].T
        np.testing.assert_allclose(gram, np.eye(MOVES), atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=2), 0, atol=1e-12)
    # Two bins leave one way to move, a single one none.
    few = moves_of(np.array([[0.25, 0.75, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]))
    assert np.abs(few[0, 0]).max() > 0.1
    assert not few[1:, 0].any()
    assert not few[:, 1].any()


@pytest.mark.parametrize("bins", BINS)
def test_doubts_are_the_variances_that_noisy_answers_leave(bins: SizeBins) -> None:
    hierarchy, counts, differences = planted(5, bins)
    found = doubts(hierarchy, counts, [2.5, 40.0], [differences], bins)
    shape = counts[0] / counts[0].sum()
    directions = [shape, *reference.moves(shape, MOVES)]
    for region in range(1, 4):
        groups = counts[region].sum()
        room = (groups + differences.shape * groups**2) * shape
        variances = prior_variances(differences, groups, counts[0].sum() / 3)
        siblings = siblings_of(hierarchy, 1, counts.astype(np.float64))
        believed = pooling.belief(
            counts[1:].sum(axis=1) * 1.0,
            np.full((3, 1), 40.0),
            pooling.prior_of(siblings, differences),
            bins,
        )
        np.testing.assert_allclose(
            believed.doubt()[region - 1], reference.doubt(room, 40.0, directions, variances, bins)
        )
        # Apart from what all counts of the region have in common it is what is left of single
        # counts.
        np.testing.assert_allclose(found.own[region], reference.doubt(room, 40.0, [], [], bins))
        np.testing.assert_allclose(
            found.along[:, region] * shape, believed.left[:, region - 1], atol=1e-12
        )
        np.testing.assert_allclose(
            found.shared[:, region] * groups**2, np.diag(believed.uncertainty[region - 1])
        )


@pytest.mark.parametrize("bins", BINS)
def test_best_guesses_are_posterior_means(bins: SizeBins, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before siblings are made to add up, for κ of the number of groups that the rounds end with."""
    hierarchy, counts, differences = planted(8, bins)
    siblings, noise = siblings_of(hierarchy, 1, counts.astype(np.float64)), 40.0
    estimate = counts[1:] + np.random.default_rng(9).normal(0, 6, (3, bins.n_bins))
    used = []
    real = pooling.belief
    monkeypatch.setattr(
        pooling, "belief", lambda groups, *rest: used.append(groups) or real(groups, *rest)
    )
    monkeypatch.setattr(pooling, "_shared_out", lambda guess, doubt, siblings: guess)
    found = pooling.fit_below(estimate, np.full(3, noise), siblings, differences, bins)
    shape, mean = counts[0] / counts[0].sum(), counts[0].sum() / 3
    directions = [shape, *reference.moves(shape, MOVES)]
    for region, groups in enumerate(used[-1].tolist()):
        room = (groups + differences.shape * groups**2) * shape
        variances = prior_variances(differences, groups, mean)
        slow = reference.guess(
            estimate[region], mean * shape, room, noise, directions, variances, bins
        )
        np.testing.assert_allclose(found[region], slow, rtol=1e-6, atol=1e-6)


def test_planted_differences_are_found() -> None:
    hierarchy, bins = tree(600), SizeBins(np.arange(10))
    rng = np.random.default_rng(12)
    shape = np.array([0.25, 0.3, 0.15, 0.12, 0.08, 0.04, 0.03, 0.02, 0.01])
    groups = rng.gamma(4.0, 1000.0, 600)
    amounts = rng.normal(0, np.sqrt([0.02, 0.005, 0.0]), (600, 3))
    expected = groups[:, None] * (shape + amounts @ moves_of(shape[None])[:, 0])
    counts = rng.normal(expected, np.sqrt((groups + 0.001 * groups**2)[:, None] * shape))
    noisy = counts + rng.normal(0, 40, counts.shape)
    siblings = siblings_of(hierarchy, 1, np.concatenate([counts.sum(axis=0)[None], counts]))
    found = find_differences(noisy, np.full((600, 1), 1600.0), siblings, bins)
    assert found.groups == pytest.approx(0.25, rel=0.2)
    assert found.shape == pytest.approx(0.001, rel=0.35)
    assert found.moves[0] == pytest.approx(0.02, rel=0.2)
    assert found.moves[1] == pytest.approx(0.005, rel=0.3)
    assert found.moves[2] < 0.0005
    # Regions that differ over many sizes at once are told apart by all of them.
    errors = []
    for differences in (found, Differences(found.groups, 2 * found.shape)):
        fit = pooling.fit_below(noisy, np.full(600, 1600.0), siblings, differences, bins)
        errors.append(np.sqrt(((fit - counts)[:, 4:].sum(axis=1) ** 2).mean()))
    assert errors[0] < 0.8 * errors[1]


@pytest.mark.parametrize("bins", BINS)
def test_without_noise_the_truth_comes_back(bins: SizeBins) -> None:
    hierarchy = tree(4, 5)
    truth = table_of(hierarchy, np.random.default_rng(1).integers(1, 1000, (20, bins.n_bins)))
    answers = [answers_of(truth[hierarchy.level_slice(level)], bins) for level in range(3)]
    fit, _ = fit_size_bins(hierarchy, answers, [1e-9] * 3, bins)
    np.testing.assert_allclose(fit, truth, atol=1e-3)


def test_children_add_up_and_nothing_is_negative() -> None:
    for seed, bins in enumerate(BINS):
        hierarchy = tree(3, 4)
        rng = np.random.default_rng(seed)
        truth = table_of(hierarchy, rng.poisson(3, (12, bins.n_bins)))
        noisy = answers_of(truth, bins) + np.rint(
            rng.laplace(0, 10, (len(truth), len(reference.questions(bins))))
        )
        answers = [noisy[hierarchy.level_slice(level)].astype(np.int64) for level in range(3)]
        fit, _ = fit_size_bins(hierarchy, answers, [200.0] * 3, bins)
        assert fit.min() >= 0
        for region in range(4):
            children = slice(hierarchy.child_starts[region], hierarchy.child_starts[region + 1])
            np.testing.assert_allclose(fit[children].sum(axis=0), fit[region], atol=0.05)


def test_like_siblings_are_pooled_and_unlike_ones_are_not() -> None:
    """Two hundred regions of one shape: their errors fall far below the noise. With shapes of their
    own they stay.
    """
    hierarchy, bins = tree(200), SizeBins(np.arange(6))
    rng = np.random.default_rng(6)
    alike = rng.multinomial(300, [0.3, 0.3, 0.2, 0.1, 0.1], 200)
    own = 2000 * rng.multinomial(5, [0.2] * 5, 200)
    errors = []
    for leaves in (alike, own):
        truth = table_of(hierarchy, leaves)
        noisy = truth + np.rint(rng.normal(0, 30, truth.shape)).astype(np.int64)
        answers = [noisy[hierarchy.level_slice(level)] for level in range(2)]
        fit, _ = fit_size_bins(hierarchy, answers, [900.0, 900.0], bins)
        errors.append(float(np.sqrt(np.mean((fit[1:] - leaves) ** 2))))
    assert errors[0] < 12
    assert 20 < errors[1] < 31


def test_sizes_beyond_those_seen_follow_the_curve_or_stop_where_it_does() -> None:
    bins = SizeBins(np.concatenate([np.arange(13), 2 ** np.arange(4, 15)]))
    hierarchy = tree(1)
    rng = np.random.default_rng(0)
    falling = np.append(0, np.rint(2e4 * 0.5 ** np.arange(1, bins.n_bins))).astype(np.int64)
    stopping = np.where(np.arange(bins.n_bins) < 8, 10**6, 0)
    for truth, most in ((falling, 200), (stopping, 200)):
        noise = np.rint(rng.laplace(0, 20, (2, bins.n_bins))).astype(np.int64)
        answers = [(truth + noise[level])[None] for level in range(2)]
        fit = fit_size_bins(hierarchy, answers, [800.0, 800.0], bins)[0][0]
        assert (np.abs(fit - truth) * bins.edges[:-1])[12:].sum() < most


@pytest.mark.parametrize("bins", BINS)
def test_blocks_are_inverted_as_dense_matrices_are(bins: SizeBins) -> None:
    fine, coarse = bins.weights
    adds = np.repeat(np.eye(len(bins.block_sizes)), bins.block_sizes, axis=1)
    dense = fine**2 * np.eye(adds.shape[1]) + coarse**2 * adds.T @ adds
    rows = np.random.default_rng(4).normal(size=(3, len(dense)))
    np.testing.assert_allclose(precision(rows, bins), rows @ dense)
    np.testing.assert_allclose(solve(rows, bins), rows @ np.linalg.inv(dense))
    np.testing.assert_allclose(solve_diagonal(bins), np.diag(np.linalg.inv(dense)))

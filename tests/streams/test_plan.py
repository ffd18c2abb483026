from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.privacy.accounting import check_composition, measurements, total_loss
from tallytree.privacy.budget import Budget
from tallytree.privacy.sensitivity import returning_rows_sensitivity, running_rows_sensitivity
from tallytree.strategies.gaussian_strategy import gaussian_strategy
from tallytree.strategies.workloads import prefixes
from tallytree.streams.errors import (
    best_stream_branching,
    block_moments,
    block_uses,
    inverse_weights,
    largest_variance,
    n_levels,
    summed_variance,
)
from tallytree.streams.factors import BITS, scaled_root_factors, square_root_factors
from tallytree.streams.plan import (
    EPOCHS,
    LONGEST_EPOCH,
    plan_stream,
    rows_table,
    squared_error,
)
from tests.reference import streams as reference

PURE, ZCDP = Budget("pure", Fraction(1)), Budget("zcdp", Fraction(1, 2))


def test_decoding_inverts_the_rounded_weights_exactly():
    n = 90
    factors = square_root_factors(n)
    expected = reference.decoded(reference.weights(n), [1] + [0] * (n - 1))
    inverse = inverse_weights(factors, n)
    np.testing.assert_allclose(
        np.cumsum(inverse.forwards), [float(value) for value in expected], rtol=1e-12
    )
    assert inverse.backwards.tolist() == inverse.forwards[::-1].tolist()


def test_decoding_weights_lie_between_0_and_the_first_and_undo_the_sum():
    found = np.cumsum(inverse_weights(square_root_factors(5000), 5000).forwards)
    assert np.all(found > 0)
    assert found.max() == found[0] == 2**-16
    weights = np.array(reference.weights(600), dtype=np.float64)
    np.testing.assert_allclose(np.convolve(weights, found[:600])[:600], 1.0, rtol=1e-11)


@pytest.mark.parametrize(
    ("n_steps", "branching"), [(1, 2), (7, 2), (8, 2), (100, 3), (365, 20), (50, 60)]
)
def test_uses_of_blocks_are_sums_of_digits(n_steps, branching):
    levels = n_levels(n_steps, branching)
    digits = [reference.digits(step, branching, levels) for step in range(1, n_steps + 1)]
    assert block_uses(n_steps, branching) == np.sum(digits, axis=0).tolist()


@pytest.mark.parametrize(("n_steps", "figure"), [(365, 7.737), (1023, 9.669), (65_536, 19.664)])
def test_the_square_root_has_the_error_of_the_papers(n_steps, figure):
    """Per 1/(2ρ), with f_k = C(2k, k)/4^k: Σ f² times its running mean; rounding the weights costs
    nothing that is seen.
    """
    f = np.cumprod(np.concatenate([[1.0], 1 - 1 / (2 * np.arange(1, n_steps))]))
    theory = (f**2).sum() * np.cumsum(f**2).mean()
    assert theory == pytest.approx(figure, abs=1e-3)
    root = plan_stream(ZCDP, n_steps, strategy="square-root")
    assert squared_error(root, "mean") == pytest.approx(theory, rel=1e-4)
    assert squared_error(root, "largest") == pytest.approx((f**2).sum() ** 2, rel=1e-4)


def test_the_square_root_beats_the_binary_tree_nearly_three_times():
    for n_steps, tree, root in [(365, 22.0, 7.74), (1023, 29.0, 9.67)]:
        binary = squared_error(plan_stream(ZCDP, n_steps, strategy="tree", branching=2), "mean")
        assert binary == pytest.approx(tree, abs=0.3)
        plain = squared_error(plan_stream(ZCDP, n_steps, strategy="square-root"), "mean")
        assert binary / plain == pytest.approx(tree / root, abs=0.1)


# The least possible mean and largest error per 1/(2ρ): the convex optimum of
# `strategies.gaussian_strategy`, and the trace norm that bounds every factorisation from below,
# both worked out by `python -m benchmarks streams`.
LEAST = {
    12: (2.5836, 2.6341),
    52: (4.1502, 4.1995),
    64: (4.4094, 4.4579),
    365: (6.9394, 6.9796),
    1024: (8.7348, 8.7702),
}


@pytest.mark.parametrize("n_steps", LEAST)
def test_the_scaled_root_is_within_2_percent_of_the_least_error(n_steps):
    for objective, least in zip(("mean", "largest"), LEAST[n_steps], strict=True):
        found = squared_error(plan_stream(ZCDP, n_steps, objective=objective), objective)
        assert least <= found <= 1.02 * least


def test_the_least_mean_error_is_that_of_the_convex_optimum():
    n_steps = 64
    counts = np.tril(np.ones((n_steps, n_steps)))
    strategy = gaussian_strategy(prefixes(n_steps))
    error = np.linalg.norm(counts @ np.linalg.inv(strategy)) ** 2 / n_steps
    assert error == pytest.approx(LEAST[64][0], rel=2e-4)


def test_the_objective_is_what_is_small():
    mean, largest = (
        plan_stream(ZCDP, 365, objective=objective) for objective in ("mean", "largest")
    )
    assert squared_error(mean, "mean") < squared_error(largest, "mean")
    assert squared_error(largest, "largest") < squared_error(mean, "largest")


@pytest.mark.parametrize("n_steps", [1, 2, 3, 5, 31, 100])
@pytest.mark.parametrize("objective", ["mean", "largest"])
def test_scaled_roots_of_any_length_beat_the_square_root(n_steps, objective):
    plan = plan_stream(ZCDP, n_steps, objective=objective)
    root = plan_stream(ZCDP, n_steps, objective=objective, strategy="square-root")
    assert squared_error(plan, objective) <= squared_error(root, objective) * (1 + 1e-9)


def test_more_noise_takes_coarser_factors_that_leave_room_for_it():
    for objective, losses in (("mean", ("1/2", "1/100000")), ("largest", ("1/2", "1/1000"))):
        fine, coarse = (
            plan_stream(Budget("zcdp", Fraction(loss)), 1024, objective=objective)
            for loss in losses
        )
        rate = Fraction(losses[0]) / Fraction(losses[1])
        ratio = squared_error(coarse, objective) / squared_error(fine, objective) / float(rate)
        assert 1 < ratio < 1.05
        assert fine.factors[0] is scaled_root_factors(1024, objective, BITS[objective][0])
        assert coarse.factors[0] is not fine.factors[0]
    plan_stream(Budget("zcdp", Fraction(1, 100)), 65_536, contributions=100)


@pytest.mark.parametrize(
    "options", [{"min_gap": 3}, {"min_gap": 3, "contributions": 2, "strategy": "tree"}]
)
def test_a_gap_that_saves_nothing_is_refused(options):
    with pytest.raises(RequestError, match="min_gap"):
        plan_stream(ZCDP, 60, **options)
    with pytest.raises(RequestError, match="min_gap"):
        plan_stream(ZCDP, None, contributions=2, min_gap=3)
    with pytest.raises(RequestError, match="min_gap"):
        plan_stream(PURE, 60, contributions=2, min_gap=3)


def test_entities_of_two_epochs_would_cost_more_than_one_pattern():
    """Why a gap needs a horizon: two epochs, one entity at the start of each, cost more than the
    two of one epoch where the second one comes late.
    """
    factors = square_root_factors(10)
    apart = returning_rows_sensitivity(factors.weights, contributions=2, min_gap=9)
    assert 2 * running_rows_sensitivity(factors).l2_squared > apart.l2_squared


@pytest.mark.parametrize(("n_steps", "branching"), [(1, 2), (30, 3), (100, 3), (50, 60), (365, 5)])
def test_errors_of_trees_are_those_of_digits(n_steps, branching):
    levels = n_levels(n_steps, branching)
    variances = np.linspace(3, 1, levels)
    every = [
        np.dot(reference.digits(step, branching, levels), variances)
        for step in range(1, n_steps + 1)
    ]
    assert summed_variance(n_steps, branching, variances) == pytest.approx(sum(every))
    assert largest_variance(n_steps, branching, variances) == pytest.approx(max(every))


@pytest.mark.parametrize(
    ("n_steps", "branching", "gain"), [(365, 20, 2.85), (1023, 11, 2.53), (65_536, 17, 2.76)]
)
def test_the_best_tree_beats_the_binary_one_under_pure(n_steps, branching, gain):
    plan, binary = plan_stream(PURE, n_steps), plan_stream(PURE, n_steps, branching=2)
    assert plan.branching == (branching,)
    assert squared_error(binary, "mean") / squared_error(plan, "mean") == pytest.approx(
        gain, abs=0.02
    )


def test_no_branching_is_better_than_the_best():
    def mean(branching):
        levels = n_levels(30, branching)
        variances = block_moments(2.0 * levels**2, 0.0, levels, branching, inference=True).variance
        return np.mean(
            [np.dot(reference.digits(step, branching, levels), variances) for step in range(1, 31)]
        )

    best = best_stream_branching(30, True)
    assert mean(best) == pytest.approx(min(mean(branching) for branching in range(2, 32)))
    assert best_stream_branching(1, True) == 2


@pytest.mark.parametrize("budget", [PURE, ZCDP])
@pytest.mark.parametrize("horizon", [1, 365, None])
def test_records_cost_the_budget(budget, horizon):
    plan = plan_stream(budget, horizon, contributions=3)
    record = plan.record("one person")
    assert check_composition(record, budget) == ()
    assert total_loss(record, budget.definition) == budget.total
    assert len(list(measurements(record))) == sum(
        plan.epoch(number).n_levels for number in range(len(plan.epochs))
    )


def test_epochs_follow_one_another():
    plan = plan_stream(ZCDP, None, epochs=(3, 2))
    assert [plan.epoch_of(step) for step in range(8)] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0),
    ]  # fmt: skip
    assert plan_stream(ZCDP, None).epochs == plan_stream(PURE, 2**30).epochs == EPOCHS
    assert plan_stream(ZCDP, LONGEST_EPOCH).epochs == (LONGEST_EPOCH,)
    assert plan.epoch(5).noise == plan.epoch(1).noise != plan.epoch(0).noise


def test_rows_of_a_tree_are_the_blocks_that_are_complete():
    steps, levels = rows_table(plan_stream(PURE, 10, branching=3), 10)
    assert list(zip(steps.tolist(), levels.tolist())) == [
        (0, 0), (1, 0), (2, 0), (2, 1), (3, 0), (4, 0), (5, 0), (5, 1), (6, 0), (7, 0), (8, 0), (8, 1), (8, 2), (9, 0),
    ]  # fmt: skip


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(RequestError, match="strategy"):
        plan_stream(PURE, 5, strategy="wavelet")
    with pytest.raises(RequestError, match="branching"):
        plan_stream(PURE, 5, branching=1)
    with pytest.raises(RequestError, match="Epochs"):
        plan_stream(PURE, None, epochs=(4, 0))


@pytest.mark.parametrize("horizon", [900_000, 2**20, None])
def test_a_small_worst_error_may_be_asked_of_streams_of_any_length(horizon):
    """Sums of the finest factors would not fit into 64 bits."""
    plan = plan_stream(Budget("zcdp", Fraction(1)), horizon, objective="largest")
    assert all(factors.fit for factors in plan.factors)


@pytest.mark.parametrize("objective", ["mean", "largest"])
@pytest.mark.parametrize(("horizon", "room"), [(1000, 2**33), (2**20, 2**30)])
def test_there_is_room_for_as_many_arrivals_as_the_page_says(horizon, objective, room):
    """A row saturates at 2**61; arrivals count most in it where r_t w_(t-s) d_s is largest."""
    epoch = plan_stream(Budget("zcdp", Fraction(1, 2)), horizon, objective=objective).epoch(0)
    factors = epoch.factors
    most = 0
    for step in np.linspace(0, horizon - 1, 40).astype(int):
        seen = (factors.rows[step:] * factors.weights[: horizon - step]).max()
        most = max(most, int(seen) * int(factors.columns[step]))
    assert room * most < 2**61

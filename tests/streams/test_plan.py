from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.privacy.accounting import check_composition, measurements, total_loss
from tallytree.privacy.budget import Budget
from tallytree.streams.errors import (
    best_stream_branching,
    block_moments,
    block_uses,
    decoding_weights,
    n_levels,
)
from tallytree.streams.plan import (
    EPOCHS,
    LONGEST_EPOCH,
    mean_squared_error,
    plan_stream,
    rows_table,
)
from tests.reference import streams as reference

PURE, ZCDP = Budget("pure", Fraction(1)), Budget("zcdp", Fraction(1, 2))


def test_decoding_inverts_the_rounded_weights_exactly():
    n = 90
    weights = reference.weights(n)
    expected = reference.decoded(weights, [1] + [0] * (n - 1))
    np.testing.assert_allclose(
        decoding_weights(n), [float(value) for value in expected], rtol=1e-12
    )


def test_decoding_weights_lie_between_0_and_the_first_and_undo_the_sum():
    found = decoding_weights(5000)
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
    assert mean_squared_error(plan_stream(ZCDP, n_steps)) == pytest.approx(theory, rel=1e-4)


def test_the_square_root_beats_the_binary_tree_nearly_three_times():
    for n_steps, tree, root in [(365, 22.0, 7.74), (1023, 29.0, 9.67)]:
        binary = mean_squared_error(plan_stream(ZCDP, n_steps, strategy="tree", branching=2))
        assert binary == pytest.approx(tree, abs=0.3)
        assert binary / mean_squared_error(plan_stream(ZCDP, n_steps)) == pytest.approx(
            tree / root, abs=0.1
        )


@pytest.mark.parametrize(
    ("n_steps", "branching", "gain"), [(365, 20, 2.85), (1023, 11, 2.53), (65_536, 17, 2.76)]
)
def test_the_best_tree_beats_the_binary_one_under_pure(n_steps, branching, gain):
    plan, binary = plan_stream(PURE, n_steps), plan_stream(PURE, n_steps, branching=2)
    assert plan.branching == (branching,)
    assert mean_squared_error(binary) / mean_squared_error(plan) == pytest.approx(gain, abs=0.02)


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

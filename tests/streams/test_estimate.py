from fractions import Fraction

import numpy as np
import pytest

from tallytree.errors import InputError
from tallytree.privacy.budget import Budget
from tallytree.strategies.noise_moments import fourth_cumulant
from tallytree.streams.estimate import StreamEstimator, estimate_stream, follows, span_moments
from tallytree.streams.plan import plan_stream, rows_table
from tests.reference import streams as reference

ZCDP = Budget("zcdp", Fraction(1, 2))
BUDGETS = {"scaled-root": ZCDP, "square-root": ZCDP, "tree": Budget("pure", Fraction(1))}


@pytest.mark.parametrize("strategy", BUDGETS)
@pytest.mark.parametrize("epochs", [(200,), (7, 20, 50)])
def test_step_by_step_is_all_at_once(strategy, epochs):
    plan = plan_stream(BUDGETS[strategy], None, strategy=strategy, epochs=epochs)
    steps, _ = rows_table(plan, 150)
    rows = np.random.default_rng(1).integers(-(10**6), 10**7, len(steps))
    together = estimate_stream(plan, rows, 150)
    estimator = StreamEstimator(plan)
    for step in range(150):
        estimator.push(rows[steps == step])
        now = estimator.counts()
        for name in ("estimate", "variance", "cumulant"):
            np.testing.assert_allclose(
                getattr(now, name)[0], getattr(together, name)[step], rtol=1e-9, atol=1e-6
            )


@pytest.mark.parametrize("strategy", ["scaled-root", "square-root"])
def test_counts_solve_the_triangular_system(strategy):
    plan = plan_stream(ZCDP, 60, strategy=strategy)
    rows = np.random.default_rng(2).integers(-1000, 10**6, 60)
    factors = plan.factors[0]
    asked = (factors.weights.tolist(), rows.tolist(), factors.rows.tolist())
    exact = reference.decoded(*asked, factors.columns.tolist())
    np.testing.assert_allclose(
        estimate_stream(plan, rows, 60).estimate, [float(value) for value in exact], rtol=1e-10
    )


def test_blocks_average_their_own_count_with_their_parts():
    """Nine steps in threes: 9 rows of steps, 3 of blocks, 1 of all; each average by inverse
    variance.
    """
    plan = plan_stream(BUDGETS["tree"], 9, branching=3)
    steps, levels = rows_table(plan, 9)
    rows = np.random.default_rng(3).integers(0, 100, len(steps))
    own = plan.epoch(0).noise.variance
    single, triple, nine = rows[levels == 0], rows[levels == 1], rows[levels == 2]
    parts = single.reshape(3, 3).sum(axis=1)
    blocks, variance = (
        (triple / own + parts / (3 * own)) / (1 / own + 1 / (3 * own)),
        1 / (1 / own + 1 / (3 * own)),
    )
    whole = (nine[0] / own + blocks.sum() / (3 * variance)) / (1 / own + 1 / (3 * variance))
    found = estimate_stream(plan, rows, 9)
    np.testing.assert_allclose(found.estimate[[1, 2, 7, 8]], [
        single[:2].sum(), blocks[0], blocks[:2].sum() + single[6:8].sum(), whole,
    ])  # fmt: skip
    np.testing.assert_allclose(found.variance[[1, 2, 7, 8]], [
        2 * own, variance, 2 * variance + 2 * own, 1 / (1 / own + 1 / (3 * variance)),
    ])  # fmt: skip


@pytest.mark.parametrize("strategy", BUDGETS)
def test_published_counts_follow_from_rows_or_do_not(strategy):
    plan = plan_stream(BUDGETS[strategy], 40, strategy=strategy)
    rows = np.random.default_rng(4).integers(0, 10**5, len(rows_table(plan, 30)[0]))
    estimates = estimate_stream(plan, rows, 30).estimate
    assert follows(plan, rows, estimates)
    assert follows(plan, rows[:0], estimates[:0])
    changed = estimates.copy()
    changed[12] += 0.1
    assert not follows(plan, rows, changed)
    more = rows.copy()
    more[5] += 2000
    assert not follows(plan, more, estimates)
    with pytest.raises(InputError, match="rows, not"):
        estimate_stream(plan, rows[:-1], 30)


@pytest.mark.parametrize(
    ("strategy", "how"),
    [
        ("scaled-root", {}),
        ("square-root", {}),
        ("tree", {"branching": 3}),
        ("tree", {"branching": 3, "inference": False}),
    ],
)
def test_errors_of_ranges_of_steps_are_those_of_differences(strategy, how):
    """Counts are linear in the rows: the slow way asks what each count takes of every single row."""
    plan = plan_stream(BUDGETS[strategy], None, strategy=strategy, epochs=(9, 13), **how)
    n_steps = 30
    steps, _ = rows_table(plan, n_steps)
    taken = np.array(
        [estimate_stream(plan, row, n_steps).estimate for row in np.eye(len(steps), dtype=np.int64)]
    )
    taken = np.concatenate([np.zeros((len(steps), 1)), taken], axis=1)
    noises = [plan.epoch(plan.epoch_of(int(step))[0]).noise for step in steps]
    variance = np.array([noise.variance for noise in noises])
    cumulant = np.array([fourth_cumulant(noise) for noise in noises])
    for first in range(n_steps):
        for last in range(first + 1, n_steps + 1):
            change = taken[:, last] - taken[:, first]
            expected = variance @ change**2, cumulant @ change**4
            np.testing.assert_allclose(span_moments(plan, first, last), expected, rtol=1e-9)
    assert span_moments(plan, 4, 4) == (0, 0)

"""Streams: mean squared error of counts so far, measured beside theory and beside the binary tree,
and a long run online.
"""

import time
from fractions import Fraction

import numpy as np

import benchmarks
from tallytree.privacy.budget import Budget
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.streams.counter import StreamCounter
from tallytree.streams.estimate import estimate_stream
from tallytree.streams.kernels import square_root_weights, weighted_rows
from tallytree.streams.measure import measure_steps
from tallytree.streams.plan import StreamPlan, mean_squared_error, plan_stream

HORIZONS = {365: 4000, 1023: 4000, 65_536: 1000}
ZCDP, PURE = Budget("zcdp", Fraction(1, 2)), Budget("pure", Fraction(1, 10))


def main() -> dict[str, object]:
    rows = []
    print(
        "mean squared error, zCDP per 1/(2 rho), pure per 1/epsilon²; 'before' is the binary tree "
        "with averaging"
    )
    print(
        "   steps  definition  strategy              theory  measured     off  before  times less"
    )
    for horizon, runs in HORIZONS.items():
        for budget, unit in ((ZCDP, 1.0), (PURE, 100.0)):
            before = plan_stream(budget, horizon, strategy="tree", branching=2)
            for plan in (plan_stream(budget, horizon), before):
                theory, measured = mean_squared_error(plan) / unit, _measured(plan, runs) / unit
                row = {
                    "steps": horizon,
                    "definition": budget.definition,
                    "strategy": plan.strategy
                    + (f", branching {plan.branching[0]}" if plan.strategy == "tree" else ""),
                    "theory": theory,
                    "measured": measured,
                    "before": mean_squared_error(before) / unit,
                }
                rows.append(row)
                print(
                    f"{horizon:8,}  {row['definition']:10}  {row['strategy']:18} {theory:9.3f} "
                    f"{measured:9.3f}"
                    f" {measured / theory - 1:+7.2%} {row['before']:7.1f}  "
                    f"{row['before'] / theory:6.2f}"
                )
    return {"errors": rows, "unknown horizon": _unknown_horizon(), "online": _online()}


def _measured(plan: StreamPlan, runs: int) -> float:
    """Over seeded streams of the same arrivals; the exact rows are those that :func:`measure_steps`
    adds its noise to.
    """
    n_steps = plan.epochs[0]
    arrivals = np.random.default_rng(1).integers(0, 100, n_steps)
    truth, total = np.cumsum(arrivals), 0.0
    exact = (
        weighted_rows(square_root_weights(n_steps), arrivals, 0)
        if plan.strategy == "square-root"
        else None
    )
    for seed in range(runs):
        key = KeyStream.from_insecure_seed(seed)
        if exact is None:
            rows = measure_steps(plan, arrivals, key, first=0)
        else:
            places = np.arange(n_steps + 1)
            rows = add_noise(exact, plan.noise[0], key, level=0, query="stream", offsets=places)
            if seed == 0:
                again = KeyStream.from_insecure_seed(seed)
                assert np.array_equal(rows, measure_steps(plan, arrivals, again, first=0))
        total += float(np.mean((estimate_stream(plan, rows, n_steps).estimate - truth) ** 2))
    return total / runs


def _unknown_horizon() -> dict[int, list[float]]:
    """Variance of the count after some steps, horizon known and unknown."""
    print(
        "variance of the last count, horizon known and not known, zCDP per 1/(2 rho), pure per "
        "1/epsilon²"
    )
    found = {}
    for n_steps in (365, 1023, 65_536):
        values = []
        for budget, unit in ((ZCDP, 1.0), (PURE, 100.0)):
            for horizon in (n_steps, None):
                plan = plan_stream(budget, horizon)
                empty = np.zeros(sum(plan.rows_of(step) for step in range(n_steps)), dtype=np.int64)
                values.append(float(estimate_stream(plan, empty, n_steps).variance[-1]) / unit)
        found[n_steps] = values
        print(
            f"{n_steps:8,}  zCDP {values[0]:7.2f} {values[1]:7.2f}   pure {values[2]:8.1f} "
            f"{values[3]:8.1f}"
        )
    return found


def _online() -> dict[str, float]:
    """Every step by itself, as a service would take them."""
    n_steps = 65_536 if benchmarks.FULL else 16_384
    counter = StreamCounter(65_536, rho="1/2", definition="zcdp", insecure_seed=1)
    counter.add(1)
    start = time.process_time()
    for _ in range(n_steps - 1):
        counter.add(3)
    seconds = time.process_time() - start
    print(
        f"{n_steps:,} steps one by one: {seconds:.1f} s of CPU time, {seconds / n_steps * 1e3:.2f} "
        "ms per step"
    )
    return {"steps": n_steps, "seconds": seconds}

"""Streams: squared errors of counts so far, in theory and measured, beside the least possible ones
and those of other mechanisms, and a long run online.

``--full`` takes 500 streams per cell and all lengths; the table that it prints is that of
docs/reference/experiments/streams.md.
"""

import time
from fractions import Fraction

import numpy as np

import benchmarks
from tallytree.kernels.stream_rows import halves, weighted_rows
from tallytree.model.arrays import IntArray
from tallytree.options.choices import StreamObjective
from tallytree.privacy.budget import Budget
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.strategies.gaussian_strategy import gaussian_strategy
from tallytree.strategies.workloads import prefixes
from tallytree.streams.counter import StreamCounter
from tallytree.streams.errors import inverse_weights
from tallytree.streams.estimate import estimate_stream
from tallytree.streams.factors import square_root_factors
from tallytree.streams.measure import measure_steps
from tallytree.streams.plan import StreamPlan, plan_stream, squared_error

HORIZONS = (12, 52, 64, 365, 1024, 16_384, 65_536)
LONGEST_OPTIMUM = 1024
ZCDP, PURE = Budget("zcdp", Fraction(1, 2)), Budget("pure", Fraction(1, 10))
OBJECTIVES: tuple[StreamObjective, ...] = ("mean", "largest")


def main() -> dict[str, object]:
    print("squared error of the counts so far, zCDP per 1/(2 rho), pure per 1/epsilon²")
    print("| definition | error | steps | ours | measured | least | square root | normalised | "
          "Andersson et al. | binary tree | ours / best |")  # fmt: skip
    print("| --- " * 11 + "|")
    rows = [
        _row(budget, objective, n_steps)
        for budget in (ZCDP, PURE)
        for objective in OBJECTIVES
        for n_steps in (HORIZONS if benchmarks.FULL else HORIZONS[:4])
    ]
    return {"errors": rows, "unknown horizon": _unknown_horizon(), "online": _online()}


def _row(budget: Budget, objective: StreamObjective, n_steps: int) -> dict[str, object]:
    zcdp, runs = budget is ZCDP, 500 if benchmarks.FULL else 50
    unit = 1.0 if zcdp else 100.0
    ours = plan_stream(budget, n_steps, objective=objective)
    binary = plan_stream(budget, n_steps, strategy="tree", branching=2)
    beside: dict[str, float | None] = {
        "least": _least(objective, n_steps) if zcdp and n_steps <= LONGEST_OPTIMUM else None,
        "square root": None,
        "normalised": None,
        "Andersson et al.": None if zcdp else signed_digits(objective, n_steps),
        "binary tree": squared_error(binary, objective) / unit,
    }
    if zcdp:
        root = plan_stream(budget, n_steps, strategy="square-root")
        beside["square root"] = squared_error(root, objective)
        if n_steps <= 16_384:
            beside["normalised"] = normalised(objective, n_steps)
    theory = squared_error(ours, objective) / unit
    best = min(value for value in beside.values() if value is not None)
    row = {
        "definition": budget.definition,
        "error": objective,
        "steps": n_steps,
        "ours": theory,
        "measured": _measured(ours, objective, runs) / unit,
        **beside,
        "ours / best": theory / best,
    }
    print("| " + " | ".join(map(_cell, row.values())) + " |", flush=True)
    return row


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value >= 100 else f"{value:.3f}"
    return "–" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _measured(plan: StreamPlan, objective: StreamObjective, runs: int) -> float:
    """Over seeded streams of the same arrivals: mean over all steps, or of the step that is worst in
    theory. The exact rows are those that :func:`measure_steps` adds its noise to.
    """
    n_steps = plan.epochs[0]
    arrivals = np.random.default_rng(1).integers(0, 100, n_steps)
    truth, total = np.cumsum(arrivals), np.zeros(n_steps)
    exact = _exact_rows(plan, arrivals)
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
        found = estimate_stream(plan, rows, n_steps)
        total += (found.estimate - truth) ** 2
    worst = int(np.argmax(found.variance))
    return float(total.mean() if objective == "mean" else total[worst]) / runs


def _exact_rows(plan: StreamPlan, arrivals: IntArray) -> IntArray | None:
    factors = plan.factors[0]
    if factors is None:
        return None
    high, low = halves(arrivals, factors.columns)
    return weighted_rows(factors.narrow, factors.rows, high, low, 0)


def _least(objective: StreamObjective, n_steps: int) -> float:
    """No matrix mechanism with Gaussian noise has less error."""
    return least_mean(n_steps) if objective == "mean" else least_largest(n_steps)


def least_mean(n_steps: int) -> float:
    """The convex optimum, to 10^-4."""
    sums = np.tril(np.ones((n_steps, n_steps)))
    taken = np.linalg.solve(gaussian_strategy(prefixes(n_steps)).T, sums.T)
    return float((taken**2).sum()) / n_steps


def least_largest(n_steps: int, rounds: int = 30) -> float:
    """A lower bound: the squared trace norm of diag(p)^½ A diag(q)^½, for weights p and q of rows and
    columns that add up to 1. Each round moves them to where the optimum would have them.
    """
    sums = np.tril(np.ones((n_steps, n_steps)))
    p = q = np.full(n_steps, 1 / n_steps)
    best = 0.0
    for _ in range(rounds):
        left, values, right = np.linalg.svd(np.sqrt(p)[:, None] * sums * np.sqrt(q))
        best = max(best, float(values.sum()) ** 2)
        p, q = (left**2 @ values) / values.sum(), (right.T**2 @ values) / values.sum()
    return best


def normalised(objective: StreamObjective, n_steps: int) -> float:
    """The square root with columns of norm 1 (arXiv 2509.14334)."""
    root = square_root_factors(n_steps)
    norms = np.sqrt(root.sums_of_squares.astype(np.float64))
    inverse, errors = inverse_weights(root, n_steps).forwards, np.zeros(n_steps)
    for row in range(n_steps):
        errors[row:] += np.cumsum(norms[row:] * inverse[: n_steps - row]) ** 2
    return float(errors.mean() if objective == "mean" else errors.max())


def signed_digits(objective: StreamObjective, n_steps: int) -> float:
    """Andersson, Pagh and Torkamani 2024: h digits of both signs to an odd base k with (k^h − 1)/2 ≥
    n, 2 h² per unit of a digit; the best h.
    """
    found = []
    for h in range(1, 12):
        k = 3
        while (k**h - 1) // 2 < n_steps:
            k += 2
        left, used = np.arange(1, n_steps + 1), np.zeros(n_steps)
        for _ in range(h):
            digit = (left + k // 2) % k - k // 2
            left, used = (left - digit) // k, used + np.abs(digit)
        found.append(2 * h * h * float(used.mean() if objective == "mean" else used.max()))
    return min(found)


def _unknown_horizon() -> dict[int, list[float]]:
    """Mean error of the first steps, horizon not known and known."""
    print("mean squared error of the first steps, horizon not known, known, and their ratio")
    print("| steps | zCDP | known | ratio | pure | known | ratio |")
    print("| --- " * 7 + "|")
    found = {}
    for n_steps in (52, 104, 208, 365, 1024, 16_384, 65_536) if benchmarks.FULL else (365, 1024):
        values = []
        for budget, unit in ((ZCDP, 1.0), (PURE, 100.0)):
            for horizon in (None, n_steps):
                plan = plan_stream(budget, horizon)
                empty = np.zeros(sum(plan.rows_of(step) for step in range(n_steps)), dtype=np.int64)
                values.append(float(estimate_stream(plan, empty, n_steps).variance.mean()) / unit)
            values.append(values[-2] / values[-1])
        found[n_steps] = values
        print(f"| {n_steps:,} | " + " | ".join(map(_cell, values)) + " |", flush=True)
    return found | {0: [_floor_without_horizon()]}


def _floor_without_horizon() -> float:
    """No stream has less than so many times the least error of 12, 52, 365 and 1,024 steps at the
    worst of them: the least of the mean of the four ratios, by the same dual as
    :func:`~tallytree.strategies.gaussian_strategy.gaussian_strategy`.
    """
    lengths, n_steps = (12, 52, 365, 1024), 1024
    gram = np.zeros((n_steps, n_steps))
    for length in lengths:
        sums = np.tril(np.ones((length, length)))
        gram[:length, :length] += sums.T @ sums / (length * least_mean(length) * len(lengths))
    prices, bound = np.sqrt(np.diag(gram)), 0.0
    for _ in range(15):
        scale = np.sqrt(prices)
        values, vectors = np.linalg.eigh(scale[:, None] * gram * scale)
        roots = np.sqrt(np.maximum(values, 0.0))
        bound = max(bound, float(2 * roots.sum() - prices.sum()))
        prices = np.diag((vectors * roots) @ vectors.T).copy()
    print(f"without a horizon, at best {bound:.3f} × at the worst of {lengths} steps")
    return bound


def _online() -> dict[str, float]:
    """Steps around the last of 65,536 one by one, as a service would take them."""
    n_steps = 65_536
    counter = StreamCounter(n_steps, rho="1/2", definition="zcdp", insecure_seed=1)
    first = n_steps - 1000 if benchmarks.FULL else 15_000
    for _ in range(first):
        counter.add(3)
    start = time.process_time()
    for _ in range(1000):
        counter.add(3)
    seconds = time.process_time() - start
    print(f"steps {first:,} to {first + 1000:,}, one by one: {seconds:.3f} ms of CPU time per step")
    return {"steps": first + 1000, "milliseconds per step": seconds}

"""Medians and means of incomes by county: a table of values beside OpenDP's quantile and clipped
mean per county.

200,000 incomes, lognormal in each of 60 counties, three in ten of them at multiples of 1,000 or
5,000; steps of 10 dollars, bounds 0 and 500,000, ε = 1 in all, for six states and the whole too.
OpenDP (extra ``bench``) publishes a median and a mean of each county and nothing else, with all of
ε or, where states and the whole are to have theirs too, with a third: half of it for the median, by
its private quantile over candidates 100 dollars apart, the rest for a noisy sum of clipped incomes
and a noisy number of rows. It is given several bounds, of which the best one for this truth is for
the reader to choose. Run as ``python -m benchmarks.values``; ``--copies 40 --runs 40`` counts how
often intervals hold.
"""

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

import tallytree as tt
from tallytree.group_sizes.values.tables import statistics_of_all
from tallytree.ingest.read import read_values
from tallytree.model.count_of_counts import counts_on_all_levels
from tallytree.options.values import ValuesOptions

N_ROWS, N_COUNTIES, N_STATES, BOUND = 200_000, 60, 6, 500_000
HOW: dict[str, Any] = {"value": "income", "step": 10, "max": BOUND, "levels": ["state", "county"]}


def incomes(seed: int = 0) -> pa.Table:
    """Incomes of made-up people."""
    rng = np.random.default_rng(seed)
    county = rng.choice(N_COUNTIES, N_ROWS, p=rng.dirichlet(np.full(N_COUNTIES, 3.0)))
    centre = 10.6 + 0.25 * rng.standard_normal(N_COUNTIES)
    income = np.exp(centre[county] + 0.8 * rng.standard_normal(N_ROWS))
    heap = rng.random(N_ROWS)
    income = np.where(heap < 0.2, np.round(income, -3), income)
    income = np.where((heap >= 0.2) & (heap < 0.3), np.round(income / 5000) * 5000, income)
    state = county * N_STATES // N_COUNTIES
    return pa.table(
        {
            "state": [f"s{number}" for number in state],
            "county": [f"c{number:02}" for number in county],
            "income": np.round(income, 2),
        }
    )


def by_opendp(table: pa.Table, upper: float, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """Medians and means of counties, from so much for each county in all: a half for the median,
    0.45 for the sum and 0.05 for the number of rows.
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    county, income = table["county"].to_numpy(zero_copy_only=False), table["income"].to_numpy()
    candidates = np.arange(0.0, upper + 1, 100.0).tolist()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()

    def median_with(scale: float) -> Any:
        return dp.m.make_private_quantile(
            *space, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=scale
        )

    median = median_with(median_with(1.0).map(1) / (0.5 * epsilon))
    total = space >> dp.t.then_clamp((0.0, upper)) >> dp.t.then_sum()
    noisy_sum = dp.binary_search_chain(
        lambda scale: total >> dp.m.then_laplace(scale), d_in=1, d_out=0.45 * epsilon
    )
    noisy_count = space >> dp.t.then_count() >> dp.m.then_laplace(20.0 / epsilon)
    assert median.map(1) + noisy_sum.map(1) + noisy_count.map(1) <= 1.0001 * epsilon
    medians, means = [], []
    for name in np.unique(county):
        own = income[county == name].tolist()
        medians.append(median(own))
        means.append(noisy_sum(own) / max(noisy_count(own), 1))
    return np.array(medians), np.array(means)


def main(runs: int = 5, copies: int = 0) -> dict[str, Any]:
    """Print mean relative errors over counties, CPU time, and how often intervals hold."""
    table = incomes()
    truth = read_values(table, ValuesOptions(**HOW))
    assert truth.public.scale is not None
    exact = statistics_of_all(
        counts_on_all_levels(truth.hierarchy, truth.leaf_counts), truth.public.scale
    )
    counties = truth.hierarchy.level_slice(2)
    errors: list[np.ndarray] = []
    held: list[np.ndarray] = []
    seconds = []
    for seed in range(runs):
        start = time.process_time()
        made = tt.values(table, **HOW, epsilon=1, insecure_seed=seed, intervals=copies)
        seconds.append(time.process_time() - start)
        errors.append(np.abs(made.statistics.value / exact - 1)[counties])
        if copies:
            ends = made.statistics.errors
            held.append(((ends["low"] <= exact) & (exact <= ends["high"]))[counties])
    found = dict(zip(made.statistics.names, np.mean(errors, axis=(0, 1)).round(5).tolist()))
    figures: dict[str, Any] = {"seconds": max(seconds), "values": found}
    print(f"   CPU time of a release: {np.mean(seconds):.1f} s, at most {max(seconds):.1f} s")
    print("   mean relative error over counties:", found)
    if held:
        rates = np.mean(held, axis=(0, 1)).round(4).tolist()
        figures["held"] = dict(zip(made.statistics.names, rates))
        print("   intervals of 95 % hold:", figures["held"])
    names = made.statistics.names
    true_median, true_mean = (exact[counties, names.index(which)] for which in ("median", "mean"))
    asked = [(BOUND, 1.0), (300_000, 1.0), (200_000, 1.0), (BOUND, 1 / 3), (300_000, 1 / 3)]
    for upper, epsilon in asked:
        own = []
        for _ in range(runs if runs < 10 else 5):
            medians, means = by_opendp(table, float(upper), epsilon)
            own.append((np.abs(medians / true_median - 1), np.abs(means / true_mean - 1)))
        of_median, of_mean = np.mean(own, axis=(0, 2)).round(5).tolist()
        figures[f"opendp, {upper}, {epsilon:.2g}"] = {"median": of_median, "mean": of_mean}
        print(f"   OpenDP, ε = {epsilon:.2g}, to {upper:,}: median {of_median}, mean {of_mean}")
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--copies", type=int, default=0)
    asked = parser.parse_args()
    main(asked.runs, asked.copies)

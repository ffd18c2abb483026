"""Protecting whole groups: the error of ``unit="group"`` per level, beside two releases of the same
data.

``naive`` has the same protection: every size up to a public bound counted in every region, each
level with an equal share, levels combined by generalised least squares, then made whole by the same
steps. ``entity`` is the default release where only single entities are protected. Run as ``python
-m benchmarks.group_unit``; the data folder is named by TALLYTREE_DATA.
"""

import argparse
import sys
from dataclasses import replace

import numpy as np

from benchmarks.real_data import DATA, data_folder
from tallytree import ConfidentialCounts, evaluate, release
from tallytree.group_sizes.accuracy import protecting_groups
from tallytree.group_sizes.kernels.distance import earth_movers_distance
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.group_sizes.reconcile.size_bins import fill_bins
from tallytree.group_sizes.reconcile.totals import consistent_totals
from tallytree.kernels.tables.simplex import project_to_simplex
from tallytree.kernels.trees.projection import project_on_tree_in_place
from tallytree.lattice.whole import whole_columns
from tallytree.model.count_of_counts import counts_on_all_levels
from tallytree.privacy.budget import Budget, exact, noise_for
from tallytree.privacy.noise import draw_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import size_bins_sensitivity

# A public bound far above all sizes. A naive table of all counties takes a hundred times as long
# with 10,000 as with 1,000.
LOOSE = {"cps": 10_000, "flights": 10_000, "housing": 1_000}


def data_set(name: str) -> ConfidentialCounts:
    """Real data; households of counties as the Census published them, 7 and more people taken for
    7.
    """
    folder = data_folder()
    if folder is None:
        sys.exit("Set TALLYTREE_DATA to the folder of real data.")
    counts = DATA[name](folder)
    return replace(counts, leaf_counts=counts.leaf_counts.clip(7)) if name == "housing" else counts


def naive(counts: ConfidentialCounts, epsilon: str, max_size: int, seed: int) -> list[float]:
    """Errors per level of the histogram over all sizes up to the bound."""
    tree = counts.hierarchy
    exact_counts = counts.counts_on_levels
    noise = noise_for(
        Budget("pure", exact(epsilon, "epsilon") / tree.n_levels), size_bins_sensitivity()
    )
    bins = SizeBins(np.arange(max_size + 2))
    noisy = exact_counts.dense(max_size)
    stream = KeyStream.from_insecure_seed(seed)
    for level in range(tree.n_levels):
        here = noisy[tree.level_slice(level)]
        offsets = np.arange(len(here) + 1) * here.shape[1]
        here += draw_noise(noise, stream, level=level, query="naive", offsets=offsets).reshape(
            here.shape
        )
    totals = consistent_totals(tree, noisy.sum(axis=1), [noise.variance] * tree.n_levels)
    table = noisy.astype(np.float64)
    project_on_tree_in_place(tree, table)
    table[0] = project_to_simplex(table[0], np.array([0, table.shape[1]]), totals[:1])
    made = fill_bins(tree, whole_columns(tree, table, totals), bins)
    emd = earth_movers_distance(counts_on_all_levels(tree, made), exact_counts)
    return [float(emd[tree.level_slice(level)].mean()) for level in range(tree.n_levels)]


def released(counts: ConfidentialCounts, epsilon: str, seed: int, **options: object) -> list[float]:
    """Errors per level of a release."""
    made = release(counts, epsilon=epsilon, insecure_seed=seed, **options)  # type: ignore[arg-type]
    return [level.emd for level in evaluate(made, counts).levels]


def main() -> None:
    """Print a table of mean errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--data", nargs="*", default=list(LOOSE))
    parser.add_argument("--skip-naive", action="store_true")
    given = parser.parse_args()
    print('| data | ε | bound | levels | `unit="group"` | naive | entity protected |')
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.data:
        counts = data_set(name)
        protected = protecting_groups(counts)
        tight = int(counts.leaf_counts.size.max())
        for epsilon in ("1", "0.1"):
            entity = np.mean(
                [released(counts, epsilon, seed) for seed in range(given.runs)], axis=0
            )
            for bound in (tight, LOOSE.get(name, 10_000), None):
                ours = [
                    released(protected, epsilon, seed, max_size=bound) for seed in range(given.runs)
                ]
                cells = [
                    name,
                    epsilon,
                    f"{bound or 'none':,}" if bound else "none",
                    "/".join(counts.hierarchy.level_names),
                ]
                cells.append(_shown(np.mean(ours, axis=0)))
                if bound is None or given.skip_naive:
                    cells.append("")
                else:
                    runs = [naive(counts, epsilon, bound, seed) for seed in range(given.runs)]
                    cells.append(_shown(np.mean(runs, axis=0)))
                print("| " + " | ".join([*cells, _shown(entity)]) + " |", flush=True)


def _shown(errors: np.ndarray) -> str:
    return " / ".join(
        f"{error:,.0f}" if error >= 100 else f"{error:.3g}" for error in errors.tolist()
    )


if __name__ == "__main__":
    main()

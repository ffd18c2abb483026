"""What each idea of the default adds: the same release with one of them taken out.

    TALLYTREE_DATA=folder python -m benchmarks.accuracy.ablation [--sets cps flights] [--runs 4]

Prints, per idea, the error relative to the default's: the geometric mean over data sets, levels and
ε, and the worst of them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tallytree.group_sizes.estimate.staircases as estimate
import tallytree.group_sizes.kernels.blocks as kernel
import tallytree.group_sizes.kernels.curves as staircase_curves
import tallytree.group_sizes.kernels.rows as staircase_rows
import tallytree.group_sizes.mechanisms.turns as adaptive
import tallytree.group_sizes.reconcile.staircases as consistency
from benchmarks.accuracy.data import data_sets
from benchmarks.real_data import data_folder
from tallytree import evaluate, release
from tallytree.group_sizes.kernels.blocks import Prior

SETS = (
    "cps",
    "flights",
    "roma",
    "taxi",
    "housing",
    "england and wales",
    "businesses",
    "made-up gaps",
)
EPSILONS = ("1", "0.1")


def _keep_the_look(level: Any, n_groups: Any, own: Any, *, look: list[Prior]) -> Prior:
    """Instead of the parents' shapes, that of the first look for everybody."""
    return look[0]._replace(row=np.zeros(len(own), dtype=np.int64))


def without_parents_shapes() -> None:
    look: list[Prior] = []
    first = adaptive.prior_of_root

    def remember(*arguments: Any) -> Prior:
        look[:] = [first(*arguments)]
        return look[0]

    adaptive.prior_of_root = remember  # type: ignore[assignment]
    adaptive.prior_below = lambda *arguments: _keep_the_look(*arguments, look=look)  # type: ignore[assignment]


def without_blocks() -> None:
    kernel.BLUR = 1e-9


def without_rows_early() -> None:
    kernel.SPACING = 1e9


def without_fitted_prior() -> None:
    estimate.ROUGHNESSES, estimate.WINDOWS = (0.2,), (1.0,)  # type: ignore[assignment]


def without_steps() -> None:
    estimate._best_steps = lambda *arguments: (0.0, -np.inf)  # type: ignore[assignment]


def without_empty_tails() -> None:
    staircase_curves.EMPTY_TAIL = 1e18


def without_prior_for_rows() -> None:
    staircase_rows.UNEXPECTED = 1e6


def without_children() -> None:
    consistency._together = lambda own, summed: own  # type: ignore[assignment]


def without_doubt() -> None:
    consistency.window_means = np.zeros_like  # type: ignore[assignment]


def without_correction() -> None:
    consistency._without_bias = lambda n_groups, summed, answered, spread: summed  # type: ignore[assignment]


WITHOUT: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "a planned split (equal instead)": lambda: None,
    "blocks (every size on its own)": without_blocks,
    "rows for far sizes (blocks only)": without_rows_early,
    "the parents' shapes as prior": without_parents_shapes,
    "roughness and window by likelihood": without_fitted_prior,
    "level stretches and drops (smooth curves only)": without_steps,
    "empty tails (curves go on)": without_empty_tails,
    "the prior for rows (noise alone)": without_prior_for_rows,
    "children's sums for the parent": without_children,
    "doubt about children's sums": without_doubt,
    "the correction of sums by raw answers": without_correction,
}
# Those that change constants of kernels.
IN_KERNELS = (without_blocks, without_rows_early, without_empty_tails, without_prior_for_rows)


def errors(idea: str, sets: Sequence[str], runs: int) -> np.ndarray:
    """Mean EMD of every (data set, ε, level) without an idea."""
    WITHOUT[idea]()
    options = {"budget": "equal"} if "planned split" in idea else {}
    found: list[float] = []
    for name in sets:
        counts = data_sets(data_folder())[name]()
        for epsilon in EPSILONS:
            of_runs = []
            for seed in range(runs):
                made = release(
                    counts, epsilon=epsilon, insecure_seed=seed, mechanism="adaptive", **options
                )
                of_runs.append([level.emd for level in evaluate(made, counts).levels])
            found += np.mean(of_runs, axis=0).tolist()
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.ablation", description=__doc__
    )
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument(
        "--idea", help="For the script's own use: print the errors without one idea."
    )
    given = parser.parse_args()
    if given.idea:
        print(" ".join(map(repr, errors(given.idea, given.sets, given.runs).tolist())))
        return
    table = {}
    with tempfile.TemporaryDirectory() as caches:
        for idea in WITHOUT:
            # Kernels freeze their constants when they are compiled: a process for each idea, and a
            # cache where one changes.
            cache = str(
                Path(caches) / (WITHOUT[idea].__name__ if WITHOUT[idea] in IN_KERNELS else "shared")
            )
            command = [
                sys.executable,
                "-m",
                "benchmarks.accuracy.ablation",
                "--idea",
                idea,
                "--runs",
                str(given.runs),
            ]
            command += ["--sets", *given.sets]
            printed = subprocess.run(
                command,
                env=os.environ | {"NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            table[idea] = np.array([float(number) for number in printed.split()])
            ratio = table[idea] / table["nothing"]
            print(
                f"| {idea} | {np.exp(np.log(ratio).mean()):.2f} | {ratio.max():.2f} | "
                f"{ratio.min():.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

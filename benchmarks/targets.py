"""Does ``plan --target`` find an epsilon at which the real release meets the target? On real data,
from an earlier release.

    TALLYTREE_DATA=folder python -m benchmarks.targets [cps flights taxi housing]

For the root and the leaves of each data set the target is half the error that is predicted at
epsilon = 1.
"""

import sys
from typing import Any

import benchmarks
from benchmarks.prediction import EARLIER, RUNS, assumed_of, counts_of, errors
from benchmarks.real_data import DATA, data_folder
from tallytree import plan


def run(names: list[str], *, runs: int) -> dict[str, Any]:
    folder = data_folder()
    if folder is None:
        print("   SKIPPED: TALLYTREE_DATA names no folder of real data.")
        return {}
    figures = {}
    for name in names:
        assumed, truth, options = (
            assumed_of(name, folder),
            counts_of(name, folder),
            EARLIER.get(name, {}),
        )
        before = plan(assumed, epsilon=1, runs=5, **options)
        for level in (0, truth.hierarchy.n_levels - 1):
            level_name, bound = before.levels[level].name, before.levels[level].emd / 2
            found = plan(assumed, target=f"{level_name}: emd<={bound:.6g}", runs=5, **options)
            realised = [
                errors(truth, seed, epsilon=found.epsilon, **options)[level] for seed in range(runs)
            ]
            mean = sum(realised) / runs
            key = f"{name}, {level_name}: emd<={bound:.4g}"
            figures[key] = {"epsilon": found.epsilon, "realised": mean, "ratio": mean / bound}
            print(
                f"   {key}: epsilon {found.epsilon}, realised {mean:.4g}, ratio {mean / bound:.2f}",
                flush=True,
            )
    return figures


def main() -> dict[str, Any]:
    return run(list(DATA), runs=RUNS) if benchmarks.FULL else run(["cps", "flights"], runs=5)


if __name__ == "__main__":
    run(sys.argv[1:] or list(DATA), runs=RUNS)

"""How often does `compare` call a change clear where nothing changed? Two releases of the same truth, many times.

    python -m benchmarks.false_alarms DATA [--pairs 60] [--copies 10] [--epsilon 1]

DATA is the folder of real data; households of the Current Population Survey of one year are released twice per pair. A pair
gives a false alarm on a level when any of its counts is called clear.
"""

from __future__ import annotations

import argparse

import numpy as np

import tallytree as tt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    source = f"{asked.data}/cps_households_state/cps_households_state.csv.gz"
    years = {
        year: tt.read(
            source, size="size", levels=["region", "division", "fips"], where=f"year={year}", public="groups", root="US"
        )
        for year in (2012, 2014)
    }

    def released(year: int, seed: int) -> tt.Release:
        made = tt.release(years[year], epsilon=asked.epsilon, insecure_seed=seed)
        return tt.with_intervals(made, copies=asked.copies)

    names = years[2012].hierarchy.level_names
    alarms, alone, counts = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
    for pair in range(asked.pairs):
        found = tt.compare(released(2012, 2 * pair), released(2012, 2 * pair + 1)).levels
        alarms += [level.clear > 0 for level in found]
        alone += [level.clear_alone for level in found]
        counts += [level.counts for level in found]
        if (pair + 1) % 10 == 0:
            shares = ", ".join(f"{name} {share:.1%}" for name, share in zip(names, alarms / (pair + 1)))
            singles = ", ".join(f"{name} {share:.2%}" for name, share in zip(names, alone / counts))
            print(f"{pair + 1} pairs with any false alarm: {shares}; single counts below 5 %: {singles}", flush=True)
    print(tt.compare(released(2012, 1), released(2014, 2)), flush=True)


if __name__ == "__main__":
    main()

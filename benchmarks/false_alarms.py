"""How often does `compare` call a change clear where nothing changed? Releases of the same truth,
in pairs, many times.

    python -m benchmarks.false_alarms DATA [--releases 21] [--first 0] [--copies 40] [--epsilon 1]

DATA is the folder of real data; households of the Current Population Survey of one year are
released so many times, and all pairs of these releases are compared: 21 make 210 pairs. A pair
gives a false alarm on a level when any of its counts is called clear. ``--first`` is the seed of
the first release, so that pieces can be run whose numbers add up.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

import tallytree as tt


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--releases", type=int, default=21)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--copies", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=1.0)
    asked = parser.parse_args()
    source = f"{asked.data}/cps_households_state/cps_households_state.csv.gz"
    years = {
        year: tt.read(
            source,
            size="size",
            levels=["region", "division", "fips"],
            where=f"year={year}",
            public="groups",
            root="US",
        )
        for year in (2012, 2014)
    }

    def released(year: int, seed: int) -> tt.Release:
        made = tt.release(years[year], epsilon=asked.epsilon, insecure_seed=seed)
        return tt.with_intervals(made, copies=asked.copies)

    names = years[2012].hierarchy.level_names
    alarms, alone, counts = np.zeros(len(names)), np.zeros(len(names)), np.zeros(len(names))
    made = [released(2012, seed) for seed in range(asked.first, asked.first + asked.releases)]
    pairs = list(combinations(made, 2))
    for one, other in pairs:
        found = tt.compare(one, other).levels
        alarms += [level.clear > 0 for level in found]
        alone += [level.clear_alone for level in found]
        counts += [level.counts for level in found]
    shares = ", ".join(f"{name} {number:.0f}" for name, number in zip(names, alarms))
    singles = ", ".join(f"{name} {share:.2%}" for name, share in zip(names, alone / counts))
    print(
        f"of {len(pairs)} pairs, any false alarm: {shares}; single counts below 5 %: {singles}",
        flush=True,
    )
    if asked.first == 0:
        print(tt.compare(released(2012, 1), released(2014, 2)), flush=True)


if __name__ == "__main__":
    main()

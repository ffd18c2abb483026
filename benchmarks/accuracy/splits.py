"""What a split can do at most: the default with shares by force, the best of them chosen with the
truth known.

    TALLYTREE_DATA=folder python -m benchmarks.accuracy.splits [--sets cps flights] [--epsilon 1]
    [--runs 2]

Prints, per way to choose a split for each data set, the share of cells (data set, level) more than
5 % behind the better of both baselines, the geometric mean of errors relative to it, the share at
or below half of kuo2018's error, the mean for leaves and the worst cell. No mechanism can choose
like that; it shows what is left for a planner to gain. The laboratory must have run for the default
and for both baselines with the tight bound. What was released is kept and not released again.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from benchmarks.accuracy.data import data_sets
from benchmarks.accuracy.runs import RESULTS
from benchmarks.accuracy.tables import TIGHT_BASELINES, means
from benchmarks.real_data import data_folder
from tallytree import ConfidentialCounts, evaluate, release

LEAVES = tuple(
    Fraction(share) for share in ("0.35", "0.45", "0.55", "0.65", "0.75", "0.85", "0.92")
)
KEPT = RESULTS.parent / "splits.jsonl"


def splits(n_levels: int) -> list[tuple[Fraction, ...]]:
    """Leaves with a share of ``LEAVES``; the rest to the root, evenly, between both, and to the
    root and one more level.
    """
    upper = n_levels - 1
    only_root = [Fraction(1)] + [Fraction(0)] * (upper - 1)
    ways = [only_root]
    if upper == 2:
        ways += [[Fraction(root, 4), Fraction(4 - root, 4)] for root in (3, 2, 1)]
    elif upper > 2:
        ways.append([Fraction(1, upper)] * upper)
        ways.append([Fraction(1, 2)] + [Fraction(1, 2 * (upper - 1))] * (upper - 1))
        for second in range(1, upper):
            way = [Fraction(1, 3)] + [Fraction(0)] * (upper - 1)
            way[second] = Fraction(2, 3)
            ways.append(way)
    return [(*((1 - leaves) * part for part in way), leaves) for leaves in LEAVES for way in ways]


def errors(
    counts: ConfidentialCounts, split: Sequence[Fraction], epsilon: str, runs: int
) -> list[float]:
    """Mean EMD per level with shares by force."""
    options = {
        "epsilon": epsilon,
        "mechanism": "adaptive",
        "budget": [str(share) for share in split],
    }
    made = (release(counts, insecure_seed=seed, **options) for seed in range(runs))  # type: ignore[arg-type]
    return [
        float(mean)
        for mean in np.mean(
            [[level.emd for level in evaluate(one, counts).levels] for one in made], axis=0
        )
    ]


def released(names: Sequence[str], epsilon: str, runs: int) -> dict[str, list[np.ndarray]]:
    """Errors of all splits per data set; goes on where it was stopped."""
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    kept = {tuple(key): found for key, found in map(json.loads, lines)}
    table: dict[str, list[np.ndarray]] = {}
    for name in names:
        counts = data_sets(data_folder())[name]()
        for split in splits(counts.hierarchy.n_levels):
            key = name, epsilon, str(runs), *map(str, split)
            if key not in kept:
                kept[key] = errors(counts, split, epsilon, runs)
                with KEPT.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([key, kept[key]]) + "\n")
            table.setdefault(name, []).append(np.array(kept[key]))
    return table


# What is made small, from errors relative to the better baseline and to kuo2018.
WAYS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "least mean": lambda better, kuo2018: np.log(better).sum(),
    "fewest behind, then least mean": lambda better, kuo2018: (
        np.log(better).sum() + 100 * (better > 1.05).sum()
    ),
    "most at half of kuo2018, then least mean": lambda better, kuo2018: (
        np.log(better).sum() - 100 * (kuo2018 <= 0.5).sum()
    ),
    "mean, behind and half together": lambda better, kuo2018: (
        np.log(better).sum() + 0.3 * (better > 1.05).sum() - 0.3 * (kuo2018 <= 0.5).sum()
    ),
}


def row(found: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
    """The figures of one choice: errors of each data set relative to the better baseline and to
    kuo2018.
    """
    better, kuo2018 = (np.concatenate(column) for column in zip(*found))
    leaves = np.exp(np.mean([np.log(one[-1]) for one, _ in found]))
    behind, half = (better > 1.05).mean(), (kuo2018 <= 0.5).mean()
    mean = np.exp(np.log(better).mean())
    return f"{behind:.0%} | {mean:.2f} | {half:.0%} | {leaves:.2f} | {better.max():.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.splits", description=__doc__
    )
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--runs", type=int, default=2)
    given = parser.parse_args()
    table = released(given.sets or list(data_sets(data_folder())), given.epsilon, given.runs)
    laboratory = means()
    baselines = {
        name: [laboratory[name, baseline, given.epsilon][0] for baseline in TIGHT_BASELINES]
        for name in table
    }
    better = {name: np.minimum(*of_set) for name, of_set in baselines.items()}
    default = {name: laboratory[name, "default", given.epsilon][0] for name in table}
    print(
        "| split | behind | mean | half | leaves | worst |\n| --- | --- | --- | --- | --- | --- |"
    )
    print(
        "| planned |",
        row([(default[name] / better[name], default[name] / baselines[name][0]) for name in table]),
    )
    for way, regret in WAYS.items():
        chosen = [
            min(
                ((one / better[name], one / baselines[name][0]) for one in [*found, default[name]]),
                key=lambda ratios: regret(*ratios),
            )
            for name, found in table.items()
        ]
        print(f"| {way} |", row(chosen))


if __name__ == "__main__":
    main()

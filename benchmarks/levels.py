"""Errors per level on a generated country: the default beside matching with the hybrid and the
cumulative view.
"""

from dataclasses import replace

import numpy as np

import benchmarks
from benchmarks.scale_data import Dials, scale_counts
from tallytree import evaluate, release

# Blocks hold as many households as in the whole country. No group is larger than K: cumulative
# measures regions × K numbers.
COUNTRY = Dials(regions=(1, 52, 500, 2_500, 10_000, 100_000), groups=1_440_000, largest=500)
SMALL = replace(COUNTRY, regions=(1, 52, 200, 800, 3_000, 20_000), groups=288_000)
MECHANISMS = {
    "default": {},
    "matching, hybrid": {"mechanism": "matching", "view": "hybrid"},
    "matching, cumulative": {
        "mechanism": "matching",
        "view": "cumulative",
        "max_size": COUNTRY.largest,
    },
}


def main() -> dict[str, float]:
    counts = scale_counts(COUNTRY if benchmarks.FULL else SMALL)
    repeats = 3 if benchmarks.FULL else 1
    figures = {}
    for epsilon in ("1", "0.1"):
        emd = {}
        for name, options in MECHANISMS.items():
            made = [
                release(counts, epsilon=epsilon, insecure_seed=seed, **options)
                for seed in range(repeats)
            ]
            emd[name] = np.mean(
                [[level.emd for level in evaluate(one, counts).levels] for one in made], axis=0
            )
        for place, level in enumerate(counts.hierarchy.level_names):
            found = {name: float(errors[place]) for name, errors in emd.items()}
            figures |= {
                f"epsilon {epsilon}, level {place}: EMD, {name}": value
                for name, value in found.items()
            }
            ratios = [
                found["default"] / value for name, value in found.items() if name != "default"
            ]
            figures[f"epsilon {epsilon}, level {place}: default / better of the others"] = max(
                ratios
            )
            shown = ", ".join(f"{name} {value:,.2f}" for name, value in found.items())
            print(
                f"   ε = {epsilon}, {level}: {shown}; default / better of the others "
                f"{max(ratios):.2f}",
                flush=True,
            )
    return figures

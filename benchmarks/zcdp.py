"""Pure against zero-concentrated differential privacy at equal (epsilon, delta = 1e-9): error per
level on housing data.

The folder of real data is named by TALLYTREE_DATA; without it the synthetic housing data of the
demo is taken.
"""

import os
from fractions import Fraction
from pathlib import Path

from tallytree import ConfidentialCounts, evaluate, release
from tallytree.papers.datasets import county_housing
from tallytree.papers.housing import housing_counts
from tallytree.privacy.conversion import rho_from_epsilon

DELTA = Fraction(1, 10**9)
RUNS = 5
# What is measured, and how much one protected unit may add: one person, or all people of a unit
# that may join any household.
SETTINGS = {
    "hybrid": ({"view": "hybrid"}, 1),
    "cumulative": ({"view": "cumulative", "max_size": 10_000}, 1),
    "naive": ({"view": "naive", "max_size": 1_000}, 1),
    "cumulative, max_quantity = 50": ({"view": "cumulative", "max_size": 10_000}, 50),
}


def data() -> ConfidentialCounts:
    folder = os.environ.get("TALLYTREE_DATA")
    return county_housing(Path(folder)) if folder else housing_counts(11_700_000)


def emd(counts: ConfidentialCounts, **options: object) -> list[float]:
    """Mean earth mover's distance per region, level by level, over several runs."""
    runs = [
        evaluate(release(counts, insecure_seed=seed, **options), counts).levels
        for seed in range(RUNS)
    ]
    return [sum(levels[level].emd for levels in runs) / RUNS for level in range(len(runs[0]))]


def main() -> dict[str, float]:
    counts = data()
    figures: dict[str, float] = {}
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(10)):
        rho = rho_from_epsilon(epsilon, DELTA)
        for name, (options, max_quantity) in SETTINGS.items():
            bounded = counts.with_public(max_quantity=max_quantity)
            pure = emd(bounded, epsilon=epsilon, **options)
            zcdp = emd(bounded, rho=rho, definition="zcdp", **options)
            row = " / ".join(f"{a:,.4g} → {b:,.4g}" for a, b in zip(pure, zcdp, strict=True))
            print(
                f"   epsilon = {float(epsilon):g}, rho = {float(rho):.4g}, {name}: EMD pure → zCDP "
                f"{row}",
                flush=True,
            )
            for level, (a, b) in enumerate(zip(pure, zcdp, strict=True)):
                key = f"epsilon {float(epsilon):g}, {name}, level {level}"
                figures |= {f"{key}, pure": a, f"{key}, zcdp": b}
    return figures


if __name__ == "__main__":
    main()

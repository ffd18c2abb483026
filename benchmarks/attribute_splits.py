"""Budgets by attributes split by hand: whether any split does better than the planned one, for all
tables or for cells alone.

Run as ``python -m benchmarks.attribute_splits``; real households need TALLYTREE_DATA.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.attributes import by_cells, households, lattice_errors
from tallytree import ConfidentialCounts
from tallytree.model.arrays import FloatArray
from tallytree.model.attributes import Attributes
from tallytree.model.count_of_counts import counts_from_runs, sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.lattice import Family, Lattice


class Dials(NamedTuple):
    """Made-up households: regions per level, values per attribute, and how large households are."""

    fan_outs: tuple[int, ...]
    values: tuple[int, ...]
    groups: int
    mean: float
    is_geometric: bool
    seed: int


SETS: dict[str, Callable[[], ConfidentialCounts]] = {
    "cps": lambda: by_cells(households()),
    "counties": lambda: made_up(Dials((10, 12), (3, 4), 300_000, 1.6, is_geometric=False, seed=1)),
    "deep": lambda: made_up(Dials((4, 4, 6), (2, 2), 120_000, 5.0, is_geometric=True, seed=2)),
    "one attribute": lambda: made_up(
        Dials((6, 40), (3,), 500_000, 2.2, is_geometric=False, seed=3)
    ),
}


def made_up(dials: Dials) -> ConfidentialCounts:
    """Mean sizes differ by combination, by region of every level, and a little by both; nobody has
    the value "other".
    """
    rng = np.random.default_rng(dials.seed)
    n_leaves = int(np.prod(dials.fan_outs))
    paths = np.array(np.unravel_index(np.arange(n_leaves), dials.fan_outs)).T.tolist()
    levels = range(1, len(dials.fan_outs) + 1)
    labels = [tuple(".".join(map(str, path[:level])) for level in levels) for path in paths]
    tree = hierarchy_from_leaves([f"level {level}" for level in levels], labels, root="US")
    names = tuple("ab"[: len(dials.values)])
    attributes = Attributes(names, tuple((*map(str, range(n)), "other") for n in dials.values))
    n_cells = attributes.n_cells
    places = np.array(np.unravel_index(np.arange(n_cells), attributes.shape)).T
    weight = np.where(
        (places < dials.values).all(axis=1), rng.dirichlet(np.full(n_cells, 1.5)), 0.0
    )
    weight = (
        rng.lognormal(sigma=1.0, size=(n_leaves, 1))
        * weight
        * rng.lognormal(sigma=0.2, size=(n_leaves, n_cells))
    )
    groups = rng.multinomial(dials.groups, weight.ravel() / weight.sum())
    mean = (
        dials.mean
        * rng.lognormal(sigma=0.35, size=n_cells)
        * rng.lognormal(sigma=0.08, size=(n_leaves, n_cells))
    )
    for level in levels[:-1]:
        n_regions = int(np.prod(dials.fan_outs[:level]))
        mean *= np.repeat(rng.lognormal(sigma=0.15, size=n_regions), n_leaves // n_regions)[:, None]
    row, of_group = (
        np.repeat(np.arange(n_leaves * n_cells), groups),
        np.repeat(mean.ravel(), groups),
    )
    size = (
        rng.geometric(1 / np.maximum(of_group, 1.01))
        if dials.is_geometric
        else 1 + rng.poisson(of_group)
    )
    # Like couples, groups with the first value of the first attribute have one member more.
    size = size + (places[row % n_cells, 0] == 0)
    cells = counts_from_runs(row, size, np.ones_like(size), n_leaves * n_cells)
    leaves = sum_over_regions(cells, np.arange(n_leaves * n_cells) // n_cells, n_leaves)
    return ConfidentialCounts(
        PublicFacts(tree, attributes=attributes), leaves, leaves.n_groups(), cell_counts=cells
    )


def splits(lattice: Lattice) -> list[dict[Family, float]]:
    """Shares in all, most for the cells of the root and of the leaves, some for a level in between
    or for regions.
    """
    cells, finest = lattice.finest.margin, lattice.finest
    found = [{Family(0, cells): top} for top in (0.15, 0.2, 0.25, 0.3, 0.4)]
    found += [
        {Family(0, cells): 0.3, Family(level, cells): 0.4} for level in range(1, finest.level)
    ]
    found += [
        {Family(0, cells): 0.3, Family(level, ()): 0.3}
        for level in (finest.level - 1, finest.level)
    ]
    return [{**shares, finest: 1 - sum(shares.values())} for shares in found]


def show(name: str, errors: list[FloatArray]) -> None:
    """One row: cells, all values together, and the geometric means of all and of the cells."""
    mean = np.mean(errors, axis=0)
    half = len(mean) // 2
    texts = [" / ".join(f"{value:,.1f}" for value in part) for part in (mean[:half], mean[half:])]
    means = (np.exp(np.log(part).mean()) for part in (mean, mean[:half]))
    print(
        f"| {name} | {' | '.join(texts)} | {' | '.join(f'{value:.1f}' for value in means)} |",
        flush=True,
    )


def main() -> None:
    """Print a table per set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--epsilon", nargs="*", default=["1", "0.1"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--planned", action="store_true", help="only the planned splits")
    given = parser.parse_args()
    for name in given.sets:
        counts = SETS[name]()
        lattice = counts.lattice
        names = lattice.hierarchy.level_names
        cells = [f"{level}:{','.join(lattice.attributes.names)}" for level in names]
        print(
            f"\n{name}\n\n| ε | split | cells | all values together | mean | of cells |\n|"
            + " --- |" * 6
        )
        for epsilon in given.epsilon:
            for text, want in (("planned", []), ("planned for cells", cells)):
                found = [
                    lattice_errors(counts, epsilon, seed, want=want) for seed in range(given.runs)
                ]
                show(f"{epsilon} | {text}", found)
            for shares in [] if given.planned else splits(lattice):
                budget = [
                    f"{shares[family]:.2f}" if family in shares else "0"
                    for family in lattice.families
                ]
                found = [
                    lattice_errors(counts, epsilon, seed, budget=budget)
                    for seed in range(given.runs)
                ]
                text = ", ".join(
                    f"{names[f.level]}{' by all' if f.margin else ''} {share:.2f}"
                    for f, share in shares.items()
                )
                show(f"{epsilon} | {text}", found)


if __name__ == "__main__":
    main()

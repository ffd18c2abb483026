"""The split of a budget where there are many attributes or levels: CPU time beside few of them."""

from fractions import Fraction

import numpy as np

import benchmarks
from tallytree.group_sizes.plan.allocation import shares_for_levels
from tallytree.group_sizes.plan.families import shares_for_families
from tallytree.group_sizes.plan.first_look import FirstLook, look_ends
from tallytree.lattice.shares import wanted_families
from tallytree.model.attributes import Attributes
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.lattice import Lattice

GROUPS, LEAVES = 2_000_000, 300
# The same number of cells, 48, by few attributes and by many.
BY = {"three attributes": (4, 4, 3), "five attributes": (2, 2, 2, 2, 3)}
LEVELS, LEAVES_OF_LEVELS = (4, 7, 13), 4096


def look(n_groups: int) -> FirstLook:
    return FirstLook(look_ends(), n_groups * np.exp(-look_ends() / 2.0), n_groups, 40.0)


def noise_std(share: Fraction) -> float:
    return 1.5 / float(share)


def plan_attributes(shape: tuple[int, ...]) -> None:
    """The split over all tables of states, counties and attributes."""
    leaves = sorted((f"s{i % 20:02d}", f"c{i:04d}") for i in range(LEAVES))
    values = tuple(tuple(f"v{value}" for value in range(n)) for n in shape)
    attributes = Attributes(tuple(f"a{place}" for place in range(len(shape))), values)
    lattice = Lattice(hierarchy_from_leaves(["state", "county"], leaves, root="US"), attributes)
    weights = np.random.default_rng(0).dirichlet(np.full(LEAVES * attributes.n_cells, 0.5))
    cells = np.random.default_rng(1).poisson(GROUPS * weights)
    groups = {family: lattice.sums(family, cells) for family in lattice.families}
    wanted = wanted_families((), lattice)
    shares_for_families(look(GROUPS), lattice, groups, noise_std, wanted)


def plan_levels(n_levels: int) -> None:
    """The split over levels of the same leaves, with fewer children the more levels there are."""
    widths = np.geomspace(1, LEAVES_OF_LEVELS, n_levels).round().astype(int)
    groups = [np.full(width, GROUPS // width) for width in widths]
    shares_for_levels(look(GROUPS), groups, noise_std)


def main() -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, shape in BY.items():
        figures[f"{name}: CPU seconds"] = benchmarks.least_seconds(
            lambda shape=shape: plan_attributes(shape), 5
        )[1]
    few, many = figures.values()
    figures["five attributes / three"] = many / few
    costs = []
    for n_levels in LEVELS:
        costs.append(benchmarks.least_seconds(lambda n=n_levels: plan_levels(n), 5)[1])
        figures[f"{n_levels} levels: CPU seconds"] = costs[-1]
    figures["levels: exponent of CPU time"] = float(np.polyfit(np.log(LEVELS), np.log(costs), 1)[0])
    print("".join(f"   {name}: {value:.2f}\n" for name, value in figures.items()), end="")
    return figures


if __name__ == "__main__":
    main()

"""Small confidential inputs and all of their neighbours."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.model.classes import classes_from
from tallytree.model.confidential import ConfidentialCounts, in_classes
from tallytree.model.confidential_table import ConfidentialTable, PublicTable
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit
from tallytree.model.values import Values

LEAVES = (("GA", "Cobb"), ("GA", "Fulton"), ("NY", "Kings"))
TREE = hierarchy_from_leaves(["state", "county"], LEAVES, root="US")


@dataclass(frozen=True)
class Households:
    """Groups by leaf with their sizes; a private group of no entities does not exist."""

    groups: tuple[tuple[int, int], ...]
    groups_public: bool = True
    max_quantity: int = 1
    contributions: int = 1
    whole_groups: bool = False
    classes: str = ""

    def counts(self) -> ConfidentialCounts:
        """As the reader hands them over."""
        there = [(leaf, size) for leaf, size in self.groups if self.groups_public or size > 0]
        leaf, size = (np.array([group[i] for group in there], dtype=np.int64) for i in (0, 1))
        table = counts_from_runs(leaf, size, np.ones(len(there), dtype=np.int64), TREE.n_leaves)
        counts = ConfidentialCounts(
            PublicFacts(
                TREE,
                groups_public=self.groups_public,
                max_quantity=self.max_quantity,
                unit=Unit(
                    "row",
                    "person" if self.contributions > 1 else "",
                    self.contributions,
                    group="group" if self.whole_groups else "",
                ),
            ),
            leaf_counts=table,
            n_groups=table.n_groups(),
        )
        return in_classes(counts, classes_from(self.classes)) if self.classes else counts

    def neighbours(self) -> Iterator["Households"]:
        """With one unit more: up to k entities, in any groups, each of the largest quantity or of
        1; or one whole group.
        """
        if self.whole_groups:
            for leaf in range(len(LEAVES)):
                for size in (1, 2, 3, 4, 9, 13, 40, 10**6):
                    yield replace(self, groups=(*self.groups, (leaf, size)))
            return
        quantities = sorted({1, self.max_quantity})
        entities = [
            (group, quantity) for group in range(len(self.groups)) for quantity in quantities
        ]
        for n_entities in range(1, self.contributions + 1):
            for unit in combinations_with_replacement(entities, n_entities):
                sizes = [list(group) for group in self.groups]
                for group, quantity in unit:
                    sizes[group][1] += quantity
                yield replace(self, groups=tuple((leaf, size) for leaf, size in sizes))


AGES = Values(("sex", "age"), (("f", "m"), tuple(map(str, range(17)))), ("age",))


def table_of(counts: IntArray, contributions: int = 1) -> ConfidentialTable:
    """Rows of every leaf by sex and age, as the reader hands them over."""
    unit = Unit("row", "person" if contributions > 1 else "", contributions)
    cell = np.flatnonzero(counts)
    return ConfidentialTable(PublicTable(TREE, AGES, unit), cell, counts.ravel()[cell])


def random_households(rng: np.random.Generator, **kind: object) -> Households:
    """A few groups of small sizes, two of them alike, one empty, one large."""
    leaves = rng.integers(0, len(LEAVES), 4).tolist()
    sizes = [3, 3, 0, int(rng.integers(20, 40))]
    return Households(
        tuple(zip([*leaves, 0, 1, 2], [*sizes, 1, 2, int(rng.integers(4))], strict=True)), **kind
    )  # type: ignore[arg-type]

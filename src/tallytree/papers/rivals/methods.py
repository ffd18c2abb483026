"""Methods of other papers for maps and lines of bins, which no default and no ``auto`` chooses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallytree.boxes.draft import Measurement
from tallytree.boxes.methods import Method
from tallytree.model.arrays import FloatArray
from tallytree.model.box_tree import BoxTree
from tallytree.papers.rivals.clusters import ahp, clustered_cells, sums_agree
from tallytree.papers.rivals.maps import dawa, privtree
from tallytree.papers.rivals.partitions import (
    noisy_first,
    noisy_merge,
    structure_first,
    structure_merge,
)


@dataclass(frozen=True)
class NoisyClusters:
    """Clusters of cells with like noisy counts, found again from the answers."""

    def cells(
        self, tree: BoxTree, measurements: Sequence[Measurement], *, nonnegative: bool
    ) -> FloatArray:
        """Every cell with the mean of its cluster."""
        return clustered_cells(tree, measurements, nonnegative=nonnegative)

    def agree(self, measurements: Sequence[Measurement]) -> bool:
        """Whether all cells of a cluster hold the same sum."""
        return sums_agree(measurements)


MECHANISMS: dict[str, Method] = {
    "dawa": Method(dawa, chooses=True, exact_errors=True),
    "privtree": Method(privtree, chooses=True, exact_errors=True),
    "ahp": Method(ahp, exact_errors=True, clusters=NoisyClusters()),
    "noisy-first": Method(noisy_first, one_column=True),
    "structure-first": Method(structure_first, one_column=True, chooses=True),
    "noisy-merge": Method(noisy_merge, one_column=True),
    "structure-merge": Method(structure_merge, one_column=True, chooses=True),
}

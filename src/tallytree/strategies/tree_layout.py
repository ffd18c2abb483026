"""The blocks of a range tree as numbered nodes, ready for the kernels on trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.model.arrays import IntArray, offsets_from_lengths, read_only
from tallytree.model.range_tree import RangeTree


@dataclass(frozen=True)
class TreeLayout:
    """Nodes of a range tree, level by level from a single root, leaves being the bins.

    Where the tree does not count the whole domain, a root that is not counted is put on top, so
    that kernels see one tree and not a forest; level ``l`` of the tree is then level ``l + 1``
    here.
    """

    tree: RangeTree

    @property
    def has_bare_root(self) -> bool:
        """Whether the root was added and is not counted."""
        return self.tree.n_blocks(0) > 1

    @cached_property
    def widths(self) -> IntArray:
        """Bins per node of each level, the root's at least the number of bins."""
        widths = list(self.tree.widths)
        if self.has_bare_root:
            widths.insert(0, widths[0] * self.tree.n_blocks(0))
        return read_only(np.array(widths, dtype=np.int64))

    @cached_property
    def level_starts(self) -> IntArray:
        """Nodes of level ``l`` are ``level_starts[l]:level_starts[l + 1]``."""
        return read_only(offsets_from_lengths(-(-self.tree.n_bins // self.widths)))

    @cached_property
    def child_starts(self) -> IntArray:
        """Children of node ``v`` are ``child_starts[v]:child_starts[v + 1]``."""
        sizes = np.diff(self.level_starts)
        starts = [
            self.level_starts[level + 1]
            + np.minimum(
                np.arange(sizes[level]) * (self.widths[level] // self.widths[level + 1]),
                sizes[level + 1],
            )
            for level in range(len(sizes) - 1)
        ]
        return read_only(
            np.concatenate([*starts, np.full(sizes[-1] + 1, self.n_nodes, dtype=np.int64)])
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, an added root included."""
        return int(self.level_starts[-1])

    @property
    def leaves(self) -> slice:
        """The nodes that are bins."""
        return slice(int(self.level_starts[-2]), int(self.level_starts[-1]))

    def block_sums(self, counts: IntArray) -> list[IntArray]:
        """Sums of bins over the blocks of each counted level, the coarsest first."""
        sums = [counts]
        for coarse, fine in zip(self.tree.widths[-2::-1], self.tree.widths[:0:-1]):
            sums.append(np.add.reduceat(sums[-1], np.arange(0, len(sums[-1]), coarse // fine)))
        return sums[::-1]

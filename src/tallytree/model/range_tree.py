"""Nested blocks over the bins of a one-dimensional histogram: what a hierarchical strategy counts.

A level cuts the bins into consecutive blocks of one width; the last block may be short. Each width
is a multiple of the next finer one, so that blocks nest, and the finest level is the bins
themselves. With widths b^(h-1), …, b, 1 this is the tree of qardaji2013 §3.2, in which the whole
domain is not counted; with one width of at least ``n_bins`` in front it is that of hay2010 §4, in
which it is. Because only the last block of a level can be short, a tree of any size has at most two
kinds of block per level, which is what makes the exact error formulas of
:mod:`tallytree.strategies` cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from tallytree.errors import RequestError


def height(n_bins: int, branching: int) -> int:
    """⌈log_b N⌉, at least 1, in whole numbers: how many levels a tree with that branching factor
    needs.
    """
    levels, reach = 1, branching
    while reach < n_bins:
        levels, reach = levels + 1, reach * branching
    return levels


@dataclass(frozen=True)
class RangeTree:
    """Levels of nested blocks, the coarsest first, as DESIGN counts levels from the root.

    Parameters
    ----------
    n_bins
        Number of bins, at least 1.
    widths
        Bins per block of each counted level, strictly decreasing to 1, each a multiple of the next.
        Only the first may reach ``n_bins``: then the whole domain is counted too.

    Examples
    --------
    >>> RangeTree.regular(10, branching=3).widths
    (9, 3, 1)
    """

    n_bins: int
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.n_bins < 1:
            raise RequestError(f"A histogram needs at least one bin, got {self.n_bins}.")
        if not self.widths or self.widths[-1] != 1:
            raise RequestError(
                "The finest level of a range tree has blocks of width 1, got the widths "
                f"{self.widths}."
            )
        for coarse, fine in pairwise(self.widths):
            if coarse <= fine or coarse % fine:
                raise RequestError(
                    "Each width of a range tree is a proper multiple of the next, got "
                    f"{self.widths}."
                )
        if any(width >= self.n_bins for width in self.widths[1:]) and self.n_levels > 1:
            raise RequestError(
                f"Only the coarsest width may reach the {self.n_bins} bins, got the widths "
                f"{self.widths}."
            )

    @classmethod
    def regular(cls, n_bins: int, branching: int, *, count_total: bool = False) -> RangeTree:
        """The tree in which every block has ``branching`` children; ``count_total`` adds the whole
        domain as a level.
        """
        if branching < 2:
            raise RequestError(
                f"A branching factor is a whole number of at least 2, got {branching}."
            )
        if n_bins < 1:
            raise RequestError(f"A histogram needs at least one bin, got {n_bins}.")
        widths = tuple(branching**level for level in reversed(range(height(n_bins, branching))))
        if count_total and n_bins > 1:
            widths = (widths[0] * branching, *widths)
        return cls(n_bins, widths)

    @classmethod
    def flat(cls, n_bins: int) -> RangeTree:
        """The bins alone."""
        return cls(n_bins, (1,))

    @property
    def n_levels(self) -> int:
        """Number of counted levels."""
        return len(self.widths)

    def n_blocks(self, level: int) -> int:
        """Number of blocks of a level, a short last one included."""
        return -(-self.n_bins // self.widths[level])

    @property
    def is_perfect(self) -> bool:
        """Whether no block is short."""
        return all(self.n_bins % width == 0 for width in self.widths)

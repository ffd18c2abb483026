"""The tree cut into pieces: consecutive regions of one level with everything between them and a lower level."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

Arrays = dict[str, IntArray | FloatArray]

MOST_LEAVES_PER_PIECE = 250_000


@dataclass(frozen=True, eq=False)
class Piece:
    """Regions of levels ``top`` to ``bottom`` that hang together.

    Attributes
    ----------
    first
        Number of the first region of the piece on each of its levels, within the level.
    child_starts
        For each level but the last: children of region ``r`` are ``child_starts[r]:child_starts[r + 1]``, counted from the
        first of the piece.
    """

    top: int
    bottom: int
    first: tuple[int, ...]
    child_starts: tuple[IntArray, ...]

    def size(self, level: int) -> int:
        """Number of regions of the piece on a level."""
        if level == self.top:
            return len(self.child_starts[0]) - 1 if self.child_starts else 1
        return int(self.child_starts[level - self.top - 1][-1])

    def parents(self, level: int) -> IntArray:
        """Parent of each region of a level below the top, counted from the first of the piece."""
        starts = self.child_starts[level - 1 - self.top]
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def regions(self, level: int) -> slice:
        """The regions of a level, within the level."""
        first = self.first[level - self.top]
        return slice(first, first + self.size(level))


def cut_piece(hierarchy: Hierarchy, top: int, bottom: int, start: int, stop: int) -> Piece:
    """Regions ``start:stop`` of level ``top``, and what lies below them down to level ``bottom``."""
    first, child_starts = [start], []
    for level in range(top, bottom):
        above = hierarchy.level_starts[level]
        starts = hierarchy.child_starts[above + start : above + stop + 1] - hierarchy.level_starts[level + 1]
        start, stop = int(starts[0]), int(starts[-1])
        first.append(start)
        child_starts.append(starts - start)
    return Piece(top, bottom, tuple(first), tuple(child_starts))


def choose_cut(hierarchy: Hierarchy, parallelism: int) -> int:
    """The level whose regions head the pieces: the first with enough regions to keep all executors busy, above the leaves."""
    for level in range(hierarchy.n_levels - 1):
        if hierarchy.level_size(level) >= 4 * parallelism:
            return level
    return max(hierarchy.n_levels - 2, 0)


def cut_bounds(hierarchy: Hierarchy, cut: int, parallelism: int) -> IntArray:
    """Bounds between the pieces, in regions of the cut level: about equal numbers of leaves in each."""
    ends = hierarchy.leaf_ends[hierarchy.level_slice(cut)]
    n_pieces = max(2 * parallelism, -(-hierarchy.n_leaves // MOST_LEAVES_PER_PIECE))
    wanted = hierarchy.n_leaves * np.arange(1, n_pieces) // n_pieces
    inner = np.searchsorted(ends, wanted, side="right")
    return np.unique(np.concatenate(([0], inner, [len(ends)])))


def pack(arrays: Mapping[str, IntArray | FloatArray]) -> bytes:
    """Named arrays as bytes; the same arrays always give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack(packed: bytes) -> Arrays:
    """The arrays that :func:`pack` took."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        return dict(arrays)


def piece_arrays(piece: Piece) -> Arrays:
    """A piece as arrays to pack."""
    bounds: Arrays = {"levels": np.array([piece.top, piece.bottom]), "first": np.array(piece.first)}
    return bounds | {f"children_{place}": starts for place, starts in enumerate(piece.child_starts)}


def piece_from_arrays(arrays: Arrays) -> Piece:
    """The piece that :func:`piece_arrays` took apart."""
    top, bottom = (int(level) for level in arrays["levels"])
    starts = tuple(arrays[f"children_{place}"].astype(np.int64) for place in range(bottom - top))
    return Piece(top, bottom, tuple(int(first) for first in arrays["first"]), starts)

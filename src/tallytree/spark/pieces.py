"""The tree cut into pieces: consecutive regions of one level with everything between them and a
lower level.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy

Arrays = dict[str, IntArray | FloatArray]

MOST_LEAVES_PER_PIECE = 250_000
# Above the leaves one task measures levels of up to so many regions in turns, without a job of
# Spark for each of them; of more where that is the first level with enough regions to keep all
# tasks busy.
MOST_REGIONS_IN_ONE_TASK = 4_096


@dataclass(frozen=True, eq=False)
class Piece:
    """Regions of levels ``top`` to ``bottom`` that hang together.

    Attributes
    ----------
    first
        Number of the first region of the piece on each of its levels, within the level.
    child_starts
        For each level but the last: children of region ``r`` are ``child_starts[r]:child_starts[r +
        1]``, counted from the first of the piece.
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
        starts = (
            hierarchy.child_starts[above + start : above + stop + 1]
            - hierarchy.level_starts[level + 1]
        )
        start, stop = int(starts[0]), int(starts[-1])
        first.append(start)
        child_starts.append(starts - start)
    return Piece(top, bottom, tuple(first), tuple(child_starts))


def tree_of(piece: Piece, level_names: Sequence[str]) -> Hierarchy:
    """A piece that begins at the root as a hierarchy of regions without names."""
    starts = np.cumsum([0, *(piece.size(level) for level in range(piece.bottom + 1))])
    parents = [starts[level - 1] + piece.parents(level) for level in range(1, piece.bottom + 1)]
    labels = np.full(int(starts[-1]), "", dtype=object)
    return Hierarchy(
        tuple(level_names), starts, np.concatenate([[-1], *parents]).astype(np.int64), labels
    )


def choose_cut(hierarchy: Hierarchy, parallelism: int) -> int:
    """The level above the leaves whose regions head the pieces: the first with enough of them to
    keep all executors busy, or the last that is small enough for one task.
    """
    sizes = [hierarchy.level_size(level) for level in range(hierarchy.n_levels - 1)]
    enough = [level for level, size in enumerate(sizes) if size >= 4 * parallelism]
    small = [level for level, size in enumerate(sizes) if size <= MOST_REGIONS_IN_ONE_TASK]
    first = enough[0] if enough else max(hierarchy.n_levels - 2, 0)
    return max(first, *small, 0)


def cut_bounds(hierarchy: Hierarchy, cut: int, parallelism: int) -> IntArray:
    """Bounds between the pieces, in regions of the cut level: about equal numbers of leaves in
    each.
    """
    ends = last_leaves(hierarchy, cut)
    n_pieces = max(2 * parallelism, -(-hierarchy.n_leaves // MOST_LEAVES_PER_PIECE))
    wanted = hierarchy.n_leaves * np.arange(1, n_pieces) // n_pieces
    inner = np.searchsorted(ends, wanted, side="right")
    return np.unique(np.concatenate(([0], inner, [len(ends)])))


def last_leaves(hierarchy: Hierarchy, level: int) -> IntArray:
    """One past the last leaf below each region of a level; as ``leaf_ends``, without room for all
    leaves.
    """
    bounds = np.arange(hierarchy.level_starts[level], hierarchy.level_starts[level + 1] + 1)
    for _ in range(level, hierarchy.n_levels - 1):
        bounds = hierarchy.child_starts[bounds]
    return bounds[1:] - hierarchy.level_starts[-2]


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

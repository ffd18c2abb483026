"""From estimated staircases per level to leaves that add up.

Curves N(i) are additive, so a parent's curve and the sum of its children's are two estimates of the
same thing. Going up, noisy answers are summed as they are, since whatever bends each of them a
little bends the sum of thousands by much. Going down, curves are smoothed with the shape above, cut
off at 0, and what is missing is shared out. Then the root is rounded, and children take the sizes
of their parent as they are, so no level spoils the one above.

The levels above the leaves are held as tables of regions × sizes. Leaves, most of all regions, are
estimated in pieces: once to be summed up and once more to be rounded, from the same noisy answers.
A piece is some whole families of siblings, and what becomes of a family depends on it and its
parent alone, so that the cut changes no number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tallytree.group_sizes.estimate.largest import Largest, Rows
from tallytree.group_sizes.estimate.staircases import Staircases
from tallytree.group_sizes.kernels.curves import Curves
from tallytree.group_sizes.kernels.sums import (
    Sums,
    as_answered,
    bias_log_likelihoods,
    find_bias,
    sum_children,
)
from tallytree.group_sizes.kernels.tree import allocate, make_falling, share_out
from tallytree.group_sizes.reconcile.largest import (
    LargestBelow,
    affordable,
    clear_groups,
    deal,
    joined_below,
    large_sizes,
    rows_of_levels,
    told_above,
)
from tallytree.kernels.jit import side_by_side
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, concatenate, counts_from_runs
from tallytree.model.hierarchy import Hierarchy
from tallytree.storage.memory import give_back
from tallytree.tuning.curves import BIASES, NEARBY

# Cells of the tables of regions × sizes that a piece of the leaves may have: a few MiB each, so
# that they stay in the cache of a core, and enough that pieces cost nothing by being many.
PIECE_CELLS = 1 << 19
_NO_BOUND = np.iinfo(np.int64).max
_NONE = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class Leaves:
    """The leaves of a hierarchy, or those below some consecutive parents, estimated piece by piece.

    Attributes
    ----------
    starts
        The first leaf below each parent, and the end of all.
    estimate
        The staircases of consecutive leaves, the same ones whenever it is called.
    n_sizes
        Sizes that curves tell apart.
    """

    starts: IntArray
    estimate: Callable[[slice], Staircases]
    n_sizes: int

    @cached_property
    def pieces(self) -> list[slice]:
        """Families of siblings, as ranges of their parents: about ``PIECE_CELLS`` cells each, one
        family at least.
        """
        starts = self.starts
        n_parents, most = len(starts) - 1, max(1, PIECE_CELLS // self.n_sizes)
        found, first = [], 0
        while first < n_parents:
            stop = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
            stop = min(max(stop, first + 1), n_parents)
            found.append(slice(first, stop))
            first = stop
        return found

    def children(self, parents: slice) -> slice:
        """The leaves below some consecutive parents."""
        return slice(int(self.starts[parents.start]), int(self.starts[parents.stop]))

    def families(self, parents: slice) -> IntArray:
        """The first of these leaves below each parent, counted from the first of all, and the end."""
        return self.starts[parents.start : parents.stop + 1] - self.starts[parents.start]

    @cached_property
    def _kept(self) -> Staircases:
        return self.estimate(slice(0, int(self.starts[-1])))

    def below(self, parents: slice) -> Staircases:
        """Estimates of the leaves below some parents; kept where they are all leaves, made anew
        otherwise.
        """
        return self._kept if len(self.pieces) == 1 else self.estimate(self.children(parents))


class FromBelow(NamedTuple):
    """What the children of a level tell about it, by answers without bias and by smoothed curves."""

    answered: Sums
    summed: Curves

    @classmethod
    def empty(cls, n_regions: int, n_sizes: int) -> FromBelow:
        """Room for so many regions."""
        answered, of_answered, summed, of_summed = (
            np.empty((n_regions, n_sizes)) for _ in range(4)
        )
        return cls(Sums(answered, of_answered), Curves(summed, of_summed, _NONE))

    @property
    def tables(self) -> tuple[FloatArray, ...]:
        """Heights and variances of both."""
        return (*self.answered, *self.summed[:2])

    def piece(self, regions: slice) -> FromBelow:
        """The rows of some regions."""
        height, variance, _ = self.summed
        return FromBelow(
            Sums(*(table[regions] for table in self.answered)),
            Curves(height[regions], variance[regions], _NONE),
        )

    def write(self, regions: slice, found: FromBelow) -> None:
        """Put rows into their places."""
        for table, rows in zip(self.tables, found.tables):
            table[regions] = rows


class Told(NamedTuple):
    """What leaves tell about the regions above them: sums of curves, and their largest groups."""

    below: FromBelow
    largest: LargestBelow


@dataclass(frozen=True, eq=False)
class HandedDown:
    """What the regions above the leaves hand down to them.

    Attributes
    ----------
    shared
        Curves that the curves of the leaves below a region add up to.
    whole, large
        Whole curves, and the sizes of the groups past them, region by region.
    """

    shared: FloatArray
    whole: IntArray
    large: IntArray

    @cached_property
    def _first_large(self) -> IntArray:
        return np.append(0, np.cumsum(self.whole[:, -1]))

    def piece(self, parents: slice) -> HandedDown:
        """What some consecutive regions hand down."""
        some = slice(int(self._first_large[parents.start]), int(self._first_large[parents.stop]))
        return HandedDown(self.shared[parents], self.whole[parents], self.large[some])

    def counts(self, n_groups: IntArray) -> CountsBySize:
        """Counts by size of the regions themselves, which have so many groups."""
        return _counts(n_groups, self.whole, self.large)


def consistent_leaves(
    hierarchy: Hierarchy,
    n_groups: IntArray,
    above: Sequence[Staircases | None],
    leaves: Leaves,
    look: Curves,
    max_size: int | None = None,
    shift: FloatArray | None = None,
) -> CountsBySize:
    """Counts by size of the leaves from the staircases of all levels above, None for those that
    were not measured, and of the leaves in pieces.

    ``look`` is the root's curve as the first look alone shows it; no group is larger than a public
    ``max_size``. ``shift`` is what other tables add to the number of entities of each leaf.
    """
    of_leaves = n_groups[hierarchy.level_slice(hierarchy.n_levels - 1)]
    if hierarchy.n_levels == 1:
        only = leaves.estimate(slice(0, 1))
        curves = only.curves if shift is None else shifted(only.curves, shift)
        return whole_leaves(hierarchy, [of_leaves], [curves], [only.largest], max_size)
    told = sum_leaves(of_leaves, leaves)
    give_back()
    handed = finish_above(hierarchy, n_groups, above, told, look, max_size, shift)
    del told  # the released rows need the room
    finished = finish_leaves(of_leaves, leaves, handed, shift)
    give_back()  # what pieces worked with lies between what they left
    return concatenate(finished)


def sum_leaves(n_groups: IntArray, leaves: Leaves) -> Told:
    """What leaves with so many groups tell about the level above."""
    tables = FromBelow.empty(len(leaves.starts) - 1, leaves.n_sizes)

    def told(parents: slice) -> LargestBelow:
        found = leaves.below(parents)
        answered = as_answered(found.blocks, found.curves)
        here, own = n_groups[leaves.children(parents)], leaves.families(parents)
        tables.write(parents, _from_children(here, answered, found.curves, own))
        return told_above(found.largest, own)

    return Told(tables, joined_below(side_by_side(told, leaves.pieces)))


def finish_above(
    hierarchy: Hierarchy,
    n_groups: IntArray,
    above: Sequence[Staircases | None],
    told: Told,
    look: Curves,
    max_size: int | None = None,
    shift: FloatArray | None = None,
) -> HandedDown:
    """Finish all levels above the leaves, from their own staircases and what the leaves tell; as
    :func:`consistent_leaves`.

    What was told is used up: its tables become those of the level above.
    """
    groups = [n_groups[hierarchy.level_slice(level)] for level in range(hierarchy.n_levels - 1)]
    combined = _combine(hierarchy, groups, above, told.below, look)
    for level in range(1, len(combined)):
        _share_out(combined[level - 1].height, combined[level], child_starts(hierarchy, level))
    sizes = [None if level is None else level.largest for level in above]
    room = _Room.of(hierarchy, sizes, combined[0].height.shape[1], told.largest)
    # Before they are moved and made falling: children add up to these.
    shared = combined[-1].height.copy()
    if shift is not None:
        starts = [
            hierarchy.leaf_starts[hierarchy.level_slice(level)] for level in range(len(combined))
        ]
        combined = [
            shifted(curves, np.add.reduceat(shift, first))
            for curves, first in zip(combined, starts)
        ]
    return HandedDown(shared, *_whole_levels(hierarchy, groups, combined, room, max_size))


def finish_leaves(
    n_groups: IntArray, leaves: Leaves, handed: HandedDown, shift: FloatArray | None = None
) -> list[CountsBySize]:
    """Counts by size of leaves with so many groups, piece by piece, from what the regions above
    them hand down.
    """

    def finish(parents: slice) -> CountsBySize:
        here, own, from_above = (
            leaves.children(parents),
            leaves.families(parents),
            handed.piece(parents),
        )
        found = leaves.below(parents)
        curves, largest = found.curves, found.largest
        _share_out(from_above.shared, curves, own)
        curves = curves if shift is None else shifted(curves, shift[here])
        above, room = (from_above.whole, from_above.large), (largest.clear, largest.rows)
        return _counts(n_groups[here], *_hand_down(above, n_groups[here], curves, room, own))

    return side_by_side(finish, leaves.pieces)


def shifted(curves: Curves, shift: FloatArray) -> Curves:
    """Curves whose sums over sizes have moved by so much, each size in proportion to its variance."""
    weight = np.maximum(curves.variance, 1e-12)
    moved = curves.height + shift[:, None] * weight / weight.sum(axis=1, keepdims=True)
    return curves._replace(height=moved)


def whole_leaves(
    hierarchy: Hierarchy,
    groups: Sequence[IntArray],
    combined: Sequence[Curves],
    told: Sequence[Largest | None],
    max_size: int | None,
) -> CountsBySize:
    """Whole counts by size of the leaves from curves of all levels that add up but are real, and
    what the levels tell about their largest groups. Curves are made falling in place.
    """
    room = _Room.of(hierarchy, told, combined[0].height.shape[1])
    whole, large = _whole_levels(hierarchy, groups, combined, room, max_size)
    return _counts(groups[-1], whole, large)


@dataclass(frozen=True, eq=False)
class _Room:
    """What the largest groups of every level need: room for those that must be kept, and rows that
    say whose they are.
    """

    told: Sequence[Largest | LargestBelow | None]
    least: list[IntArray]
    rows: list[Rows]

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        told: Sequence[Largest | None],
        n_sizes: int,
        below: LargestBelow | None = None,
    ) -> _Room:
        """The same from what the levels tell; ``below`` is what leaves tell that are not among
        them.
        """
        starts = [child_starts(hierarchy, level) for level in range(1, hierarchy.n_levels)]
        least, rows = (
            clear_groups(told, starts, n_sizes, below),
            rows_of_levels(told, starts, below),
        )
        return cls(told if below is None else [*told, below], least, rows)

    def piece(self, level: int, regions: slice) -> tuple[IntArray, Rows]:
        """The same of some regions of a level."""
        return self.least[level][regions], self.rows[level].piece(regions)


def _whole_levels(
    hierarchy: Hierarchy,
    groups: Sequence[IntArray],
    combined: Sequence[Curves],
    room: _Room,
    max_size: int | None,
) -> tuple[IntArray, IntArray]:
    """Whole curves of the last of some levels from the root down, and the sizes of its groups past
    them.
    """
    height, variance, _ = combined[0]
    n_sizes = height.shape[1]
    make_falling(groups[0], height, variance)
    whole = np.maximum(np.rint(height).astype(np.int64), room.least[0][:, None])
    whole = np.minimum(whole, groups[0][:, None])
    large = np.minimum(large_sizes(room.told, int(whole[0, -1]), n_sizes), max_size or _NO_BOUND)
    for level in range(1, len(combined)):
        every = slice(0, hierarchy.level_size(level))
        starts = child_starts(hierarchy, level)
        whole, large = _hand_down(
            (whole, large), groups[level], combined[level], room.piece(level, every), starts
        )
    return whole, large


def _hand_down(
    above: tuple[IntArray, IntArray],
    groups: IntArray,
    curves: Curves,
    room: tuple[IntArray, Rows],
    starts: IntArray,
) -> tuple[IntArray, IntArray]:
    """Whole curves of children, and the sizes of their groups past them, from those of their
    parents.
    """
    whole, large = above
    least, rows = room
    make_falling(groups, curves.height, curves.variance)
    kept = affordable(least, whole[:, -1], starts)
    below = allocate(whole, groups, kept, curves.height, starts)
    return below, deal(
        large, below[:, -1], rows, np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    )


def child_starts(hierarchy: Hierarchy, level: int) -> IntArray:
    """Children of the regions of the level above, counted within the level."""
    above = hierarchy.level_slice(level - 1)
    return hierarchy.child_starts[above.start : above.stop + 1] - hierarchy.level_starts[level]


def families_of_leaves(hierarchy: Hierarchy) -> IntArray:
    """The first leaf below each region of the level above, and the end of all; of the root alone
    itself.
    """
    return (
        child_starts(hierarchy, hierarchy.n_levels - 1)
        if hierarchy.n_levels > 1
        else np.array([0, 1])
    )


def _from_children(
    n_groups: IntArray, answered: Sums, fitted: Curves, starts: IntArray
) -> FromBelow:
    """What children tell about their parents; ``n_groups`` are those of the children."""
    sums = sum_children(n_groups, answered, fitted.height, starts)
    height, variance = (np.add.reduceat(values, starts[:-1], axis=0) for values in fitted[:2])
    return FromBelow(sums, Curves(height, variance, _NONE))


def _combine(
    hierarchy: Hierarchy,
    groups: Sequence[IntArray],
    levels: Sequence[Staircases | None],
    below: FromBelow,
    look: Curves,
) -> list[Curves]:
    """Curves of all levels above the leaves, each from its own measurements and from what its
    children tell.
    """
    found: list[Curves] = []
    for level in range(hierarchy.n_levels - 2, -1, -1):
        own = levels[level]
        _add_own(groups[level], below, own, look if own is None and level == 0 else None)
        found.insert(0, below.summed)
        if level > 0:
            below = _from_children(groups[level], *below, child_starts(hierarchy, level))
    return found


def _add_own(
    n_groups: IntArray, below: FromBelow, own: Staircases | None, look: Curves | None
) -> None:
    """Correct what children tell, and combine it with what the level itself tells; in place, some
    regions at a time.
    """
    spread = _likely_bias(n_groups, below)

    def combine(regions: slice) -> None:
        answered, summed = below.piece(regions)
        summed = _without_bias(n_groups[regions], summed, answered, spread)
        if own is not None:
            curves = Curves(own.curves.height[regions], own.curves.variance[regions], _NONE)
            summed = _together(curves, summed)
            answered = _both(as_answered(own.blocks.piece(regions), curves), answered)
        elif look is not None:
            summed = _together(look, summed)
        below.write(regions, FromBelow(answered, summed))

    at_once = max(1, PIECE_CELLS // below.summed.height.shape[1])
    n_regions = len(n_groups)
    side_by_side(
        combine,
        [slice(start, min(start + at_once, n_regions)) for start in range(0, n_regions, at_once)],
    )


def _share_out(parents: FloatArray, children: Curves, starts: IntArray) -> None:
    """Make children add up to their parents, in place."""
    share_out(parents, children.height, children.variance, starts)


def _likely_bias(n_groups: IntArray, below: FromBelow) -> float:
    """How far sums may be off at all: chosen once per level, by the likelihood of the answers."""
    height, answered = below.summed.height, below.answered
    likelihoods = bias_log_likelihoods(n_groups, height, answered, [spread**2 for spread in BIASES])
    return BIASES[int(np.argmax(likelihoods))]


def _without_bias(n_groups: IntArray, summed: Curves, answered: Sums, spread: float) -> Curves:
    """Sums of smoothed curves, corrected by what the sums of the noisy answers say they are off by."""
    bias = find_bias(n_groups, summed.height, answered, spread**2)
    return Curves(
        summed.height + bias.height, summed.variance + bias.variance, summed.fall_variance
    )


def _both(own: Sums, answered: Sums) -> Sums:
    """Two independent answers about the same curves, by inverse variance."""
    of_own, of_children = (1 / (known.variance + 1e-12) for known in (own, answered))
    variance = 1 / np.maximum(of_own + of_children, 1e-300)
    height = (of_own * own.height + of_children * answered.height) * variance
    return Sums(height, np.where(of_own + of_children > 0, variance, np.inf))


def _together(own: Curves, summed: Curves) -> Curves:
    """A parent's own curve and the sum of its children's, by inverse variance.

    Children share a prior and are cut off at 0, so their errors do not quite cancel, which their
    variances do not show. Where the two disagree by more than both variances explain, the sum's
    variance is raised by as much.
    """
    height, variance = own.height, own.variance
    apart = summed.height - height
    doubt = np.maximum(1.0, window_means(apart**2) / (variance + summed.variance + 1e-12))
    spread = summed.variance * doubt
    weight = variance / (variance + spread + 1e-12)
    return Curves(height + weight * apart, variance * (1 - weight), own.fall_variance)


def window_means(values: FloatArray) -> FloatArray:
    """Mean over sizes i/1.5 … 1.5 i of each row."""
    n_sizes = values.shape[1]
    sums = np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
    size = np.arange(1, n_sizes + 1)
    low = np.ceil(size / NEARBY).astype(np.int64) - 1
    high = np.minimum((size * NEARBY).astype(np.int64), n_sizes)
    means: FloatArray = (sums[:, high] - sums[:, low]) / (high - low)
    return means


def _counts(n_groups: IntArray, whole: IntArray, large: IntArray) -> CountsBySize:
    """Counts by size from whole curves and the sizes of the groups past them."""
    # Few sizes have groups: where curves fall is marked before anything is subtracted.
    falls = np.empty(whole.shape, dtype=np.bool_)
    np.not_equal(whole[:, 0], n_groups, out=falls[:, 0])
    np.not_equal(whole[:, 1:], whole[:, :-1], out=falls[:, 1:])
    region, size = np.nonzero(falls)
    before = np.where(size > 0, whole[region, size - 1], n_groups[region])
    far = np.repeat(np.arange(len(n_groups)), whole[:, -1])
    return counts_from_runs(
        np.concatenate([region, far]),
        np.concatenate([size, large]).astype(np.int64),
        np.concatenate([before - whole[region, size], np.ones_like(far)]),
        len(n_groups),
    )

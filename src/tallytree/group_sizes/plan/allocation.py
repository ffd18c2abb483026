"""How to split a budget over levels: ``budget="auto"``, from public facts and a first look that was
paid for.

A model predicts the earth mover's distance of a region from its number of groups, the shape that
the look shows and the noise. The split makes a goal's product of the levels' predicted errors
small, with an eye on what plain choices would give. A level that its children describe well enough
gets nothing; where the look shows nothing to plan from, shares are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from tallytree.group_sizes.plan.first_look import FirstLook
from tallytree.group_sizes.plan.goals import Goal, PlainErrors
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.tuning import split as tuned
from tallytree.tuning.blocks import BLUR, ROUGHNESS, SPACING

# The whole budget in multiples of the smallest step.
_ALL = int(1 / tuned.STEP)


@dataclass(frozen=True, eq=False)
class Shape:
    """Blocks of a look that show groups: where they start, their width, share of groups above,
    share that falls per size.
    """

    start: IntArray
    width: FloatArray
    above: FloatArray
    fall: FloatArray


class BlockErrors(NamedTuple):
    """Mean absolute error of N(i) per size of each block of the shape: after smoothing along sizes,
    and before.
    """

    smoothed: FloatArray
    raw: FloatArray


def shares_for_levels(
    look: FirstLook,
    level_groups: Sequence[IntArray],
    noise_std: Callable[[Fraction], float],
    goal: Goal = Goal(),  # noqa: B008  (frozen)
) -> tuple[Fraction, ...]:
    """Share of the budget for each level, the root first, adding up to 1; some may be 0.

    Parameters
    ----------
    look
        The first look at the root.
    level_groups
        Number of groups of every region, per level.
    noise_std
        Standard deviation of the noise that a share of the levels' budget buys.
    goal
        What the split is for.
    """
    useful = _useful_levels(level_groups)
    if (
        goal.name == "no-level-behind"
        or sum(useful) == 1
        or look.noise_std * tuned.BLIND > look.n_groups
    ):
        return equal_shares(useful)
    model = _Model(look, level_groups, noise_std)
    plain = model.plain_errors()
    least_root = tuned.LEAST_ROOT_FOR_LEAVES if goal.name == "leaves" else tuned.LEAST_ROOT
    root = useful.index(True)

    def regret(splits: IntArray) -> FloatArray:
        found = np.full(len(splits), math.inf)
        allowed = (splits[:, -1] >= _least_steps(tuned.LEAST_LEAVES)) & (
            splits[:, root] >= _least_steps(least_root)
        )
        if allowed.any():
            found[allowed] = goal.regret(model.errors_of(splits[allowed]), plain)
        return found

    candidates = [_without_crumbs(_descend(regret, start, useful)) for start in _starts(useful)]
    best = candidates[int(np.argmin(regret(np.array(candidates))))]
    return tuple(int(n_steps) * tuned.STEP for n_steps in best)


def predicted_errors(
    look: FirstLook,
    level_groups: Sequence[IntArray],
    noise_std: Callable[[Fraction], float],
    shares: Sequence[Fraction],
) -> FloatArray:
    """Mean error of a region of each level with these shares, as the split is chosen by."""
    return _Model(look, level_groups, noise_std).errors(shares)


def _useful_levels(level_groups: Sequence[IntArray]) -> list[bool]:
    """Levels that tell more than the one below: where every region has one child, the two are the
    same.
    """
    return [len(here) < len(below) for here, below in pairwise(level_groups)] + [True]


def equal_shares(useful: Sequence[bool]) -> tuple[Fraction, ...]:
    """The same share for every useful level."""
    return tuple(Fraction(int(is_useful), sum(useful)) for is_useful in useful)


def _starts(useful: Sequence[bool]) -> list[tuple[Fraction, ...]]:
    """Splits to begin with: the leaves with most of it and the rest evenly, and one upper level
    with the leaves.
    """
    upper = [level for level, is_useful in enumerate(useful[:-1]) if is_useful]
    starts = []
    for lead, given in [
        (Fraction(1, 2), upper),
        (Fraction(9, 10), upper),
        *((Fraction(7, 10), [level]) for level in upper),
    ]:
        shares = [
            (1 - lead) / len(given) if level in given else Fraction(0)
            for level in range(len(useful))
        ]
        starts.append((*shares[:-1], lead))
    return starts


def _descend(
    regret: Callable[[IntArray], FloatArray],
    start: tuple[Fraction, ...],
    useful: Sequence[bool],
) -> IntArray:
    """Move budget between pairs of levels while that helps, in steps that shrink to the smallest.

    Shares are whole numbers of the smallest step, ``(n_levels,)``. Pairs are gone through in order
    and the first that helps is taken; all that are left are weighed together, since nearly all of
    them do not help.
    """
    shares = np.array([share // tuned.STEP for share in start], dtype=np.int64)
    shares[-1] = _ALL - shares[:-1].sum()
    best = regret(shares[None])[0]
    levels = range(len(shares))
    pairs = np.array([pair for pair in product(levels, levels) if useful[pair[1]]])
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    for step in (40, 20, 10, 6, 4, 2, 1):
        improved = True
        while improved:
            improved, place = False, 0
            while place < len(pairs):
                giver, taker = pairs[place:].T
                amount = np.minimum(step, shares[giver])
                tried = np.flatnonzero(amount)
                moved = np.repeat(shares[None], len(tried), axis=0)
                rows = np.arange(len(tried))
                moved[rows, giver[tried]] -= amount[tried]
                moved[rows, taker[tried]] += amount[tried]
                found = regret(moved)
                better = np.flatnonzero(found < best - 1e-6)
                if len(better) == 0:
                    break
                shares, best, improved = moved[better[0]], found[better[0]], True
                place += int(tried[better[0]]) + 1
    return shares


def _without_crumbs(shares: IntArray) -> IntArray:
    kept = np.where(shares >= _least_steps(tuned.SMALLEST_SHARE), shares, 0)
    kept[-1] += _ALL - kept.sum()
    return kept


def _least_steps(share: Fraction) -> int:
    """The least number of smallest steps that are no less than a share."""
    return math.ceil(share / tuned.STEP)


class _Model:
    """Predicted errors per level of any split, from errors per size; those of single levels are
    tabulated once per noise.
    """

    def __init__(
        self,
        look: FirstLook,
        level_groups: Sequence[IntArray],
        noise_std: Callable[[Fraction], float],
    ) -> None:
        self.shape = shape_of(look)
        self.groups = [_sample(groups) for groups in level_groups]
        self.n_regions = np.array([len(groups) for groups in level_groups])
        self.noise_std = noise_std
        within = self.shape.width * self.shape.fall * look.n_groups / 3 * (self.shape.width > 1)
        # Next to nothing is the least error everywhere: a budget that leaves no noise must not ask
        # for a logarithm of 0.
        self.look = np.maximum(
            tuned.ABSOLUTE * np.sqrt((look.noise_std / self.shape.width) ** 2 + within**2), 1e-12
        )
        self.spread = [spread_of(self.shape, groups) for groups in self.groups]
        n_blocks = len(self.shape.width)
        never = np.full((len(self.groups), _ALL + 1, n_blocks), np.inf)
        self._own = BlockErrors(never, never.copy())
        self._known = np.zeros(never.shape[:2], dtype=bool)
        self._known[:, 0] = True

    def own(self, level: int, n_steps: IntArray) -> BlockErrors:
        """Errors of a level's regions from their own measurements alone, for some shares in
        multiples of the smallest step: ``(n_splits, n_blocks)``.
        """
        for new in np.unique(n_steps[~self._known[level, n_steps]]):
            found = block_errors(
                self.shape, self.groups[level], self.noise_std(int(new) * tuned.STEP)
            )
            self._own.smoothed[level, new], self._own.raw[level, new] = found
            self._known[level, new] = True
        return BlockErrors(self._own.smoothed[level, n_steps], self._own.raw[level, n_steps])

    def errors(self, shares: Sequence[Fraction]) -> FloatArray:
        """Mean error per level of one split in multiples of the smallest step."""
        return self.errors_of(np.array([[int(share / tuned.STEP) for share in shares]]))[0]

    def errors_of(self, splits: IntArray) -> FloatArray:
        """Mean error per level once children and parents are combined by inverse variance, size by
        size: ``(n_splits, n_levels)``, for as many splits in multiples of the smallest step.
        """
        n_levels = splits.shape[1]
        own = [self.own(level, splits[:, level]) for level in range(n_levels)]
        error = combined_errors(own, self.n_regions, self.look, self.spread)
        return np.stack([(level * self.shape.width).sum(axis=1) for level in error], axis=1)

    def plain_errors(self) -> PlainErrors:
        """Errors of the plain choices, as high as errors of a split are predicted too low beside
        them.
        """
        n_levels = len(self.groups)
        equal = self.noise_std(Fraction(1, n_levels))
        kuo2018 = (
            np.array([self._isotonic(groups, equal, tuned.ISOTONIC) for groups in self.groups])
            / tuned.OPTIMISM
        )
        kuo2018[0] *= tuned.OPTIMISM / tuned.OPTIMISM_ROOT
        leaves = (
            self._isotonic(self.groups[-1], self.noise_std(Fraction(1)), tuned.ISOTONIC_WHOLE)
            / tuned.OPTIMISM
        )
        n_leaves = self.n_regions[-1] / self.n_regions
        summed = np.where(n_leaves > 1, tuned.SUMS * n_leaves**tuned.SUMS_GROWTH, 1.0)
        better = np.minimum(kuo2018, leaves * summed)
        return PlainErrors(kuo2018, better)

    def _isotonic(self, groups: IntArray, std: float, smoothness: float) -> float:
        """Mean error of regions whose curves are measured size by size and made falling."""
        n = groups[:, None].astype(np.float64)
        scarce = n * self.shape.fall * std * std
        smooth = np.minimum(smoothness * np.cbrt(scarce), tuned.ISOTONIC_SPARSE * scarce)
        per_size = np.minimum(np.minimum(tuned.ABSOLUTE * std, smooth), n * self.shape.above)
        return float((np.maximum(per_size, 1e-12).mean(axis=0) * self.shape.width).sum())


def combined_errors(
    own: Sequence[BlockErrors],
    n_regions: IntArray,
    look: FloatArray,
    spread: Sequence[FloatArray],
) -> list[FloatArray]:
    """Errors per size of each level once children and parents are combined by inverse variance.

    Parameters
    ----------
    own
        Of each level, from its own answers alone.
    look
        Of the root, from the first look alone.
    spread
        Of each level, from the shape above alone.
    """
    error = [level.smoothed for level in own]
    raw = own[-1].raw
    for level in range(len(own) - 2, -1, -1):
        summed = raw * math.sqrt(n_regions[level + 1] / n_regions[level])
        error[level] = _together(error[level], summed)
        raw = _together(own[level].raw, summed)
    error[0] = _together(error[0], look)
    for level in range(1, len(own)):
        n_children = n_regions[level] / n_regions[level - 1]
        here = _together(error[level], spread[level])
        known = np.minimum(1.0, (error[level - 1] / here) ** 2 / n_children)
        error[level] = here * np.sqrt(1 - (1 - known) / n_children)
    return error


def _together(one: FloatArray, other: FloatArray) -> FloatArray:
    """Error of two independent estimates combined by inverse variance."""
    return 1 / np.sqrt(1 / one**2 + 1 / other**2 + 1e-300)


def _sample(groups: IntArray) -> IntArray:
    ordered = np.sort(groups)
    return ordered[
        np.linspace(0, len(ordered) - 1, min(tuned.LEVEL_SAMPLE, len(ordered))).astype(np.int64)
    ]


def shape_of(look: FirstLook) -> Shape:
    """The part of a look that stands above its noise."""
    width = look.widths.astype(np.float64)
    above = look.height / max(look.n_groups, 1)
    middle = (look.starts + look.ends - 1) / 2
    fall = np.append(np.maximum(-np.diff(above) / np.diff(middle), 0.0), 0.0)
    single = int(np.argmax(width > 1))
    fall[:single] = np.maximum(-np.diff(np.concatenate(([1.0], above[:single]))), 0.0)
    last = look.n_seen
    return Shape(look.starts[:last], width[:last], above[:last], fall[:last])


def block_errors(shape: Shape, groups: IntArray, std: float) -> BlockErrors:
    """Expected errors of regions measured in blocks with noise of this standard deviation, per
    size, over the regions' mean.

    Noise of variance σ²/w per size (blocks of w sizes) on a curve whose falls have variance v
    leaves, after smoothing in both directions, σ²/w · √(r/(r + 4)) with r = v w/σ² (the steady
    state of a random walk seen in noise). Where groups lie far apart, noise on each single group is
    less.
    """
    variance = std * std
    n = groups[:, None].astype(np.float64)
    falls = n * shape.fall
    rough = falls + (ROUGHNESS * falls) ** 2 + 1e-12
    width = np.clip((BLUR * variance / rough) ** (1 / 3), 1, np.maximum(1, shape.start))
    per_size = variance / width
    ratio = rough / per_size
    raw = tuned.ABSOLUTE * np.sqrt(per_size)
    rows = np.where(falls * SPACING * std < 1, falls * std / math.sqrt(2), np.inf)
    smoothed = np.minimum(raw * (ratio / (ratio + 4)) ** 0.25, rows)
    raw = np.minimum(raw, 2 * rows)
    return BlockErrors(
        np.maximum(smoothed, 1e-12).mean(axis=0), np.maximum(raw, 1e-12).mean(axis=0)
    )


def spread_of(shape: Shape, groups: IntArray, deviation: float = tuned.DEVIATION) -> FloatArray:
    """How far a region's curve strays from the shape above it, per size, where nothing is measured."""
    n = groups[:, None].astype(np.float64)
    between = n * shape.above * np.maximum(1 - shape.above, 0.0)
    strays: FloatArray = 0.8 * np.sqrt(between + (deviation * between) ** 2)
    return np.maximum(strays, 1e-12).mean(axis=0)

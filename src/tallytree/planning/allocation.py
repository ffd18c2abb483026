"""How to split a budget over levels: ``budget="auto"``, from public facts and a first look that was paid for.

A model predicts the earth mover's distance of a region from its number of groups, the shape that the look shows and the noise.
The split makes the product of the levels' predicted errors small, so that a percent counts the same on every level, and keeps
every level at or below the better of two plain choices (``rehearsal``): no level pays for another. A level that its
children describe well enough gets nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.planning.first_look import FirstLook
from tallytree.planning.rehearsal import plain_errors
from tallytree.tuning import split as tuned
from tallytree.tuning.blocks import BLUR, ROUGHNESS, SPACING


@dataclass(frozen=True, eq=False)
class _Shape:
    """Blocks of a look that show groups: where they start, their width, share of groups above, share that falls per size."""

    start: IntArray
    width: FloatArray
    above: FloatArray
    fall: FloatArray


class BlockErrors(NamedTuple):
    """Mean absolute error of N(i) per size of each block of the shape: after smoothing along sizes, and before."""

    smoothed: FloatArray
    raw: FloatArray


def shares_for_levels(
    look: FirstLook, level_groups: Sequence[IntArray], noise_std: Callable[[Fraction], float]
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
    """
    n_levels = len(level_groups)
    leaves_alone = (Fraction(0),) * (n_levels - 1) + (Fraction(1),)
    is_blind = look.noise_std * tuned.BLIND > look.n_groups
    if n_levels == 1 or (is_blind and level_groups[-1].mean() > tuned.CLEAR * noise_std(Fraction(1))):
        return leaves_alone
    model = _Model(look, level_groups, noise_std)
    reference = _yardstick(model, plain_errors(_seen_curve(look), level_groups, model.whole_scale))
    weights = np.ones(n_levels)
    weights[0], weights[-1] = tuned.ROOT_WEIGHT, tuned.LEAF_WEIGHT
    behind = np.append(np.full(n_levels - 1, tuned.BEHIND), tuned.LEAVES_BEHIND)

    def regret(shares: tuple[Fraction, ...]) -> float:
        if shares[-1] < tuned.LEAST_LEAVES:
            return math.inf
        ratios = np.log(model.errors(shares) / reference)
        return float((weights * ratios + behind * np.maximum(ratios, 0.0)).sum())

    candidates = [_descend(regret, _leaf_first(n_levels, lead)) for lead in (Fraction(3, 5), Fraction(9, 10))]
    return min((_without_crumbs(shares) for shares in candidates), key=regret)


def _yardstick(model: _Model, plain: FloatArray) -> FloatArray:
    """What each level's predicted error is held against."""
    correction = np.full(len(plain), tuned.MIDDLE_CORRECTION)
    correction[0], correction[-1] = tuned.ROOT_CORRECTION, tuned.LEAF_CORRECTION
    reference = plain * correction
    gain = tuned.LEAF_GAIN * max(1.0, model.whole_scale) ** tuned.LEAF_GAIN_GROWTH
    reference[-1] = min(reference[-1], gain * model.leaf_error(Fraction(1)))
    return reference


def _leaf_first(n_levels: int, lead: Fraction) -> tuple[Fraction, ...]:
    rest = (1 - lead) / (n_levels - 1)
    return (rest,) * (n_levels - 1) + (lead,)


def _descend(regret: Callable[[tuple[Fraction, ...]], float], shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    """Move budget between pairs of levels while that helps, in steps that shrink to the smallest."""
    # On the grid of the smallest step, so that shares stay short fractions.
    shares = tuple(share // tuned.STEP * tuned.STEP for share in shares)
    shares = (*shares[:-1], 1 - sum(shares[:-1], Fraction(0)))
    best = regret(shares)
    for step in (40, 20, 10, 6, 4, 2, 1):
        improved = True
        while improved:
            improved = False
            for giver in range(len(shares)):
                for taker in range(len(shares)):
                    amount = min(step * tuned.STEP, shares[giver])
                    if giver == taker or amount == 0:
                        continue
                    moved = list(shares)
                    moved[giver] -= amount
                    moved[taker] += amount
                    found = regret(tuple(moved))
                    if found < best - 1e-6:
                        shares, best, improved = tuple(moved), found, True
    return shares


def _without_crumbs(shares: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    kept = [share if share >= tuned.SMALLEST_SHARE else Fraction(0) for share in shares]
    kept[-1] += 1 - sum(kept, Fraction(0))
    return tuple(kept)


class _Model:
    """Predicted errors per level of any split, from errors per size; those of single levels are tabulated once per noise."""

    def __init__(
        self, look: FirstLook, level_groups: Sequence[IntArray], noise_std: Callable[[Fraction], float]
    ) -> None:
        self.shape = _shape(look)
        self.groups = [_sample(groups) for groups in level_groups]
        self.n_regions = np.array([len(groups) for groups in level_groups])
        self.noise_std = noise_std
        self.whole_scale = noise_std(Fraction(1)) / math.sqrt(2)
        within = self.shape.width * self.shape.fall * look.n_groups / 3 * (self.shape.width > 1)
        # Next to nothing is the least error everywhere: a budget that leaves no noise must not ask for a logarithm of 0.
        self.look = np.maximum(tuned.ABSOLUTE * np.sqrt((look.noise_std / self.shape.width) ** 2 + within**2), 1e-12)
        self.spread = [_spread(self.shape, groups) for groups in self.groups]
        self._known: dict[tuple[int, Fraction], BlockErrors] = {}

    def own(self, level: int, share: Fraction) -> BlockErrors:
        """Errors of a level's regions from their own measurements alone."""
        if (level, share) not in self._known:
            if share == 0:
                never = np.full(len(self.shape.width), np.inf)
                self._known[level, share] = BlockErrors(never, never)
            else:
                self._known[level, share] = block_errors(self.shape, self.groups[level], self.noise_std(share))
        return self._known[level, share]

    def errors(self, shares: Sequence[Fraction]) -> FloatArray:
        """Mean error per level once children and parents are combined by inverse variance, size by size."""
        own = [self.own(level, share) for level, share in enumerate(shares)]
        error = [level.smoothed for level in own]
        raw = own[-1].raw
        scale = self.noise_std(shares[-1]) / math.sqrt(2)
        for level in range(len(shares) - 2, -1, -1):
            summed = _sum_error(raw, self.n_regions[level + 1] / self.n_regions[level], scale)
            error[level] = _together(error[level], summed)
            raw = _together(own[level].raw, summed)
        error[0] = _together(error[0], self.look)
        for level in range(1, len(shares)):
            n_children = self.n_regions[level] / self.n_regions[level - 1]
            here = _together(error[level], self.spread[level])
            known = np.minimum(1.0, (error[level - 1] / here) ** 2 / n_children)
            error[level] = here * np.sqrt(1 - (1 - known) / n_children)
        return np.array([(level * self.shape.width).sum() for level in error])

    def leaf_error(self, share: Fraction) -> float:
        """Mean error of the leaves where nothing else is measured."""
        alone = _together(self.own(len(self.groups) - 1, share).smoothed, self.spread[-1])
        return float((alone * self.shape.width).sum())


def _together(one: FloatArray, other: FloatArray) -> FloatArray:
    """Error of two independent estimates combined by inverse variance."""
    return 1 / np.sqrt(1 / one**2 + 1 / other**2 + 1e-300)


def _sum_error(error: FloatArray, n: float, scale: float) -> FloatArray:
    alike = tuned.ALIKE * max(1.0, scale) ** tuned.ALIKE_GROWTH
    return error * math.sqrt(n + (alike * n) ** 2)


def _sample(groups: IntArray) -> IntArray:
    ordered = np.sort(groups)
    return ordered[np.linspace(0, len(ordered) - 1, min(tuned.LEVEL_SAMPLE, len(ordered))).astype(np.int64)]


def _seen_curve(look: FirstLook) -> FloatArray:
    """Share of groups above each size, as far as the look can see."""
    height, _ = look.curve(min(int(look.ends[look.n_seen - 1]), tuned.MOST_SIZES))
    return height / max(look.n_groups, 1)


def _shape(look: FirstLook) -> _Shape:
    """The part of a look that stands above its noise."""
    width = look.widths.astype(np.float64)
    above = look.height / max(look.n_groups, 1)
    middle = (look.starts + look.ends - 1) / 2
    fall = np.append(np.maximum(-np.diff(above) / np.diff(middle), 0.0), 0.0)
    single = int(np.argmax(width > 1))
    fall[:single] = np.maximum(-np.diff(np.concatenate(([1.0], above[:single]))), 0.0)
    last = look.n_seen
    return _Shape(look.starts[:last], width[:last], above[:last], fall[:last])


def block_errors(shape: _Shape, groups: IntArray, std: float) -> BlockErrors:
    """Expected errors of regions measured in blocks with noise of this standard deviation, per size, over the regions' mean.

    Noise of variance σ²/w per size (blocks of w sizes) on a curve whose falls have variance v leaves, after smoothing in both
    directions, σ²/w · √(r/(r + 4)) with r = v w/σ² (the steady state of a random walk seen in noise). Where groups lie far
    apart, noise on each single group is less.
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
    return BlockErrors(np.maximum(smoothed, 1e-12).mean(axis=0), np.maximum(raw, 1e-12).mean(axis=0))


def _spread(shape: _Shape, groups: IntArray) -> FloatArray:
    """How far a region's curve strays from the shape above it, per size, where nothing is measured."""
    n = groups[:, None].astype(np.float64)
    between = n * shape.above * (1 - shape.above)
    strays: FloatArray = 0.8 * np.sqrt(between + (tuned.DEVIATION * between) ** 2)
    return np.maximum(strays, 1e-12).mean(axis=0)

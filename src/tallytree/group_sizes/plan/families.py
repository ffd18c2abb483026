"""How to split the budget of group sizes over the families of a lattice, from the first look.

Errors of rows, measured or not, are those of :mod:`tallytree.lattice.shares`, block of sizes by
block of sizes. Of splits that are nearly as good one is taken where tables without attributes are
at most twice as far off as in a release without any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from tallytree.group_sizes.plan.allocation import (
    block_errors,
    shape_of,
    shares_for_levels,
    spread_of,
)
from tallytree.group_sizes.plan.first_look import FirstLook
from tallytree.lattice.shares import CombinedVariances, Shares, descend
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.lattice import Family, Lattice
from tallytree.tuning import split as tuned


def shares_for_families(
    look: FirstLook,
    lattice: Lattice,
    groups: Mapping[Family, IntArray],
    noise_std: Callable[[Fraction], float],
    wanted: Sequence[Family],
) -> tuple[Fraction, ...]:
    """Share of the budget of every family, in their order, adding up to 1; most are 0.

    Parameters
    ----------
    look
        The first look at the root.
    groups
        Number of groups of every row of every family.
    noise_std
        Standard deviation of the noise that a share of the families' budget buys.
    wanted
        Families whose errors count, each the same.
    """
    finest, cells = lattice.finest, Family(0, lattice.finest.margin)
    if look.noise_std * tuned.BLIND > look.n_groups or finest == cells:
        chosen: Shares = (
            {finest: Fraction(1)}
            if finest == cells
            else {cells: Fraction(3, 10), finest: Fraction(7, 10)}
        )
        return tuple(chosen.get(family, Fraction(0)) for family in lattice.families)
    if not any(family.margin for family in wanted):
        return _regions_alone(look, lattice, groups, noise_std)
    model = _Model(look, lattice, groups, noise_std)
    least = {
        finest: tuned.LEAST_FINEST_WANTED if finest in wanted else tuned.LEAST_FINEST,
        cells: tuned.LEAST_CELLS,
    }
    enough = _enough(model, look, lattice, groups, noise_std)

    def regret(shares: Shares) -> float:
        if any(shares.get(family, 0) < bound for family, bound in least.items()):
            return math.inf
        logs = {family: math.log(model.error(family, shares)) for family in wanted}
        behind = sum(
            max(0.0, logs[family] - bound) for family, bound in enough.items() if family in logs
        )
        return (sum(logs.values()) / len(wanted)) + min(
            tuned.BEHIND * behind / len(wanted), tuned.NOTICED
        )

    found = [descend(regret, start, lattice.families) for start in _starts(lattice)]
    best = min(found, key=regret)
    kept = {family: share for family, share in best.items() if share >= tuned.SMALLEST_SHARE}
    main = max(kept, key=lambda family: kept[family])
    kept[main] += 1 - sum(kept.values(), Fraction(0))
    return tuple(kept.get(family, Fraction(0)) for family in lattice.families)


def predicted_of_families(
    look: FirstLook,
    lattice: Lattice,
    groups: Mapping[Family, IntArray],
    noise_std: Callable[[Fraction], float],
    shares: Sequence[Fraction],
) -> dict[Family, float]:
    """Mean error of a row of each family with these shares, as the split is chosen by."""
    model = _Model(look, lattice, groups, noise_std)
    measured = {family: share for family, share in zip(lattice.families, shares) if share}
    return {family: model.error(family, measured) for family in lattice.families}


def _enough(
    model: _Model,
    look: FirstLook,
    lattice: Lattice,
    groups: Mapping[Family, IntArray],
    noise_std: Callable[[Fraction], float],
) -> dict[Family, float]:
    """What tables without attributes should not be worse than: twice the error of a release without
    any, as a logarithm.
    """
    levels = [family for family in lattice.families if not family.margin]
    alone = dict(
        zip(levels, shares_for_levels(look, [groups[family] for family in levels], noise_std))
    )
    return {family: math.log(tuned.TIMES_ALONE * model.error(family, alone)) for family in levels}


def _regions_alone(
    look: FirstLook,
    lattice: Lattice,
    groups: Mapping[Family, IntArray],
    noise_std: Callable[[Fraction], float],
) -> tuple[Fraction, ...]:
    """The split over levels of a release without attributes, but for a little for the cells of the
    leaves.
    """
    levels = [family for family in lattice.families if not family.margin]
    rest = 1 - tuned.LEAST_FINEST
    shares = shares_for_levels(
        look, [groups[family] for family in levels], lambda share: noise_std(rest * share)
    )
    chosen = {family: rest * share for family, share in zip(levels, shares)} | {
        lattice.finest: tuned.LEAST_FINEST
    }
    return tuple(chosen.get(family, Fraction(0)) for family in lattice.families)


def _starts(lattice: Lattice) -> list[Shares]:
    """Splits to begin with: most to the cells of the leaves, alone, with the leaves themselves, or
    with cells in between.
    """
    finest, cells = lattice.finest, Family(0, lattice.finest.margin)
    tenth = Fraction(1, 10)
    leaves = Family(finest.level, ())
    between = [Family(level, finest.margin) for level in range(1, finest.level)]
    return [
        {finest: 7 * tenth, cells: 3 * tenth},
        {finest: 4 * tenth, cells: 3 * tenth, leaves: 3 * tenth},
        *({finest: 4 * tenth, cells: 3 * tenth, middle: 3 * tenth} for middle in between),
    ]


class _Model:
    """Predicted errors of the rows of any family, whatever is measured; those of single families
    are tabulated.
    """

    def __init__(
        self,
        look: FirstLook,
        lattice: Lattice,
        groups: Mapping[Family, IntArray],
        noise_std: Callable[[Fraction], float],
    ) -> None:
        self.noise_std = noise_std
        self.shape = shape_of(look)
        self.groups = {family: np.sort(rows[rows > 0]) for family, rows in groups.items()}
        # Values that no group has cost nothing and tell nothing.
        n_values = [
            len(self.groups[Family(0, (place,))]) for place in range(len(lattice.attributes.names))
        ]
        self.spread = {
            family: spread_of(self.shape, _sample(rows), tuned.DEVIATION_OF_CELLS)
            for family, rows in self.groups.items()
        }
        self.combined = CombinedVariances(lattice, n_values, self._variance)
        self._raw: dict[tuple[Family, Fraction], FloatArray] = {}

    def error(self, family: Family, shares: Shares) -> float:
        """Mean error of a row of a family."""
        variance = self.combined.variance(family, shares)
        error = 1 / np.sqrt(1 / np.maximum(variance, 1e-24) + 1 / self.spread[family] ** 2)
        return float((error * self.shape.width).sum())

    def _variance(self, family: Family, share: Fraction) -> FloatArray:
        """Squared error per size of a family's rows from their own answers alone."""
        if (family, share) not in self._raw:
            found = (
                block_errors(self.shape, _sample(self.groups[family]), self.noise_std(share)).raw
                ** 2
            )
            self._raw[family, share] = np.maximum(found, 1e-18)
        return self._raw[family, share]


def _sample(groups: IntArray) -> IntArray:
    return groups[
        np.linspace(0, len(groups) - 1, min(tuned.FAMILY_SAMPLE, len(groups))).astype(np.int64)
    ]

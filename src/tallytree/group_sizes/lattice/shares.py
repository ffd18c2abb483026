"""How to split a budget over the families of a lattice: levels of regions times subsets of the attributes of groups.

Measured tables of a lattice tell about one another. Taken apart into interactions they do so independently: the part of a table
that belongs to a subset T of attributes (what T tells beyond its own subsets) is told by every measured family whose attributes
include T, with the noise of the rows that are added up, and up and down the levels as without attributes. So the variance of a
row, measured or not, follows from one number per interaction, level and block of sizes. The split makes the product of the
predicted errors of the families that are wanted small; of splits that are nearly as good it takes one where tables without
attributes are at most twice as far off as in a release without any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.allocation import block_errors, shape_of, shares_for_levels, spread_of
from tallytree.group_sizes.plan.first_look import FirstLook
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.lattice import Family, Lattice
from tallytree.tuning import split as tuned

Shares = dict[Family, Fraction]


def wanted_families(want: str | Sequence[str], lattice: Lattice) -> tuple[Family, ...]:
    """The families that a workload names, such as ``"county:tenure"`` or ``"state"``; by default every level, without any
    attribute and with all of them.

    Examples
    --------
    >>> from tallytree.model.attributes import Attributes
    >>> from tallytree.model.hierarchy import hierarchy_from_leaves
    >>> states = hierarchy_from_leaves(["state"], [("GA",), ("NY",)], root="US")
    >>> wanted_families("state:tenure", Lattice(states, Attributes(("tenure",), (("owned", "other"),))))
    (Family(level=1, margin=(0,)),)
    """
    names, attributes = lattice.hierarchy.level_names, lattice.attributes
    entries = [want] if isinstance(want, str) else list(want)
    if entries and not attributes:
        raise RequestError("want= names tables by attributes, and there are none; goal= says what a split is for.")
    if not entries:
        return tuple(family for family in lattice.families if family.margin in ((), lattice.finest.margin))
    found = []
    for entry in entries:
        level, _, by = entry.partition(":")
        if level.strip() not in names:
            raise RequestError(f"want= names a level {level.strip()!r}; levels are {', '.join(names)}.")
        margin = attributes.chosen([name.strip() for name in by.split(",") if name.strip()])
        found.append(Family(names.index(level.strip()), margin))
    return tuple(dict.fromkeys(found))


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
        chosen: Shares = {finest: Fraction(1)} if finest == cells else {cells: Fraction(3, 10), finest: Fraction(7, 10)}
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
        behind = sum(max(0.0, logs[family] - bound) for family, bound in enough.items() if family in logs)
        return (sum(logs.values()) / len(wanted)) + min(tuned.BEHIND * behind / len(wanted), tuned.NOTICED)

    found = [_descend(regret, start, lattice.families) for start in _starts(lattice)]
    best = min(found, key=regret)
    kept = {family: share for family, share in best.items() if share >= tuned.SMALLEST_SHARE}
    main = max(kept, key=lambda family: kept[family])
    kept[main] += 1 - sum(kept.values(), Fraction(0))
    return tuple(kept.get(family, Fraction(0)) for family in lattice.families)


def _enough(
    model: _Model,
    look: FirstLook,
    lattice: Lattice,
    groups: Mapping[Family, IntArray],
    noise_std: Callable[[Fraction], float],
) -> dict[Family, float]:
    """What tables without attributes should not be worse than: twice the error of a release without any, as a logarithm."""
    levels = [family for family in lattice.families if not family.margin]
    alone = dict(zip(levels, shares_for_levels(look, [groups[family] for family in levels], noise_std)))
    return {family: math.log(tuned.TIMES_ALONE * model.error(family, alone)) for family in levels}


def shares_for_people(lattice: Lattice, noise_std: Callable[[Fraction], float]) -> Shares:
    """The measured tables of entities by class and their shares of the budget for people, from public facts alone.

    Every level counts the same, without attributes and with all of them. Of the values of each attribute all but "other" are
    taken to have groups.
    """
    finest = lattice.finest
    n_values = [max(1, size - 1) for size in lattice.attributes.shape]
    std = cache(noise_std)
    model = _Combined(lattice, n_values, lambda _, share: np.array([std(share) ** 2]))
    wanted = wanted_families((), lattice)

    def regret(shares: Shares) -> float:
        if shares.get(finest, 0) < tuned.LEAST_FINEST:
            return math.inf
        return float(sum(math.log(model.variance(family, shares)[0]) for family in wanted))

    found = _descend(regret, {finest: Fraction(1)}, lattice.families)
    return {family: found[family] for family in lattice.families if family in found}


def _regions_alone(
    look: FirstLook, lattice: Lattice, groups: Mapping[Family, IntArray], noise_std: Callable[[Fraction], float]
) -> tuple[Fraction, ...]:
    """The split over levels of a release without attributes, but for a little for the cells of the leaves."""
    levels = [family for family in lattice.families if not family.margin]
    rest = 1 - tuned.LEAST_FINEST
    shares = shares_for_levels(look, [groups[family] for family in levels], lambda share: noise_std(rest * share))
    chosen = {family: rest * share for family, share in zip(levels, shares)} | {lattice.finest: tuned.LEAST_FINEST}
    return tuple(chosen.get(family, Fraction(0)) for family in lattice.families)


def _starts(lattice: Lattice) -> list[Shares]:
    """Splits to begin with: most to the cells of the leaves, alone, with the leaves themselves, or with cells in between."""
    finest, cells = lattice.finest, Family(0, lattice.finest.margin)
    tenth = Fraction(1, 10)
    leaves = Family(finest.level, ())
    between = [Family(level, finest.margin) for level in range(1, finest.level)]
    return [
        {finest: 7 * tenth, cells: 3 * tenth},
        {finest: 4 * tenth, cells: 3 * tenth, leaves: 3 * tenth},
        *({finest: 4 * tenth, cells: 3 * tenth, middle: 3 * tenth} for middle in between),
    ]


def _descend(regret: Callable[[Shares], float], shares: Shares, families: Sequence[Family]) -> Shares:
    """Move budget from measured families to any others while that helps, in steps that shrink to the smallest."""
    best = regret(shares)
    for step in (20, 10, 5, 2):
        improved = True
        while improved:
            improved = False
            for giver in list(shares):
                for taker in families:
                    amount = min(step * tuned.STEP, shares.get(giver, Fraction(0)))
                    if giver == taker or amount == 0:
                        continue
                    moved = {**shares, giver: shares[giver] - amount, taker: shares.get(taker, Fraction(0)) + amount}
                    moved = {family: share for family, share in moved.items() if share}
                    found = regret(moved)
                    if found < best - 1e-6:
                        shares, best, improved = moved, found, True
    return shares


class _Combined:
    """Variances of the rows of any family, whatever is measured: one number per row, or several.

    ``variance_of`` is the variance of a family's rows from their own answers alone, ``n_values`` the number of values of each
    attribute that groups may have.
    """

    def __init__(
        self, lattice: Lattice, n_values: Sequence[int], variance_of: Callable[[Family, Fraction], FloatArray]
    ) -> None:
        self.lattice, self.n_values, self._variance = lattice, n_values, variance_of

    def variance(self, family: Family, shares: Shares) -> FloatArray:
        """Of a row of a family."""
        variance = np.zeros(1)
        for n in range(len(family.margin) + 1):
            for interaction in combinations(family.margin, n):
                own = math.prod(1 - 1 / self.n_values[place] for place in interaction)
                summed = math.prod(self.n_values[place] for place in family.margin if place not in interaction)
                if own:
                    variance = variance + own * self._interaction(interaction, shares)[family.level] / summed**2
        return variance

    def _interaction(self, interaction: tuple[int, ...], shares: Shares) -> list[FloatArray]:
        """Variance per level of the table that an interaction belongs to, its own part alone, from all that is measured."""
        n_levels = self.lattice.hierarchy.n_levels
        precision = [np.zeros(1) for _ in range(n_levels)]
        for family, share in shares.items():
            if share and set(interaction) <= set(family.margin):
                summed = math.prod(self.n_values[place] for place in family.margin if place not in interaction)
                precision[family.level] = precision[family.level] + 1 / (self._variance(family, share) * summed)
        fanout = [1.0, *(self._n_regions(level) / self._n_regions(level - 1) for level in range(1, n_levels))]
        for level in range(n_levels - 2, -1, -1):
            precision[level] = precision[level] + precision[level + 1] / fanout[level + 1]
        variance = [1 / np.maximum(here, 1e-24) for here in precision]
        for level in range(1, n_levels):
            known = np.minimum(1.0, variance[level - 1] / (variance[level] * fanout[level]))
            variance[level] = variance[level] * (1 - (1 - known) / fanout[level])
        return variance

    def _n_regions(self, level: int) -> int:
        return self.lattice.hierarchy.level_size(level)


class _Model:
    """Predicted errors of the rows of any family, whatever is measured; those of single families are tabulated."""

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
        n_values = [len(self.groups[Family(0, (place,))]) for place in range(len(lattice.attributes.names))]
        self.spread = {
            family: spread_of(self.shape, _sample(rows), tuned.DEVIATION_OF_CELLS)
            for family, rows in self.groups.items()
        }
        self.combined = _Combined(lattice, n_values, self._variance)
        self._raw: dict[tuple[Family, Fraction], FloatArray] = {}

    def error(self, family: Family, shares: Shares) -> float:
        """Mean error of a row of a family."""
        variance = self.combined.variance(family, shares)
        error = 1 / np.sqrt(1 / np.maximum(variance, 1e-24) + 1 / self.spread[family] ** 2)
        return float((error * self.shape.width).sum())

    def _variance(self, family: Family, share: Fraction) -> FloatArray:
        """Squared error per size of a family's rows from their own answers alone."""
        if (family, share) not in self._raw:
            found = block_errors(self.shape, _sample(self.groups[family]), self.noise_std(share)).raw ** 2
            self._raw[family, share] = np.maximum(found, 1e-18)
        return self._raw[family, share]


def _sample(groups: IntArray) -> IntArray:
    return groups[np.linspace(0, len(groups) - 1, min(tuned.FAMILY_SAMPLE, len(groups))).astype(np.int64)]

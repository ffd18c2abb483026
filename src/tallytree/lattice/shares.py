"""How to split a budget over the families of a lattice: levels of regions times subsets of the
attributes.

Measured tables of a lattice tell about one another. Taken apart into interactions they do so
independently: the part of a table that belongs to a subset T of attributes (what T tells beyond its
own subsets) is told by every measured family whose attributes include T, with the noise of the rows
that are added up, and up and down the levels as without attributes. So the variance of a row,
measured or not, follows from one number per interaction and level. The split makes the product of
the predicted errors of the families that are wanted small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.attributes import OTHER
from tallytree.model.lattice import Family, Lattice
from tallytree.tuning import split as tuned

Shares = dict[Family, Fraction]


def wanted_families(want: str | Sequence[str], lattice: Lattice) -> tuple[Family, ...]:
    """The families that a workload names, such as ``"county:tenure"`` or ``"state"``; by default
    every level, without any attribute and with all of them.

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
        raise RequestError(
            "want= names tables by attributes, and there are none; goal= says what a split is for."
        )
    if not entries:
        return tuple(
            family for family in lattice.families if family.margin in ((), lattice.finest.margin)
        )
    found = []
    for entry in entries:
        level, _, by = entry.partition(":")
        if level.strip() not in names:
            raise RequestError(
                f"want= names a level {level.strip()!r}; levels are {', '.join(names)}."
            )
        margin = attributes.chosen([name.strip() for name in by.split(",") if name.strip()])
        found.append(Family(names.index(level.strip()), margin))
    return tuple(dict.fromkeys(found))


def shares_from_noise(lattice: Lattice, noise_std: Callable[[Fraction], float]) -> Shares:
    """The measured families and their shares of the budget, from the noise that a share buys and
    public facts alone.

    Every level counts the same, without attributes and with all of them. Of the values of each
    attribute all but "other" are taken to occur.
    """
    finest = lattice.finest
    n_values = [max(1, len(set(values) - {OTHER})) for values in lattice.attributes.values]
    std = cache(noise_std)
    model = CombinedVariances(lattice, n_values, lambda _, share: np.array([std(share) ** 2]))
    wanted = wanted_families((), lattice)

    def regret(shares: Shares) -> float:
        if shares.get(finest, 0) < tuned.LEAST_FINEST:
            return math.inf
        return float(sum(math.log(model.variance(family, shares)[0]) for family in wanted))

    found = descend(regret, {finest: Fraction(1)}, lattice.families)
    return {family: found[family] for family in lattice.families if family in found}


def descend(
    regret: Callable[[Shares], float], shares: Shares, families: Sequence[Family]
) -> Shares:
    """Move budget from measured families to any others while that helps, in steps that shrink to
    the smallest.
    """
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
                    moved = {
                        **shares,
                        giver: shares[giver] - amount,
                        taker: shares.get(taker, Fraction(0)) + amount,
                    }
                    moved = {family: share for family, share in moved.items() if share}
                    found = regret(moved)
                    if found < best - 1e-6:
                        shares, best, improved = moved, found, True
    return shares


class CombinedVariances:
    """Variances of the rows of any family, whatever is measured: one number per row, or several.

    ``variance_of`` is the variance of a family's rows from their own answers alone, ``n_values``
    the number of values of each attribute that occur.
    """

    def __init__(
        self,
        lattice: Lattice,
        n_values: Sequence[int],
        variance_of: Callable[[Family, Fraction], FloatArray],
    ) -> None:
        self.lattice, self._variance = lattice, variance_of
        places = range(len(n_values))
        self._interactions = [
            interaction for n in range(len(places) + 1) for interaction in combinations(places, n)
        ]
        self._inside: dict[tuple[int, ...], tuple[IntArray, FloatArray]] = {}
        self._n_values = tuple(n_values)
        self._own = np.array(
            [math.prod(1 - 1 / n_values[place] for place in one) for one in self._interactions]
        )
        sizes = [lattice.hierarchy.level_size(level) for level in range(lattice.hierarchy.n_levels)]
        self._fanout = [1.0, *(below / above for above, below in pairwise(sizes))]
        self._last: tuple[Shares, list[FloatArray]] | None = None

    def variance(self, family: Family, shares: Shares) -> FloatArray:
        """Of a row of a family. Whoever asks for several families passes the same shares."""
        if self._last is None or self._last[0] is not shares:
            self._last = (shares, self._of_interactions(shares))
        inside, summed = self._interactions_in(family.margin)
        parts = self._own[inside, None] * self._last[1][family.level][inside]
        # One after the other, so that a sum does not depend on how NumPy pairs its terms.
        found: FloatArray = np.add.accumulate(parts / summed[:, None] ** 2, axis=0)[-1]
        return found

    def _interactions_in(self, margin: tuple[int, ...]) -> tuple[IntArray, FloatArray]:
        """The interactions that some attributes hold, and of each how many combinations of the
        values of the other attributes are added up for a row.
        """
        if margin not in self._inside:
            inside = [
                place for place, one in enumerate(self._interactions) if set(one) <= set(margin)
            ]
            summed = [
                math.prod(
                    self._n_values[place]
                    for place in margin
                    if place not in self._interactions[number]
                )
                for number in inside
            ]
            self._inside[margin] = (np.array(inside), np.array(summed, dtype=np.float64))
        return self._inside[margin]

    def _of_interactions(self, shares: Shares) -> list[FloatArray]:
        """Variance per level of the table that each interaction belongs to, its own part alone,
        from all that is measured: ``(n_interactions, n_numbers)`` each.
        """
        n_levels = self.lattice.hierarchy.n_levels
        precision = [np.zeros((len(self._interactions), 1)) for _ in range(n_levels)]
        for family, share in shares.items():
            if share:
                inside, summed = self._interactions_in(family.margin)
                variance = self._variance(family, share)
                own = np.zeros((len(self._interactions), len(variance)))
                own[inside] = 1 / (variance * summed[:, None])
                precision[family.level] = precision[family.level] + own
        fanout = self._fanout
        for level in range(n_levels - 2, -1, -1):
            precision[level] = precision[level] + precision[level + 1] / fanout[level + 1]
        found = [1 / np.maximum(here, 1e-24) for here in precision]
        for level in range(1, n_levels):
            known = np.minimum(1.0, found[level - 1] / (found[level] * fanout[level]))
            found[level] = found[level] * (1 - (1 - known) / fanout[level])
        return found

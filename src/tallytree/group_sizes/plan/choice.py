"""Staircases or bins of sizes: which of them will be nearer to the truth, from public facts and a
look at bins of sizes.

An entity of quantity q changes q cells of a staircase, but two bins of sizes. So staircases pay for
the bound z on quantities, bins do not; but the number of groups above a size adds up the noise of
all bins above it, and of single sizes inside a wide bin they know nothing. Which is nearer depends
on z, on how large sizes are and on how many groups there are. The look is at bins, so that a large
z costs it nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import VerificationError
from tallytree.group_sizes.noisy import Groups, NoisyQuery
from tallytree.group_sizes.plan.allocation import (
    BlockErrors,
    Shape,
    combined_errors,
    predicted_errors,
    shape_of,
    shares_for_levels,
    spread_of,
)
from tallytree.group_sizes.plan.families import predicted_of_families, shares_for_families
from tallytree.group_sizes.plan.first_look import FirstLook, look_ends
from tallytree.group_sizes.plan.plan import Plan, noise_for_shares
from tallytree.group_sizes.plan.size_bins import (
    CURVE_MISS,
    MEAN_OF_NORMAL,
    SCATTER,
    SizeBins,
    curve_of_look,
    suffix_deviations,
)
from tallytree.lattice.shares import wanted_families
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.facts import PublicFacts
from tallytree.options.choices import Mechanism
from tallytree.tuning.choice import (
    BLIND_LOOK,
    FAR_ABOVE,
    HOPELESS,
    LARGE_MEAN,
    LEVEL_BEHIND,
    LIKELY_REACH,
    SMALL_QUANTITY,
    STAIRCASES_BEHIND,
)
from tallytree.tuning.look import FARTHEST

_PREDICTED = "predicted to be nearer to the truth, from public facts and a look at bins of sizes"
_BLIND = "the look at bins of sizes shows too little, so the bound on quantities decides"
_FAR_ABOVE = "the bound on quantities is far above the mean size that the look shows"
_HOPELESS = "staircases would have noise nearly as large as the number of groups"
_MANY_CHANGES = (
    "one unit may change more answers about staircases than epsilon and delta are proved for"
)
CHOICES: tuple[Mechanism, Mechanism] = ("adaptive", "size-bins")


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes
    ----------
    mechanism
        ``"adaptive"`` (staircases) or ``"size-bins"``.
    because
        Why, in words.
    reach
        Sizes that staircases tell apart at least: a multiple of those in which the look saw groups.
    predicted
        Error of each table on the way to the leaves by either mechanism; none where one of them was
        out of the question.
    """

    mechanism: Mechanism
    because: str
    reach: int
    predicted: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The choice but for the name of the mechanism."""
        predicted = {name: list(errors) for name, errors in self.predicted.items()}
        return {"because": self.because, "reach": self.reach, "predicted_errors": predicted}

    @staticmethod
    def from_json(name: str, facts: Mapping[str, Any]) -> Choice:
        """What :meth:`to_json` wrote."""
        predicted = {
            str(one): tuple(map(float, errors)) for one, errors in facts["predicted_errors"].items()
        }
        for mechanism in CHOICES:
            if name == mechanism:
                return Choice(mechanism, str(facts["because"]), int(facts["reach"]), predicted)
        raise VerificationError(f"The mechanism {name!r} is none that a look chooses.")


def choose(
    staircases: Plan | None,
    in_bins: Sequence[tuple[Plan, SizeBins]],
    facts: PublicFacts,
    look: NoisyQuery,
    edges: IntArray,
    groups: Groups | None,
) -> tuple[Choice, tuple[Plan, SizeBins]]:
    """The mechanism with the smaller predicted errors, and the best plan for bins of sizes.

    Parameters
    ----------
    staircases
        The plan for staircases; None where they are out of the question.
    in_bins
        Plans for bins of sizes with different shares, each with its bins.
    look, edges
        The look at bins of sizes, and its bins.
    groups
        Public numbers of groups; None where they are not public.
    """
    known = None if groups is None else int(groups.n_groups[0])
    curve = curve_of_look(look.values, look.noise.std, edges, known, reaches=LIKELY_REACH)
    reach = FARTHEST * int(edges[len(curve) - 1])
    if staircases is None:
        return Choice("size-bins", _MANY_CHANGES, reach), in_bins[0]
    groups = _alike(facts, int(curve[0])) if groups is None else groups
    n_groups = int(groups.n_groups[0])
    share = Fraction(1, facts.hierarchy.n_levels)
    if noise_for_shares(staircases, facts, 0)(share) > HOPELESS * n_groups:
        return Choice("size-bins", _HOPELESS, reach), in_bins[0]
    if look.noise.std * BLIND_LOOK > n_groups:
        small = facts.max_quantity <= SMALL_QUANTITY
        return Choice("adaptive" if small else "size-bins", _BLIND, reach), in_bins[0]
    shown = look_of_bins(curve, edges, n_groups, look.noise.std)
    mean = shown.cells_beyond(0) / max(shown.n_groups, 1)
    if facts.max_quantity > FAR_ABOVE * mean:
        return Choice("size-bins", _FAR_ABOVE, reach), in_bins[0]
    behind = math.exp(STAIRCASES_BEHIND * (1 - math.exp(-mean / LARGE_MEAN)))
    of_staircases = behind * np.array(_staircases(staircases, in_bins[0][0], facts, shown, groups))
    of_bins = [_bins(*plan_and_bins, facts, shown, groups) for plan_and_bins in in_bins]
    best = min(range(len(in_bins)), key=lambda place: _regret(of_bins[place], of_staircases))
    predicted = {"adaptive": _rounded(of_staircases), "size-bins": _rounded(of_bins[best])}
    nearer = _regret(of_staircases, of_staircases) <= _regret(of_bins[best], of_staircases)
    choice = Choice("adaptive" if nearer else "size-bins", _PREDICTED, reach, predicted)
    return choice, in_bins[best]


def _regret(errors: FloatArray, of_staircases: FloatArray) -> float:
    """Mean log error; what a level is behind staircases counts more than what another gains."""
    behind = np.maximum(np.log(errors / of_staircases), 0.0)
    return float((np.log(errors) + LEVEL_BEHIND * behind).mean())


def look_of_bins(curve: FloatArray, edges: IntArray, n_groups: int, noise_std: float) -> FirstLook:
    """What a first look at staircases would show, from groups of at least each edge of bins."""
    ends = look_ends()
    starts = np.append(0, ends[:-1])
    middle = (starts + 1 + ends) / 2
    height = np.interp(middle, edges[: len(curve)], curve, right=0.0)
    return FirstLook(ends, height, n_groups, noise_std)


def _alike(facts: PublicFacts, n_groups: int) -> Groups:
    """Numbers of groups that are not public, taken to be the same in all leaves."""
    tree = facts.hierarchy
    n_leaves = tree.n_leaves
    leaves = np.full(n_leaves, max(1, n_groups // n_leaves), dtype=np.int64)
    return Groups(facts.lattice, tree.sum_from_leaves(leaves), None)


def _rounded(errors: Sequence[float] | FloatArray) -> tuple[float, ...]:
    return tuple(float(f"{max(error, 1e-9):.3g}") for error in errors)


def _staircases(
    plan: Plan, path: Plan, facts: PublicFacts, shown: FirstLook, groups: Groups
) -> list[float]:
    """Predicted errors of staircases for the tables of another plan (``path``)."""
    lattice, noise_std = facts.lattice, noise_for_shares(plan, facts, -1)
    if lattice.attributes:
        of = {family: groups.of(family) for family in lattice.families}
        wanted = wanted_families((), lattice)
        shares = shares_for_families(shown, lattice, of, noise_std, wanted)
        found = predicted_of_families(shown, lattice, of, noise_std, shares)
        return [found[family] for family in path.families]
    levels = [groups.of(family) for family in lattice.families]
    shares = shares_for_levels(shown, levels, noise_std)
    return predicted_errors(shown, levels, noise_std, shares).tolist()


def _bins(
    plan: Plan, bins: SizeBins, facts: PublicFacts, shown: FirstLook, groups: Groups
) -> FloatArray:
    """Predicted errors of bins of sizes: each level by itself, then children and parents combined
    by inverse variance.
    """
    shape = shape_of(shown)
    of_levels = [groups.of(family) for family in plan.families]
    stds = [level.query.noise.std for level in plan.levels if level.query is not None]
    own = [
        _own_errors(shape, n, std, bins, gaussian=plan.gaussian, known=facts.groups_public)
        for n, std in zip(of_levels, stds)
    ]
    n_regions = np.array([len(n) for n in of_levels])
    never = np.full(len(shape.width), np.inf)
    error = combined_errors(own, n_regions, never, [spread_of(shape, n) for n in of_levels])
    return np.array([(level * shape.width).sum() for level in error])


def _own_errors(
    shape: Shape, groups: IntArray, std: float, bins: SizeBins, *, gaussian: bool, known: bool
) -> BlockErrors:
    """Mean absolute error of the number of groups above each size, from the answers of one level.

    Where the number of groups is known, what k of K bins add up to is as well known as what the
    others do: a part (K − k)/K of the variance is left.
    """
    used = int(np.searchsorted(bins.edges, shape.start[-1] + 1, side="right"))
    used = min(max(used, 1), bins.n_bins)
    middle = (shape.start + shape.width / 2).astype(np.int64)
    place = np.minimum(bins.bin_of(middle + 1), used - 1)
    variance = suffix_deviations(used, bins.block, gaussian=gaussian)[place] ** 2
    if known:
        variance = variance * place / used
    width = np.diff(bins.edges)[place]
    inside = groups[:, None] * (shape.fall * width)
    missed = np.where(width > 1, CURVE_MISS * inside + SCATTER * np.sqrt(inside), 0.0)
    noise = MEAN_OF_NORMAL * std * np.sqrt(variance)
    error = np.maximum((noise + missed).mean(axis=0), 1e-12)
    return BlockErrors(error, error)

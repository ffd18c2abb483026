"""What options of a release say, checked one by one before a plan is made from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.traits import Traits
from tallytree.options.choices import Mechanism, Norm, Split, View
from tallytree.privacy.budget import Budget, Definition, Exact, exact

# What the user may choose; the others belong to their mechanisms alone.
VIEWS: tuple[View, ...] = tuple(
    view
    for view in get_args(View)
    if view not in ("chain", "staircase", "bins", "blocks", "people")
)
# A side question takes a small part of the budget off the top. The largest size only sets the
# length of a table, so a hundredth will do (kuo2018, footnote 6).
LARGEST_SIZE_SHARE = Fraction(1, 100)


def seconds_from(given: Exact | None) -> float | None:
    """A time limit in seconds."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise RequestError(f"time_limit is {given}; give a number of seconds above 0.")
    return seconds


def views_from(
    given: View | Sequence[View] | None, mechanism: Mechanism, traits: Traits, n_levels: int
) -> tuple[View, ...]:
    """The view of each level."""
    fixed = traits.view
    if fixed is not None:
        if given is not None and set([given] if isinstance(given, str) else given) != {fixed}:
            raise RequestError(
                f"mechanism {mechanism!r} measures the {fixed} view on every level; leave view out."
            )
        return (fixed,) * n_levels
    one: View = "hybrid" if given is None or not isinstance(given, str) else given
    names = [one] * n_levels if given is None or isinstance(given, str) else list(given)
    if len(names) != n_levels:
        raise RequestError(
            f"view has {len(names)} entries for {n_levels} levels. Give one name, or one per "
            "level, root first."
        )
    for name in names:
        if name not in VIEWS:
            raise RequestError(
                f"view {name!r} belongs to a mechanism of its own. Choose one of: "
                f"{', '.join(VIEWS)}."
            )
    return tuple(names)


def shares_from(
    given: Split | Sequence[Exact], n_levels: int, mechanism: str, traits: Traits
) -> tuple[Fraction, ...]:
    """Share of the budget per level, adding up to 1; bottom-up measures the leaves alone (kuo2018
    §6.2.2).

    ``"auto"`` leaves it to the mechanism: adaptive plans a split after its first look, others share
    equally.
    """
    if traits.split == "planned" and given == "auto":
        return (Fraction(0),) * (n_levels - 1) + (Fraction(1),)
    if traits.split == "leaves":
        if not isinstance(given, str):
            raise RequestError(
                f"mechanism {mechanism!r} gives the whole budget to the leaves; leave budget out."
            )
        return (Fraction(0),) * (n_levels - 1) + (Fraction(1),)
    if isinstance(given, str):
        return (Fraction(1, n_levels),) * n_levels
    may_skip = traits.split == "planned"
    shares = tuple(
        Fraction(0) if may_skip and _is_zero(share) else exact(share, "a budget share")
        for share in given
    )
    if len(shares) != n_levels:
        raise RequestError(
            f"budget has {len(shares)} shares for {n_levels} levels. Give one per level, root "
            "first."
        )
    if sum(shares) != 1:
        raise RequestError(
            f"The budget shares add up to {float(sum(shares)):g}, not 1. Give shares that add up "
            "to exactly 1."
        )
    if shares[-1] == 0:
        raise RequestError(
            "The last level needs a share of the budget: its tables are not told by the levels "
            "above."
        )
    return shares


def _is_zero(share: object) -> bool:
    """Whether a level is meant to be left out; anything else must be a positive number."""
    return isinstance(share, int | float | str | Fraction) and str(share).strip() in ("0", "0.0")


def max_size_from(given: int | str | None) -> int | None:
    """A public bound on sizes; None where it is to be measured, or none is needed."""
    if not isinstance(given, int):
        return None
    if given < 1:
        raise RequestError(f"max_size is {given}; it must be at least 1, or 'auto'.")
    return given


def least_size_from(given: int | None, known: int, max_size: int | None) -> int:
    """The least size that is released: as given, else what is known of groups by how they were
    read.
    """
    if given is None:
        return known if max_size is None else min(known, max_size)
    if max_size is not None and given > max_size:
        raise RequestError(f"min_size is {given}, above max_size, which is {max_size}.")
    return given


def budget_of_largest_size(
    asked: Exact | None, budget: Budget, *, measures_max_size: bool
) -> Fraction:
    """What a bound on sizes costs: the amount asked for (kuo2018 footnote 6), or a share of the
    budget.
    """
    if asked is None:
        return budget.total * LARGEST_SIZE_SHARE if measures_max_size else Fraction(0)
    amount = exact(asked, "max_size_budget")
    if not measures_max_size:
        raise RequestError(
            "max_size_budget goes with the views naive, cumulative and chain, without a public "
            "max_size."
        )
    if amount >= budget.total:
        raise RequestError(f"max_size_budget is {amount}, which leaves nothing of {budget}.")
    return amount


def norm_from(given: Norm | None, view: View, definition: Definition) -> Norm:
    """L1 for cumulative counts, L2 for sorted sizes, unless asked otherwise (kuo2018 §4.2, §4.3).

    Under Gaussian noise L2 is the distance of likely truths, for cumulative counts too.
    """
    if given is None:
        return 1 if view == "cumulative" and definition == "pure" else 2
    return given

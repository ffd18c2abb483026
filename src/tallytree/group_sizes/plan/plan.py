"""What a release will measure, decided before anything confidential is read.

A :class:`~tallytree.options.ReleaseOptions` is what the user asked for; a :class:`Plan` is what
follows from it and from public facts: per level the view, the share of the budget, the sensitivity
and the noise. The manifest of a release is written from its plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from itertools import starmap

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.goals import goal_from
from tallytree.group_sizes.plan.requests import (
    budget_of_largest_size,
    least_size_from,
    max_size_from,
    norm_from,
    seconds_from,
    shares_from,
    views_from,
)
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.group_sizes.plan.traits import (
    Traits,
    check_instance,
    check_solver_noise,
    largest_table,
    totals_kept,
    traits_of,
)
from tallytree.lattice.shares import shares_from_noise, wanted_families
from tallytree.model.facts import PublicFacts
from tallytree.model.lattice import Family
from tallytree.options.choices import Mechanism, Merge, Norm, Totals, View
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.budget import Budget, exact, noise_for, refuse_many_changes
from tallytree.privacy.noise import DiscreteGaussian, Noise
from tallytree.privacy.sensitivity import (
    Sensitivity,
    chain_sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
    group_totals_sensitivity,
    hybrid_sensitivity,
    largest_size_sensitivity,
    moved_size_bins_sensitivity,
    moved_size_blocks_sensitivity,
    people_sensitivity,
    size_bins_sensitivity,
    size_blocks_sensitivity,
    sizes_sensitivity,
)

SIZE_LOOK = "size look"
"""The name of a first look at bins of sizes, where entities are protected."""

# Group totals fix every table's sum, so they get a twentieth off the top.
GROUP_TOTALS_SHARE = Fraction(1, 20)
# Of a release with people by class. Each of their tables is asked for one count per class, sizes
# for some ten per row.
PEOPLE_SHARE = Fraction(1, 4)


@dataclass(frozen=True)
class QueryPlan:
    """One measured query family: its part of the budget, what one entity can change, and the noise
    that hides it.
    """

    budget: Fraction
    sensitivity: Sensitivity
    noise: Noise


@dataclass(frozen=True)
class LevelPlan:
    """One level of the hierarchy, by some attributes of groups; nothing is measured there when
    ``query`` is None.
    """

    level: int
    name: str
    view: View
    norm: Norm
    share: Fraction
    query: QueryPlan | None
    by: tuple[str, ...] = ()
    margin: tuple[int, ...] = ()

    @property
    def family(self) -> Family:
        """The level and the places of its attributes among all."""
        return Family(self.level, self.margin)

    def question(self, name: str) -> str:
        """A question about this family, by a name that no other family of its level has.

        Attributes stand in a JSON list: joined by a comma, ``a``, ``b`` and ``a, b`` would be
        one place in the key stream, and two tables would have the same noise.
        """
        return f"{name} by {json.dumps(self.by, ensure_ascii=False)}" if self.by else name


@dataclass(frozen=True)
class Plan:
    """Everything that a release will measure, and how it will be made consistent.

    ``max_size`` is None when it is measured or not needed; a measured one is cut off at
    ``most_sizes``. While ``awaits_look`` the levels are those of a split that gives everything to
    the leaves, until the first look has been taken and :func:`with_shares` replaces them.
    No group smaller than ``least_size`` is released.
    ``size_look`` counts groups in bins of sizes before anything else is asked. Staircases tell at
    least ``reach`` sizes apart, as far as it saw groups.
    ``people`` are the measured tables of entities by class, whose shares are parts of the budget
    for people.
    """

    request: ReleaseOptions
    mechanism: Mechanism
    merge: Merge
    budget: Budget
    levels: tuple[LevelPlan, ...]
    max_size: int | None
    most_sizes: int
    largest_size: QueryPlan | None
    group_totals: tuple[QueryPlan, ...]
    totals: Totals
    time_limit: float | None
    for_levels: Fraction
    first_look: QueryPlan | None = None
    awaits_look: bool = False
    people: tuple[LevelPlan, ...] = ()
    least_size: int = 0
    size_look: QueryPlan | None = None
    reach: int = 0

    @property
    def families(self) -> tuple[Family, ...]:
        """The family that each level is about."""
        return tuple(level.family for level in self.levels)

    @property
    def gaussian(self) -> bool:
        """Whether the noise of the lowest level is Gaussian."""
        query = self.levels[-1].query
        return query is not None and isinstance(query.noise, DiscreteGaussian)


def plan_release(request: ReleaseOptions, facts: PublicFacts) -> Plan:
    """Decide what to measure, from the request and public facts alone; raises RequestError for what
    makes no sense.
    """
    mechanism = _mechanism(request, facts)
    max_size = max_size_from(request.max_size)
    return _plan_of(
        request, facts, mechanism, traits_of(mechanism).size_look_share(facts, max_size)
    )


def plan_chosen(plan: Plan, facts: PublicFacts, mechanism: Mechanism, reach: int = 0) -> Plan:
    """The plan for the mechanism that was chosen after a look at bins of sizes, with what the look
    leaves of the budget.
    """
    assert plan.size_look is not None
    share = plan.size_look.budget / plan.budget.total
    chosen = _plan_of(plan.request, facts, mechanism, share)
    return replace(chosen, request=plan.request, reach=reach)


def _plan_of(
    request: ReleaseOptions, facts: PublicFacts, mechanism: Mechanism, size_look_share: Fraction
) -> Plan:
    """The plan for a mechanism, of which a share is left for a look at bins of sizes."""
    traits = traits_of(mechanism)
    families = traits.families(facts.lattice)
    n_levels = len(families)
    totals = totals_kept(mechanism, request.totals)
    budget = request.loss()
    max_size = max_size_from(request.max_size)
    if facts.scale is not None:
        max_size = facts.scale.n_steps
    size_look_part = budget.total * size_look_share
    rest = budget.total - size_look_part
    views = views_from(request.view, mechanism, traits, n_levels)
    if traits.measured_view is not None:
        known = traits.measured_view(facts, max_size, budget.definition == "zcdp")
        views = views if known is None else (known,) * n_levels
    shares = shares_from(request.budget, n_levels, mechanism, traits)
    goal_from(request.goal, facts.hierarchy.level_names)  # refused before anything is paid
    _check_attributes(request, mechanism, traits, facts)
    check_instance(mechanism, facts.hierarchy, max_size)
    _check_unit(mechanism, traits, facts)
    traits.refuse_request(request, facts)

    query = partial(_query, budget)
    needs_max_size = any(
        view in ("naive", "cumulative", "chain") for view, share in zip(views, shares) if share > 0
    )
    largest_part = budget_of_largest_size(
        request.max_size_budget, budget, measures_max_size=needs_max_size and max_size is None
    )
    group_totals: tuple[QueryPlan, ...] = ()
    if not facts.groups_public and not traits.counts_groups:
        group_totals = _group_totals(facts, query, rest * GROUP_TOTALS_SHARE, n_levels)
    totals_part = sum((total.budget for total in group_totals), Fraction(0))
    look_part = rest * traits.look_share(facts, max_size)
    people_part = rest * _people_share(request, mechanism, traits, facts)
    plan = Plan(
        # With the mechanism's name, so that it can be asked for again whatever the default is then.
        request=replace(request, mechanism=mechanism),
        mechanism=mechanism,
        merge=request.merge,
        budget=budget,
        levels=tuple(
            _level_plan(facts, family, view, norm_from(request.norm, view, budget.definition))
            for family, view in zip(families, views)
        ),
        max_size=max_size,
        most_sizes=largest_table(mechanism, facts.hierarchy),
        largest_size=query(largest_part, largest_size_sensitivity(**_units(facts)))
        if largest_part
        else None,
        group_totals=group_totals,
        totals=totals,
        time_limit=seconds_from(request.time_limit),
        for_levels=rest - largest_part - totals_part - look_part - people_part,
        first_look=query(look_part, view_sensitivity(views[0], facts, 0)) if look_part else None,
        size_look=query(size_look_part, view_sensitivity("bins", facts, 0))
        if size_look_part
        else None,
    )
    looks = look_part > 0 or size_look_part > 0
    awaits_look = looks and (traits.chooses_questions or request.budget == "auto")
    plan = replace(
        with_shares(plan, facts, shares),
        awaits_look=awaits_look,
        people=_people(facts, query, people_part),
        least_size=least_size_from(request.min_size, facts.least_size, max_size),
    )
    _refuse_plan(plan, facts)
    traits.refuse_plan(plan, facts.hierarchy)
    return plan


def _refuse_plan(plan: Plan, facts: PublicFacts) -> None:
    """Refuse what changes more answers than the budget was found for, and solvers under noise that
    is too large for them.
    """
    # What a level might ask, measured or not, and twice the root: for its look too.
    asked = [*plan.levels, *plan.people, plan.levels[0], plan.levels[0]]
    refuse_many_changes(
        plan.budget, [view_sensitivity(level.view, facts, level.level) for level in asked]
    )
    stds = [level.query.noise.std for level in plan.levels if level.query is not None]
    check_solver_noise(plan.mechanism, max(stds))


def _group_totals(
    facts: PublicFacts,
    query: Callable[[Fraction, Sensitivity], QueryPlan],
    part: Fraction,
    n_levels: int,
) -> tuple[QueryPlan, ...]:
    """The measured numbers of groups of each level."""
    sensitivity = group_totals_sensitivity(contributions=facts.unit.contributions)
    return (query(part / n_levels, sensitivity),) * n_levels


def _people_share(
    request: ReleaseOptions, mechanism: Mechanism, traits: Traits, facts: PublicFacts
) -> Fraction:
    """Part of the budget for tables of people."""
    if not facts.people:
        if request.people_share is not None:
            raise RequestError(
                "people_share= goes with data that were read with people=, the classes of entities."
            )
        return Fraction(0)
    if not traits.tables:
        raise RequestError(
            f"mechanism {mechanism!r} counts no people by class; leave mechanism and view out."
        )
    share = (
        PEOPLE_SHARE
        if request.people_share is None
        else exact(request.people_share, "people_share")
    )
    if share >= 1:
        raise RequestError(
            f"people_share is {request.people_share}; it is a part of the budget, so below 1."
        )
    return share


def _people(
    facts: PublicFacts, query: Callable[[Fraction, Sensitivity], QueryPlan], part: Fraction
) -> tuple[LevelPlan, ...]:
    """The tables of people that are measured, each level by some attributes of groups, all classes
    in one.
    """
    if not part:
        return ()
    groups = facts.people.groups(facts.lattice)
    sensitivity = view_sensitivity("people", facts, 0)
    shares = shares_from_noise(groups, lambda share: query(part * share, sensitivity).noise.std)
    facts = replace(facts, attributes=groups.attributes)
    return tuple(
        replace(
            _level_plan(facts, family, "people", 2),
            share=share,
            query=query(part * share, sensitivity),
        )
        for family, share in shares.items()
    )


def _level_plan(facts: PublicFacts, family: Family, view: View, norm: Norm) -> LevelPlan:
    by = facts.attributes.margin(family.margin).names
    name = facts.hierarchy.level_names[family.level] + (f" by {', '.join(by)}" if by else "")
    return LevelPlan(family.level, name, view, norm, Fraction(0), None, by, family.margin)


def noise_for_shares(plan: Plan, facts: PublicFacts, place: int) -> Callable[[Fraction], float]:
    """The standard deviation of the noise at a place among the plan's levels, for any share of
    their budget.
    """
    sensitivity = view_sensitivity(plan.levels[place].view, facts, plan.levels[place].level)

    @cache
    def noise_std(share: Fraction) -> float:
        return _query(plan.budget, plan.for_levels * share, sensitivity).noise.std

    return noise_std


def _query(budget: Budget, part: Fraction, sensitivity: Sensitivity) -> QueryPlan:
    """A query family that takes a part of the budget."""
    return QueryPlan(part, sensitivity, noise_for(Budget(budget.definition, part), sensitivity))


def with_shares(plan: Plan, facts: PublicFacts, shares: Sequence[Fraction]) -> Plan:
    """The plan with the levels' budget split like this, for good; nothing is measured on a level
    with share 0.
    """

    def with_share(level: LevelPlan, share: Fraction) -> LevelPlan:
        if share <= 0:
            return replace(level, share=share, query=None)
        sensitivity = view_sensitivity(level.view, facts, level.level)
        query = _query(plan.budget, plan.for_levels * share, sensitivity)
        return replace(level, share=share, query=query)

    levels = tuple(starmap(with_share, zip(plan.levels, shares, strict=True)))
    return replace(plan, levels=levels, awaits_look=False)


def with_view(plan: Plan, facts: PublicFacts, view: View) -> Plan:
    """The plan with the same shares for another view on every level, for good."""
    levels = tuple(replace(level, view=view) for level in plan.levels)
    return with_shares(replace(plan, levels=levels), facts, [level.share for level in plan.levels])


def with_bins_asked(plan: Plan, facts: PublicFacts, bins: SizeBins) -> Plan:
    """The plan with the questions that bins of sizes bring: about each alone, or about blocks too."""
    return with_view(plan, facts, "blocks" if bins.block else "bins")


def view_sensitivity(view: View, facts: PublicFacts, level: int) -> Sensitivity:
    """How much one unit can change all answers of a view on one level."""
    match view:
        case "naive":
            return counts_sensitivity(contributions=facts.unit.contributions)
        case "sizes":
            return sizes_sensitivity(**_units(facts))
        case "cumulative":
            return cumulative_sensitivity(**_units(facts))
        case "hybrid" | "staircase":
            return hybrid_sensitivity(**_units(facts))
        case "people":
            return people_sensitivity(contributions=facts.unit.contributions)
        case "bins" if facts.whole_groups:
            return size_bins_sensitivity(contributions=facts.groups_of_unit)
        case "blocks" if facts.whole_groups:
            return size_blocks_sensitivity(contributions=facts.groups_of_unit)
        case "bins":
            return moved_size_bins_sensitivity(contributions=facts.unit.contributions)
        case "blocks":
            return moved_size_blocks_sensitivity(contributions=facts.unit.contributions)
        case "chain":
            return chain_sensitivity(facts.hierarchy.level_size(level), **_units(facts))


def _units(facts: PublicFacts) -> dict[str, int]:
    return {"max_quantity": facts.max_quantity, "contributions": facts.unit.contributions}


def _mechanism(request: ReleaseOptions, facts: PublicFacts) -> Mechanism:
    """The mechanism asked for; views belong to matching."""
    default: Mechanism = "adaptive" if request.view is None else "matching"
    if facts.whole_groups:
        default = "size-bins"
    elif default == "adaptive" and facts.max_quantity > 1 and _splits_itself(request):
        default = "auto"
    return default if request.mechanism is None else request.mechanism


def _splits_itself(request: ReleaseOptions) -> bool:
    """Whether it is left open what a split is for: shares, goals and wanted tables are those of
    staircases.
    """
    return isinstance(request.budget, str) and request.goal == "balanced" and not request.want


def _check_unit(mechanism: Mechanism, traits: Traits, facts: PublicFacts) -> None:
    """Whole groups are not protected by every mechanism."""
    if facts.whole_groups and not traits.whole_groups:
        raise RequestError(
            f"mechanism {mechanism!r} protects single entities; where the unit is a whole group, "
            "leave mechanism and view out or say mechanism='size-bins'."
        )


def _check_attributes(
    request: ReleaseOptions, mechanism: Mechanism, traits: Traits, facts: PublicFacts
) -> None:
    wanted_families(request.want, facts.lattice)  # refuses what is not there
    if not facts.attributes:
        return
    if not traits.tables:
        raise RequestError(
            f"mechanism {mechanism!r} measures levels alone, no tables by "
            f"{', '.join(facts.attributes.names)}; leave mechanism "
            "and view out, or read the data without by=."
        )
    if request.goal != "balanced":
        raise RequestError(
            "goal= is about levels; with attributes, want= names the tables that a split is for."
        )
    if not facts.whole_groups and not facts.groups_public:
        raise RequestError(
            "Attributes need public numbers of groups per combination of values, or unit='group'."
        )

"""What is fixed about each mechanism for group sizes before anything is measured: what it asks,
which public totals it keeps, how large an instance it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, get_args

from tallytree.errors import RequestError
from tallytree.extensions import extension
from tallytree.group_sizes.plan.size_bins import looks_first, single_sizes
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Family, Lattice
from tallytree.options.choices import Mechanism, Totals, View
from tallytree.tuning.look import FIRST_LOOK_SHARE, LOOK_SHARE_BY_ATTRIBUTES, SIZE_LOOK_SHARE

if TYPE_CHECKING:
    from tallytree.group_sizes.plan.plan import Plan
    from tallytree.model.facts import PublicFacts
    from tallytree.options.group_sizes import ReleaseOptions

NAMES: tuple[str, ...] = get_args(Mechanism)

# Cells of a dense table (regions × sizes) that the mechanisms of fioretto2021 take: about 50 bytes
# each at the peak.
MOST_CELLS = 200_000_000
LARGEST_SOLVER_NOISE = 5_000


def _no_look(facts: PublicFacts, max_size: int | None) -> Fraction:
    """No share of the budget: nothing is looked at before the plan is made."""
    return Fraction(0)


def _every_family(lattice: Lattice) -> tuple[Family, ...]:
    return lattice.families


def _fits_all(request: ReleaseOptions, facts: PublicFacts) -> None:
    """Refuse nothing."""


def _fits_every_plan(plan: Plan, hierarchy: Hierarchy) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Traits:
    """What planning must know about a mechanism.

    Attributes
    ----------
    view
        What it measures on every level; None where the user chooses.
    totals
        Which public totals it can keep, the default first.
    most_cells
        Cells of a dense table that it takes.
    solver
        Whether it calls a solver of integer programs.
    split
        Where the budget goes unless the user says: to all levels alike, to the leaves, or where
        the first look says. A planned split may leave levels out.
    look_share
        Share of the budget for a first look, from public facts and the public bound on sizes.
    size_look_share
        The same for a first look in bins of sizes, where entities are protected.
    chosen_after_look
        What else the first look decides, in the words of the manifest.
    chooses_questions
        Whether the look decides what is asked, whatever the split.
    measured_view
        The view where it follows from the public bound; None where it is ``view``.
    families
        The tables that it may measure, each after those that cover it.
    whole_groups
        Whether it protects whole groups too, besides entities.
    counts_groups
        Whether numbers of groups follow from what it measures, so that private ones need no
        question of their own.
    tables
        Whether it counts groups by attributes, and people by class.
    in_turns
        Whether each level is estimated before the next one is measured.
    distributed
        Whether executors of Spark can measure it.
    refuse_request, refuse_plan
        Raise RequestError for what this mechanism cannot do, before anything is paid.
    """

    view: View | None
    totals: tuple[Totals, ...]
    most_cells: int = MOST_CELLS
    solver: bool = False
    split: Literal["equal", "leaves", "planned"] = "equal"
    look_share: Callable[[PublicFacts, int | None], Fraction] = _no_look
    size_look_share: Callable[[PublicFacts, int | None], Fraction] = _no_look
    chosen_after_look: str = ""
    chooses_questions: bool = False
    measured_view: Callable[[PublicFacts, int | None, bool], View | None] | None = None
    families: Callable[[Lattice], tuple[Family, ...]] = _every_family
    whole_groups: bool = False
    counts_groups: bool = False
    tables: bool = False
    in_turns: bool = False
    distributed: bool = False
    refuse_request: Callable[[ReleaseOptions, PublicFacts], None] = _fits_all
    refuse_plan: Callable[[Plan, Hierarchy], None] = _fits_every_plan


def _look_of_staircases(facts: PublicFacts, max_size: int | None) -> Fraction:
    return LOOK_SHARE_BY_ATTRIBUTES if facts.attributes else FIRST_LOOK_SHARE


def _look_of_bins(facts: PublicFacts, max_size: int | None) -> Fraction:
    return FIRST_LOOK_SHARE if facts.whole_groups and looks_first(max_size) else Fraction(0)


def _size_look_of_bins(facts: PublicFacts, max_size: int | None) -> Fraction:
    return Fraction(0) if facts.whole_groups or not looks_first(max_size) else SIZE_LOOK_SHARE


def _size_look(facts: PublicFacts, max_size: int | None) -> Fraction:
    return SIZE_LOOK_SHARE


def _bins_asked(facts: PublicFacts, max_size: int | None, gaussian: bool) -> View | None:
    """With a small public bound every size is a bin, alone or in blocks; else the look decides."""
    if max_size is None or looks_first(max_size):
        return None
    bins = single_sizes(max_size, least_size=facts.least_size, gaussian=gaussian)
    return "blocks" if bins.block else "bins"


def _path_to_cells(lattice: Lattice) -> tuple[Family, ...]:
    """A path through the lattice, which estimates of bins follow from the root down."""
    if not lattice.attributes:
        return lattice.families
    levels = range(lattice.hierarchy.n_levels)
    return (Family(0, ()), *(Family(level, lattice.finest.margin) for level in levels))


def _refuse_wanted(request: ReleaseOptions, facts: PublicFacts) -> None:
    if facts.attributes and request.want:
        raise RequestError(
            "want= plans a split; where bins of sizes are measured every table has the same share."
        )


def _refuse_shares(request: ReleaseOptions, facts: PublicFacts) -> None:
    """Before the look it is open what a share would be for."""
    if not isinstance(request.budget, str) or request.want or request.goal != "balanced":
        raise RequestError(
            "mechanism 'auto' plans its own split; with shares in budget=, with goal= or want= say "
            "mechanism='adaptive'."
        )


OWN_TRAITS: dict[str, Traits] = {
    "adaptive": Traits(
        "staircase",
        ("regions",),
        split="planned",
        look_share=_look_of_staircases,
        chosen_after_look="split over the levels",
        tables=True,
        in_turns=True,
        distributed=True,
    ),
    "matching": Traits(None, ("regions",), distributed=True),
    "bottom-up": Traits(None, ("regions",), split="leaves", distributed=True),
    "size-bins": Traits(
        "bins",
        ("regions",),
        look_share=_look_of_bins,
        size_look_share=_size_look_of_bins,
        chosen_after_look="alone or in blocks, chosen",
        chooses_questions=True,
        measured_view=_bins_asked,
        families=_path_to_cells,
        whole_groups=True,
        counts_groups=True,
        tables=True,
        refuse_request=_refuse_wanted,
    ),
    "auto": Traits(
        "bins",
        ("regions",),
        size_look_share=_size_look,
        chosen_after_look="or staircases, chosen",
        chooses_questions=True,
        counts_groups=True,
        tables=True,
        refuse_request=_refuse_shares,
    ),
}


def traits_of(mechanism: str) -> Traits:
    """What is fixed about a mechanism, by its name; those of papers are loaded when asked for."""
    own = OWN_TRAITS.get(mechanism)
    if own is not None:
        return own
    traits: Traits = extension("group sizes")[mechanism].traits
    return traits


def totals_kept(mechanism: str, given: Totals | None) -> Totals:
    """Whether the release keeps every region's public number of groups or the root's alone."""
    offered = traits_of(mechanism).totals
    if given is None:
        return offered[0]
    for totals in offered:
        if given == totals:
            return totals
    others = ", ".join(name for name in NAMES if given in traits_of(name).totals)
    kept = "the root's total alone" if offered == ("root",) else "the totals of every region"
    raise RequestError(
        f"mechanism {mechanism!r} keeps {kept}. Leave totals out, or choose one of: {others}."
    )


def check_instance(mechanism: str, hierarchy: Hierarchy, max_size: int | None) -> None:
    """Refuse, before anything is measured, what would take too long or too much memory; says the
    predicted size.
    """
    traits = traits_of(mechanism)
    if traits.view in (None, "staircase", "bins"):
        return
    if max_size is None:
        if traits.solver:
            raise RequestError(
                f"mechanism {mechanism!r} needs max_size, the largest size to tell apart, to "
                "predict its own size."
            )
        return
    cells = hierarchy.n_regions * (max_size + 1)
    if cells > traits.most_cells:
        faster = {
            "naive": "tree-dp or topdown",
            "cumulative": "cumulative-relaxed or cumulative-dp",
        }.get(traits.view, "")
        instead = f" or mechanism {faster}" if traits.solver else ""
        raise RequestError(
            f"mechanism {mechanism!r} would solve for {cells:,} cells ({hierarchy.n_regions:,} "
            f"regions × {max_size + 1:,} "
            f"sizes); it takes at most {traits.most_cells:,}. Choose a smaller max_size{instead}."
        )


def check_solver_noise(mechanism: str, largest_std: float) -> None:
    """Refuse a solver where noise is so large that squared distances leave the range in which
    solvers are exact.
    """
    if traits_of(mechanism).solver and largest_std > LARGEST_SOLVER_NOISE:
        raise RequestError(
            f"mechanism {mechanism!r} calls a solver, which is exact up to a noise of "
            f"{LARGEST_SOLVER_NOISE:,} (standard "
            f"deviation); this budget asks for {largest_std:,.0f}. Choose a larger budget or "
            "another mechanism."
        )


def largest_table(mechanism: str, hierarchy: Hierarchy) -> int:
    """Largest max_size that a mechanism takes on a hierarchy: the bound for an estimated one."""
    return max(1, traits_of(mechanism).most_cells // hierarchy.n_regions - 1)

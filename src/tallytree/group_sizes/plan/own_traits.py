"""What is fixed about our own mechanisms and those of kuo2018."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.size_bins import looks_first, single_sizes
from tallytree.group_sizes.plan.traits import Traits
from tallytree.model.lattice import Family, Lattice
from tallytree.options.choices import View
from tallytree.tuning.look import FIRST_LOOK_SHARE, LOOK_SHARE_BY_ATTRIBUTES, SIZE_LOOK_SHARE

if TYPE_CHECKING:
    from tallytree.model.facts import PublicFacts
    from tallytree.options.group_sizes import ReleaseOptions


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

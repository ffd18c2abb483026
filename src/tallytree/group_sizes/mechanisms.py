"""What each mechanism for group sizes measures, which public totals it keeps, and how large an
instance it takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from tallytree.errors import RequestError
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.choices import Mechanism, Totals, View

MECHANISMS: tuple[str, ...] = get_args(Mechanism)

# Cells of a dense table (regions × sizes) that the mechanisms of fioretto2021 take: about 50 bytes
# each at the peak.
MOST_CELLS = 200_000_000
# Programs of tree-program, at about a millisecond each.
MOST_PROGRAMS = 50_000
LARGEST_SOLVER_NOISE = 5_000


@dataclass(frozen=True)
class Traits:
    """What is fixed about a mechanism; ``view`` None means that the user chooses, ``totals`` starts
    with the default.
    """

    view: View | None
    totals: tuple[Totals, ...]
    most_cells: int = MOST_CELLS
    solver: bool = False


_EITHER: tuple[Totals, ...] = ("regions", "root")
# The limits of the exact programs keep an ordinary instance within minutes; each cell is one whole
# unknown.
TRAITS: dict[str, Traits] = {
    "adaptive": Traits("staircase", ("regions",)),
    "matching": Traits(None, ("regions",)),
    "bottom-up": Traits(None, ("regions",)),
    "tree-exact": Traits("naive", _EITHER, most_cells=30_000, solver=True),
    "tree-relaxed": Traits("naive", _EITHER),
    "tree-program": Traits("naive", ("root",), most_cells=300, solver=True),
    "tree-dp": Traits("naive", ("root",)),
    "cumulative-exact": Traits("cumulative", _EITHER, most_cells=1_000, solver=True),
    "cumulative-relaxed": Traits("cumulative", _EITHER),
    "cumulative-dp": Traits("cumulative", ("root",)),
    "chain": Traits("chain", ("root",)),
    "topdown": Traits("naive", _EITHER),
    "size-bins": Traits("bins", ("regions",)),
}


def totals_kept(mechanism: str, given: Totals | None) -> Totals:
    """Whether the release keeps every region's public number of groups or the root's alone."""
    offered = TRAITS[mechanism].totals
    if given is None:
        return offered[0]
    for totals in offered:
        if given == totals:
            return totals
    others = ", ".join(name for name, traits in TRAITS.items() if given in traits.totals)
    kept = "the root's total alone" if offered == ("root",) else "the totals of every region"
    raise RequestError(
        f"mechanism {mechanism!r} keeps {kept}. Leave totals out, or choose one of: {others}."
    )


def check_instance(mechanism: str, hierarchy: Hierarchy, max_size: int | None) -> None:
    """Refuse, before anything is measured, what would take too long or too much memory; says the
    predicted size.
    """
    traits = TRAITS[mechanism]
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
    if TRAITS[mechanism].solver and largest_std > LARGEST_SOLVER_NOISE:
        raise RequestError(
            f"mechanism {mechanism!r} calls a solver, which is exact up to a noise of "
            f"{LARGEST_SOLVER_NOISE:,} (standard "
            f"deviation); this budget asks for {largest_std:,.0f}. Choose a larger budget or "
            "another mechanism."
        )


def check_programs(hierarchy: Hierarchy, max_size: int, half_width: int) -> None:
    """Refuse ``tree-program`` where it would call its solver too often: once per entry of every
    cost table above the leaves.
    """
    n_internal = int(hierarchy.level_starts[-2])
    programs = n_internal * (max_size + 1) * (2 * half_width + 1)
    if programs > MOST_PROGRAMS:
        raise RequestError(
            f"mechanism 'tree-program' would solve about {programs:,} programs ({n_internal:,} "
            f"regions × {max_size + 1:,} "
            f"sizes × {2 * half_width + 1:,} values); it takes at most {MOST_PROGRAMS:,}. Choose a "
            "smaller max_size, a larger "
            "epsilon, or mechanism tree-dp, which has the same result."
        )


def largest_table(mechanism: str, hierarchy: Hierarchy) -> int:
    """Largest max_size that a mechanism takes on a hierarchy: the bound for an estimated one."""
    return max(1, TRAITS[mechanism].most_cells // hierarchy.n_regions - 1)

"""How much memory a release will take, from public facts alone, so that one that cannot run says so
before it starts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.plan import LevelPlan, Plan
from tallytree.group_sizes.plan.thresholds import hybrid_thresholds, most_listed
from tallytree.model.arrays import IntArray
from tallytree.model.facts import PublicFacts
from tallytree.model.lattice import Lattice
from tallytree.model.limits import MOST_GROUPS

BYTES_PER_CELL = 8
# Working space of an estimate beside its noisy values, in cells of the level being estimated:
# measured peaks, rounded up.
WORKING_CELLS = {"naive": 3.0, "sizes": 3.0, "cumulative": 0.5, "hybrid": 4.0, "chain": 5.0}
WORKING_CELLS |= {"bins": 24.0, "blocks": 24.0}
# The same of staircases: tables of all levels that are held, and of leaves in pieces what is kept
# of each.
HELD_CELLS, PIECES_CELLS = 25.0, 4.0
# Sizes that a staircase tells apart are known only after the first look; most data need fewer than
# this. Tables of regions × sizes never grow beyond half a GiB each.
STAIRCASE_SIZES = 64
MOST_STAIRCASE_CELLS = 1 << 26
# Leaves without attributes are estimated in pieces. However many there are, as many sizes as this
# are told apart, as long as tables of the regions above them stay below a quarter of a GiB each.
LEAST_STAIRCASE_SIZES = 74
MOST_HELD_CELLS = 1 << 25


def most_sizes(lattice: Lattice) -> int:
    """How many sizes a staircase may tell apart, for the sake of memory and time."""
    hierarchy = lattice.hierarchy
    fitting = MOST_STAIRCASE_CELLS // max(hierarchy.n_regions, lattice.n_rows(lattice.finest))
    if lattice.attributes:
        return fitting
    held = max(1, hierarchy.n_regions - hierarchy.n_leaves)
    return max(fitting, min(LEAST_STAIRCASE_SIZES, MOST_HELD_CELLS // held))


def cells_per_level(plan: Plan, facts: PublicFacts, n_groups: IntArray) -> list[int]:
    """Noisy numbers that each level will take; ``n_groups`` holds the public number of groups of
    every region.

    Where the largest size is yet to be measured, the views that depend on it count as one cell per
    region. Which levels ``adaptive`` measures it chooses after the first look; all of them count.
    """
    cells = []
    for level in plan.levels:
        here = n_groups[facts.hierarchy.level_slice(level.level)]
        if level.by:  # of tables by attributes the number of rows is enough
            here = np.repeat(here, facts.lattice.n_cells(level.family))
        counts = level.query is not None or level.view == "staircase"
        cells.append(_cells(level, here, plan.max_size or 1) if counts else 0)
    return cells


def _cells(level: LevelPlan, n_groups: IntArray, max_size: int) -> int:
    match level.view:
        case "naive" | "chain":
            return len(n_groups) * (max_size + 1)
        case "cumulative":
            return len(n_groups) * max_size
        case "sizes":
            return int(n_groups.sum())
        case "staircase":
            # Blocks widen with the size they begin at, so that twice the groups take one block
            # more, with its end.
            return int((12 + 2 * np.log2(1 + n_groups)).sum())
        case "bins" | "blocks":
            return min(len(n_groups) * STAIRCASE_SIZES, MOST_STAIRCASE_CELLS)
        case "hybrid":
            assert level.query is not None
            std = level.query.noise.std
            # The data may have any number of groups above the thresholds: all that may be listed
            # count.
            tail = most_listed(n_groups, int(n_groups.sum()))
            return int(hybrid_thresholds(n_groups, std).sum() + tail.sum())
        case "people":
            raise ValueError(
                "people are counted in tables of their own, beside the levels of sizes"
            )


def predicted_bytes(plan: Plan, cells: Sequence[int]) -> int:
    """Peak memory: all noisy values, and the working space of the level that needs most, or of all
    that are held.
    """
    if plan.levels[-1].view == "staircase":
        held, leaves = (cells, 0) if plan.levels[-1].by else (cells[:-1], cells[-1])
        working = min(HELD_CELLS * sum(held), 16.0 * MOST_STAIRCASE_CELLS) + PIECES_CELLS * leaves
    else:
        working = max(
            WORKING_CELLS[level.view] * n_cells for level, n_cells in zip(plan.levels, cells)
        )
    return int(BYTES_PER_CELL * (sum(cells) + working))


def available_memory() -> int:
    """Bytes that this process may still take: what the machine has free, or the limit of its
    control group if lower.
    """
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        facts = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        free = int(facts.get("MemAvailable", facts["MemTotal"]).split()[0]) * 1024
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and limit.read_text().strip().isdigit():
        free = min(free, int(limit.read_text()))
    return free


def check_memory(plan: Plan, cells: Sequence[int], available: int | None = None) -> None:
    """Refuse a plan whose predicted memory exceeds what is available."""
    available = available_memory() if available is None else available
    needed = predicted_bytes(plan, cells)
    if needed <= available:
        return
    worst, most = max(zip(plan.levels, cells), key=lambda pair: pair[1])
    raise RequestError(
        f"This release would need about {needed / 1e9:,.1f} GB of memory, mostly for view "
        f"{worst.view!r} at level "
        f"{worst.name!r} with {most:,} numbers to measure; {available / 1e9:,.1f} GB are free. "
        f"{_advice(worst)} Nothing was measured and no budget was spent."
    )


def most_groups(plan: Plan) -> int:
    """How many groups a plan takes where their number is not public: as many as fit, where each is
    a number to measure.
    """
    if all(level.view != "sizes" for level in plan.levels if level.query is not None):
        return MOST_GROUPS
    per_group = BYTES_PER_CELL * (len(plan.levels) + WORKING_CELLS["sizes"])
    return max(1, min(MOST_GROUPS, int(available_memory() / (2 * per_group))))


def _advice(level: LevelPlan) -> str:
    match level.view:
        case "naive" | "cumulative" | "chain":
            return "Take view 'hybrid' there, lower max_size, or use a larger machine or --engine spark."
        case _:
            return "Use a larger machine or --engine spark."

"""What a release of group sizes will take, from public facts alone: CPU time, memory and disk."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.group_sizes.plan.memory import (
    STAIRCASE_SIZES,
    cells_per_level,
    most_sizes,
    predicted_bytes,
)
from tallytree.group_sizes.plan.plan import Plan
from tallytree.model.arrays import IntArray
from tallytree.model.facts import PublicFacts

# The program with its libraries and compiled kernels, before it reads anything.
PROGRAM_BYTES = 300_000_000
# CPU time to load it, and to plan a split.
START_SECONDS = 1.0
# CPU time per number: of a staircase to estimate a cell of its tables, otherwise to measure and
# match it; then to write and to verify it. Measured on the country of
# docs/reference/experiments/scale.md, one core of 2.5 GHz.
SECONDS_PER_CELL = 2.5e-7
SECONDS_PER_NUMBER = 2.5e-7
SECONDS_TO_WRITE = 3.5e-7
# Bytes of a noisy or released number in Parquet, names of regions included.
BYTES_ON_DISK = 4.0
# Released rows of a region: half as many as it has noisy numbers, by the same country.
ROWS_PER_NUMBER = 0.5


@dataclass(frozen=True)
class Cost:
    """What a release will take.

    Attributes
    ----------
    cpu_seconds
        To measure, estimate, write and verify; reading the table comes on top, and cores share it.
    memory_bytes
        At the peak, what was read not included.
    disk_bytes
        The folder of the release, raw measurements included.
    """

    cpu_seconds: float
    memory_bytes: int
    disk_bytes: int

    def told(self) -> str:
        """The cost in words."""
        return (
            f"about {self.cpu_seconds:,.0f} s of CPU time, {self.memory_bytes / 1e6:,.0f} MB of "
            "memory and "
            f"{self.disk_bytes / 1e6:,.1f} MB on disk; reading comes on top"
        )


def predicted_cost(plan: Plan, facts: PublicFacts, n_groups: IntArray) -> Cost:
    """The cost of a plan; ``n_groups`` holds the number of groups of every region, public or
    assumed.
    """
    cells = cells_per_level(plan, facts, n_groups)
    numbers = sum(cells) * (1 + ROWS_PER_NUMBER)
    if plan.levels[-1].view == "staircase":
        lattice = facts.lattice
        n_sizes = min(STAIRCASE_SIZES, most_sizes(lattice))
        work = (
            SECONDS_PER_CELL * n_sizes * sum(lattice.n_rows(family) for family in lattice.families)
        )
    else:
        work = SECONDS_PER_NUMBER * sum(cells)
    seconds = START_SECONDS + work + SECONDS_TO_WRITE * numbers
    return Cost(seconds, PROGRAM_BYTES + predicted_bytes(plan, cells), int(BYTES_ON_DISK * numbers))

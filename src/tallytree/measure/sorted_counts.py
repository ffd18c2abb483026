"""Measuring an unattributed histogram: the sorted counts of all groups, with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.part import Part
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import Sensitivity


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialSizes:
    """Confidential: the counts of groups, or the degrees of nodes, whose identity does not matter.

    Attributes
    ----------
    counts
        Confidential: how many groups have each count; one region.
    query
        ``"sizes"`` of groups, or ``"edge degrees"`` where an edge changes two of them.
    sensitivity
        Of the sorted list.
    unit
        What is protected, in words.
    unit_column
        Name of the protected unit where it has several entities, otherwise empty.
    contributions, max_quantity
        Public bounds on the entities of a unit and on what one of them adds.
    note
        Why the number of groups counts as public, in words.
    unit_name, one_row
        What the unit is called, and whether it lies in one row of the table.
    part
        The rows that were read: those of one part, or all of them (None).
    """

    counts: CountsBySize
    query: Literal["sizes", "edge degrees"]
    sensitivity: Sensitivity
    unit: str
    note: str
    unit_column: str = ""
    contributions: int = 1
    max_quantity: int = 1
    unit_name: str = "row"
    one_row: bool = True
    part: Part | None = None

    def __repr__(self) -> str:
        return "ConfidentialSizes(values hidden)"


def measure_sorted_counts(sizes: ConfidentialSizes, noise: Noise, stream: KeyStream) -> IntArray:
    """The sorted query S (hay2010 §3) with noise: one value per group, in the true order."""
    exact = np.repeat(sizes.counts.size, sizes.counts.count)
    return add_noise(exact, noise, stream, level=0, query="sorted")

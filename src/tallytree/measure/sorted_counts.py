"""Measuring an unattributed histogram: the sorted counts of all groups, with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.model.confidential import UNALTERED, Altered, Confidential
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.part import Part
from tallytree.model.unit import Unit
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import Sensitivity

# A noisy number of groups is cut off here, so that no noise, however large, asks for more memory than there is.
MOST_GROUPS = 1 << 27


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialSizes(Confidential):
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
        What is protected.
    fixed
        What neighbours have in common, in words: how many groups or nodes there are.
    note
        Why the number of groups counts as public, in words.
    max_quantity
        Public bound on what one entity adds to the size of its group.
    part
        The rows that were read: those of one part, or all of them (None).
    number
        Sensitivity of how many groups or nodes there are, where that is confidential; None where it is public.
    altered
        Confidential: what was done to values outside public bounds.
    """

    counts: CountsBySize
    query: Literal["sizes", "edge degrees"]
    sensitivity: Sensitivity
    unit: Unit
    fixed: str | None
    note: str
    max_quantity: int = 1
    part: Part | None = None
    number: Sensitivity | None = None
    altered: Altered = UNALTERED

    @property
    def n_groups(self) -> int | None:
        """Public: how many groups or nodes there are; None where that is confidential."""
        return int(self.counts.count.sum()) if self.number is None else None


def measure_sorted_counts(
    sizes: ConfidentialSizes, noise: Noise, stream: KeyStream, of_number: Noise | None = None
) -> IntArray:
    """The sorted query S (hay2010 §3) with noise: one value per group, in the true order.

    With ``of_number`` the number of groups is measured first; then as many of the largest values are, filled up with zeros
    (hay2010 App. C, footnote 1).
    """
    exact = np.repeat(sizes.counts.size, sizes.counts.count)
    if of_number is not None:
        found = add_noise(np.array([len(exact)]), of_number, stream, level=0, query="number")
        n_groups = int(np.clip(found[0], 0, MOST_GROUPS))
        exact = np.concatenate(
            [
                np.zeros(max(0, n_groups - len(exact)), dtype=exact.dtype),
                exact[len(exact) - min(n_groups, len(exact)) :],
            ]
        )
    return add_noise(exact, noise, stream, level=0, query="sorted")

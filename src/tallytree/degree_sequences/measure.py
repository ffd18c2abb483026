"""Measuring an unattributed histogram: the sorted counts of all groups, with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tallytree.degree_sequences.release import PublicSizes
from tallytree.errors import InputError
from tallytree.kernels.queries import largest_sizes
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import UNALTERED, Altered, Confidential, Fact
from tallytree.model.count_of_counts import CountsBySize
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import Sensitivity

MOST_SORTED = 1 << 27
"""Counts in a sorted list: more public ones are refused, and a noisy number of them is cut off here."""


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
    public
        What may be said about them.
    number
        Sensitivity of how many groups or nodes there are, where that is confidential; None where it
        is public.
    altered
        Confidential: what was done to values outside public bounds.
    """

    counts: CountsBySize
    query: Literal["sizes", "edge degrees"]
    sensitivity: Sensitivity
    public: PublicSizes
    number: Sensitivity | None = None
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        if (self.public.n_groups or 0) > MOST_SORTED:
            raise InputError(
                f"Sorted counts are released of at most {MOST_SORTED:,} groups. Say public='none' "
                "(--public "
                f"none), and the {MOST_SORTED:,} largest are released, or release the sizes of "
                "groups "
                "instead (tallytree release)."
            )

    def facts(self) -> Iterator[Fact]:
        """As in :class:`~tallytree.model.confidential.ExactValues`."""
        yield repr((self.query, self.public.unit, self.public.max_quantity))
        yield from self.counts.facts()


def measure_sorted_counts(
    sizes: ConfidentialSizes, noise: Noise, stream: KeyStream, of_number: Noise | None = None
) -> IntArray:
    """The sorted query S (hay2010 §3) with noise: one value per group, in the true order.

    With ``of_number`` the number of groups is measured first; then as many of the largest values
    are, filled up with zeros (hay2010 App. C, footnote 1).
    """
    n_groups = int(sizes.counts.count.sum())
    if of_number is not None:
        found = add_noise(np.array([n_groups]), of_number, stream, level=0, query="number")
        n_groups = int(np.clip(found[0], 0, MOST_SORTED))
    exact = largest_sizes(sizes.counts, np.array([n_groups]), np.zeros(1, dtype=np.int64))[0]
    return add_noise(exact, noise, stream, level=0, query="sorted")

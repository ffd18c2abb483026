"""Measuring an unattributed histogram: the sorted counts of all groups, with noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tallytree.degree_sequences.release import PublicSizes
from tallytree.errors import InputError, RequestError
from tallytree.ingest.binning import check_counts
from tallytree.kernels.queries import largest_sizes
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import (
    UNALTERED,
    Altered,
    Confidential,
    ConfidentialCounts,
    ConfidentialDegrees,
    Fact,
)
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.unit import ENTITY, Unit
from tallytree.privacy.noise import Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import (
    Sensitivity,
    edge_degrees_sensitivity,
    edge_nodes_sensitivity,
    group_totals_sensitivity,
    sizes_sensitivity,
)

FIXED_GROUPS = "how many groups there are"
FIXED_NODES = "how many nodes there are"
PRIVATE = "how many there are is confidential; as many counts are released as a noisy number says"

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


def confidential_sizes(
    source: Any, contributions: int, *, private: bool = False
) -> ConfidentialSizes:
    """Sorted counts of any source, with their sensitivity and what is protected; ``private`` where
    their number is.
    """
    if isinstance(source, ConfidentialDegrees):
        bound = (sizes_sensitivity if source.directed else edge_degrees_sensitivity)(
            contributions=contributions
        )
        query: Literal["sizes", "edge degrees"] = "sizes" if source.directed else "edge degrees"
        # Edges listed again count once, so that one edge may have several rows.
        unit = Unit("edge", "", contributions, one_row=False)
        if private:
            number = edge_nodes_sensitivity(contributions=contributions)
            public = PublicSizes(unit, None, None, PRIVATE, part=source.part)
            return ConfidentialSizes(source.counts, query, bound, public, number)
        n_nodes = int(source.counts.count.sum())
        public = PublicSizes(unit, FIXED_NODES, n_nodes, source.nodes_note, part=source.part)
        return ConfidentialSizes(source.counts, query, bound, public)
    if isinstance(source, ConfidentialCounts):
        if source.public.classes is not None:
            raise RequestError("Degrees are sizes themselves; read the counts without classes=.")
        if source.public.unit.group:
            raise RequestError(
                "Degrees protect entities, and a group of any size would change them by its size. "
                "Read the counts without "
                "unit='group', or release them with tallytree.release."
            )
        unit = source.public.unit
        if unit.column and contributions not in (1, unit.contributions):
            raise RequestError(
                f"The counts were read with at most {unit.contributions} rows per {unit.column}; "
                "leave contributions out."
            )
        unit = unit if unit.column else replace(unit, contributions=contributions)
        bound = sizes_sensitivity(
            max_quantity=source.public.max_quantity, contributions=unit.contributions
        )
        sizes = source.counts_on_levels.region(0)
        public = PublicSizes(
            unit,
            FIXED_GROUPS,
            int(sizes.count.sum()),
            source.public.groups_note,
            source.public.max_quantity,
            source.public.part,
            source.public.alone,
        )
        if source.public.groups_public:
            return ConfidentialSizes(sizes, "sizes", bound, public, altered=source.altered)
        number = group_totals_sensitivity(contributions=unit.contributions)
        public = replace(public, fixed=None, n_groups=None, note=PRIVATE, alone="")
        return ConfidentialSizes(sizes, "sizes", bound, public, number, source.altered)
    counts = check_counts(source)
    if counts.ndim != 1:
        raise InputError(f"Counts of groups have one dimension, got {counts.ndim}.")
    runs = counts_from_runs(np.zeros_like(counts), counts, np.ones_like(counts), 1)
    bound = sizes_sensitivity(contributions=contributions)
    unit = Unit(ENTITY, "", contributions)
    public = PublicSizes(unit, FIXED_GROUPS, len(counts), "one count per group was given")
    return ConfidentialSizes(runs, "sizes", bound, public)

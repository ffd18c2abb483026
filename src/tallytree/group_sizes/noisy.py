"""What leaves the confidential side: noisy integers, with the noise that was added to them, and the
numbers of groups that every later step keeps to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tallytree.model.arrays import IntArray, offsets_from_lengths, runs_at
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Family, Lattice
from tallytree.privacy.noise import Noise

# The name of the query about numbers of groups, where they are not public.
TOTALS = "groups"


@dataclass(frozen=True, eq=False)
class NoisyQuery:
    """Noisy answers of one query family on one level; region ``r`` owns
    ``values[offsets[r]:offsets[r + 1]]``.
    """

    name: str
    noise: Noise
    offsets: IntArray
    values: IntArray

    def __post_init__(self) -> None:
        self.offsets.setflags(write=False)
        self.values.setflags(write=False)

    def at(self, regions: IntArray) -> NoisyQuery:
        """The answers of some regions, in this order."""
        offsets, places = runs_at(self.offsets, regions)
        return replace(self, offsets=offsets, values=self.values[places])

    def piece(self, regions: slice) -> NoisyQuery:
        """The answers of consecutive regions."""
        offsets = self.offsets[regions.start : regions.stop + 1]
        return replace(
            self, offsets=offsets - offsets[0], values=self.values[offsets[0] : offsets[-1]]
        )


def joined_queries(parts: Sequence[NoisyQuery]) -> NoisyQuery:
    """The answers of the regions of all parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    return replace(
        parts[0],
        offsets=offsets_from_lengths(lengths),
        values=np.concatenate([q.values for q in parts]),
    )


@dataclass(frozen=True, eq=False)
class NoisyLevel:
    """All noisy answers of one level, by some attributes of groups: a region is then one with a
    combination of values.
    """

    level: int
    queries: tuple[NoisyQuery, ...]
    by: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> NoisyQuery:
        for query in self.queries:
            if query.name == name:
                return query
        raise KeyError(name)

    def at(self, regions: IntArray) -> NoisyLevel:
        """The answers of some regions, in this order."""
        return replace(self, queries=tuple(query.at(regions) for query in self.queries))

    def piece(self, regions: slice) -> NoisyLevel:
        """The answers of consecutive regions."""
        return replace(self, queries=tuple(query.piece(regions) for query in self.queries))


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """All measurements of a release.

    ``n_groups`` holds the number of groups per region that every later step keeps to: the public
    one, or the one estimated from noisy totals. ``cell_groups`` the same per leaf and combination
    of values, where groups have attributes. ``people`` holds the measured tables of entities by
    class, ``totals`` the noisy numbers of groups as they were measured, where they are not public.
    """

    n_groups: IntArray
    levels: tuple[NoisyLevel, ...]
    cell_groups: IntArray | None = None
    people: tuple[NoisyLevel, ...] = ()
    totals: tuple[NoisyLevel, ...] = ()


@dataclass(frozen=True, eq=False)
class Groups:
    """Numbers of groups of every region, and where groups have attributes of every combination of
    values of every leaf. ``noisy_totals`` are what the first follow from, where they are not public.
    """

    lattice: Lattice
    n_groups: IntArray
    cell_groups: IntArray | None
    noisy_totals: tuple[NoisyLevel, ...] = ()

    def of(self, family: Family) -> IntArray:
        """Numbers of groups of the rows of a family."""
        if self.cell_groups is None:
            return self.n_groups[self.lattice.hierarchy.level_slice(family.level)]
        return self.lattice.sums(family, self.cell_groups)

    def answered(self, levels: Sequence[NoisyLevel]) -> NoisyCounts:
        """These groups with the answers of all levels."""
        return NoisyCounts(self.n_groups, tuple(levels), self.cell_groups, totals=self.noisy_totals)


def totals_by_level(
    hierarchy: Hierarchy, noises: Sequence[Noise], noisy: IntArray
) -> tuple[NoisyLevel, ...]:
    """Noisy numbers of groups of all regions as the answers of each level, one per region."""
    found = []
    for level, noise in enumerate(noises):
        values = noisy[hierarchy.level_slice(level)]
        answers = NoisyQuery(TOTALS, noise, np.arange(len(values) + 1), values)
        found.append(NoisyLevel(level, (answers,)))
    return tuple(found)

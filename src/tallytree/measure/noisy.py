"""What leaves the confidential side: noisy integers, with the noise that was added to them."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.model.arrays import IntArray, read_only
from tallytree.privacy.noise import Noise


@dataclass(frozen=True, eq=False)
class NoisyQuery:
    """Noisy answers of one query family on one level; region ``r`` owns ``values[offsets[r]:offsets[r + 1]]``."""

    name: str
    noise: Noise
    offsets: IntArray
    values: IntArray

    def __post_init__(self) -> None:
        read_only(self.offsets)
        read_only(self.values)


@dataclass(frozen=True, eq=False)
class NoisyLevel:
    """All noisy answers of one level, by some attributes of groups: a region is then one with a combination of values."""

    level: int
    queries: tuple[NoisyQuery, ...]
    by: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> NoisyQuery:
        for query in self.queries:
            if query.name == name:
                return query
        raise KeyError(name)


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """All measurements of a release.

    ``n_groups`` holds the number of groups per region that every later step keeps to: the public one, or the one
    estimated from noisy totals. ``cell_groups`` the same per leaf and combination of values, where groups have attributes.
    ``people`` holds the measured tables of entities by class.
    """

    n_groups: IntArray
    levels: tuple[NoisyLevel, ...]
    cell_groups: IntArray | None = None
    people: tuple[NoisyLevel, ...] = ()

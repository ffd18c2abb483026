"""Upper ends for counts that were released as 0: one number for all that are alike, since such
counts are no rows of a table.

Two of them are alike when they are on the same level and their regions have about as many groups of
about that size: as many per size, to a factor of 2, in the place of the size and the two beside it;
or, where there are none, in the place and four to either side. A place is a single size up to 16,
and an eighth of an octave of sizes from there on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize

# Sizes that are places of their own, and places per octave above them.
_SINGLE, _PER_OCTAVE = 16, 8
N_PLACES = _SINGLE + _PER_OCTAVE * 60
"""More places than 64-bit sizes have."""
REACHES = (1, 4)
"""Places to either side that are looked at: first the nearer ones, then, where they are empty, the others too."""


def places_of(size: IntArray) -> IntArray:
    """Place of each size.

    Examples
    --------
    >>> places_of(np.array([0, 16, 17, 18, 32])).tolist()
    [0, 16, 16, 17, 24]
    """
    octaves = np.log2(np.maximum(size, _SINGLE) / _SINGLE)
    return np.minimum(size, _SINGLE) + np.floor(_PER_OCTAVE * octaves).astype(np.int64)


def first_sizes(n_places: int) -> FloatArray:
    """Smallest size of each place, and of the one behind the last."""
    place = np.arange(n_places + 1)
    return np.ceil(
        np.where(place <= _SINGLE, place, _SINGLE * 2.0 ** ((place - _SINGLE) / _PER_OCTAVE))
    )


def groups_per_size(counts: CountsBySize, places: IntArray, reach: int) -> FloatArray:
    """Groups per size around some places, one row per region: in each place and ``reach`` ones to
    either side.
    """
    n_places = int(places.max(initial=0)) + reach + 1
    place = places_of(counts.size)
    inside = place < n_places
    up_to = np.zeros((counts.n_regions, n_places + 1))
    np.add.at(up_to, (counts.region_of_run()[inside], place[inside] + 1), counts.count[inside])
    np.cumsum(up_to, axis=1, out=up_to)
    first, last = np.maximum(places - reach, 0), places + reach + 1
    sizes = first_sizes(n_places)
    return np.asarray((up_to[:, last] - up_to[:, first]) / (sizes[last] - sizes[first]))


@dataclass(frozen=True)
class ZeroEnds:
    """Upper ends of counts that were released as 0.

    Attributes
    ----------
    steps
        Per level and reach: ``(groups per size, upper end)``, each valid from so many groups per
        size on, the first from 0; that of the last reach also holds where no groups are within
        reach. Empty for releases that were saved without them.
    """

    steps: tuple[tuple[tuple[tuple[float, int], ...], ...], ...]

    def of(self, counts: CountsBySize, level: int, sizes: IntArray) -> IntArray:
        """Upper ends for sizes that regions of a level have no released groups of, one row per
        region of ``counts``.
        """
        places, back = np.unique(places_of(sizes), return_inverse=True)
        ends = np.zeros((counts.n_regions, len(places)), dtype=np.int64)
        unknown = np.ones(ends.shape, dtype=bool)
        for reach, steps in zip(REACHES, self.steps[level]):
            groups = groups_per_size(counts, places, reach)
            here = unknown & (groups > 0) if reach != REACHES[-1] else unknown
            least, high = (np.array(column) for column in zip(*steps))
            ends[here] = high[np.searchsorted(least, groups[here], side="right") - 1]
            unknown &= ~here
        return ends[:, back]

    def to_json(self) -> list[list[list[list[float]]]]:
        """JSON-ready steps per level and reach."""
        return [
            [[[least, high] for least, high in steps] for steps in reaches]
            for reaches in self.steps
        ]

    @staticmethod
    def from_json(facts: list[list[list[list[Any]]]]) -> ZeroEnds:
        """The same from a manifest."""
        levels = [
            [[(float(least), int(high)) for least, high in steps] for steps in reaches]
            for reaches in facts
        ]
        return ZeroEnds(tuple(tuple(tuple(steps) for steps in reaches) for reaches in levels))

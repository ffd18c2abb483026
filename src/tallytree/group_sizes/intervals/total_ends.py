"""How far the number of entities of a region may be from the true one: one pair of ends for all
regions of a level with about as many groups.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TotalEnds:
    """Ends of intervals of numbers of entities.

    Attributes
    ----------
    steps
        Per level ``(groups, low, high)``, each valid from so many groups on, the first from 0: the
        true number less the released one lies between ``low`` and ``high`` as often as the
        intervals say. Empty where it is not known.
    """

    steps: tuple[tuple[tuple[int, int, int], ...], ...] = ()

    def of(self, level: int, groups: int) -> tuple[int, int] | None:
        """The ends for a region of a level with so many groups; None where they are not known.

        Examples
        --------
        >>> TotalEnds((((0, -3, 4), (100, -9, 8)),)).of(0, 120)
        (-9, 8)
        """
        if not self.steps:
            return None
        here = self.steps[level]
        _, low, high = here[max(bisect_right([least for least, _, _ in here], groups) - 1, 0)]
        return low, high

    def to_json(self) -> list[list[list[int]]]:
        """JSON-ready steps per level."""
        return [[list(step) for step in steps] for steps in self.steps]

    @staticmethod
    def from_json(facts: list[list[list[Any]]]) -> TotalEnds:
        """The same from a manifest."""
        return TotalEnds(
            tuple(tuple((int(a), int(b), int(c)) for a, b, c in steps) for steps in facts)
        )


NO_ENDS = TotalEnds()
"""Of releases in classes, and of those that were saved before these ends were kept."""

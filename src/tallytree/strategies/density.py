"""Whether bins hold enough for noise of their own (slides, "Histogram Publishing": an average bin
count of at least 5/ε).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

# The slides' rule, and how many times below it users are told that bins are far too fine.
LEAST_COUNT = 5.0
FAR = 10.0


@dataclass(frozen=True)
class Density:
    """The average count of a bin beside the count from which on a flat histogram is worth its
    noise.

    Attributes
    ----------
    average
        Entities per bin.
    least
        5/ε; for other noise than Laplace's, the same multiple of its standard deviation.

    Examples
    --------
    >>> Density.of(total=2000, n_bins=1000, variance=2 / 0.1**2)
    Density(average=2.0, least=50.0)
    """

    average: float
    least: float

    @classmethod
    def of(cls, total: float, n_bins: int, variance: float) -> Density:
        """The density of ``n_bins`` bins with noise of this variance each; a negative total counts
        as 0.
        """
        return cls(max(total, 0.0) / n_bins, LEAST_COUNT * math.sqrt(variance / 2))

    @property
    def dense(self) -> bool:
        """Whether every bin may well be measured by itself."""
        return self.average >= self.least

    @property
    def far_too_fine(self) -> bool:
        """Whether bins hold less than a tenth of what the rule asks for."""
        return FAR * self.average < self.least

    def __str__(self) -> str:
        counts = f"A bin holds {self.average:.3g} on average; measured by itself it should hold {self.least:.3g} (5/ε)"
        if not self.far_too_fine:
            return f"{counts}."
        return f"{counts}: bins are far too fine for a flat histogram. Take fewer, or another mechanism."

    def to_json(self) -> dict[str, Any]:
        """The density as JSON-ready facts."""
        return {"average_count": self.average, "least_count": self.least, "dense": self.dense}

"""The confidential arrivals of a stream, kept apart from everything that may be shown or saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.confidential import UNALTERED, Altered, Confidential, Fact
from tallytree.model.part import Part
from tallytree.model.unit import ONE_ROW, Unit


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialArrivals(Confidential):
    """Exact numbers of arrivals per step, of all steps so far. Only
    :mod:`tallytree.streams.measure` looks inside.

    Attributes
    ----------
    counts
        Confidential: how many entities came in each step. How many steps there are is public.
    unit
        What is protected.
    part
        The rows that were read: those of one part, or all of them (None).
    note
        Which rows count; goes into the manifest.
    altered
        Confidential: how many do not.
    """

    counts: IntArray
    note: str = "arrivals were given"
    unit: Unit = ONE_ROW
    part: Part | None = None
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        if self.counts.ndim != 1 or self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise InputError("Arrivals are one whole number of at least 0 per step.")
        read_only(self.counts)

    @property
    def n_steps(self) -> int:
        """How many steps are over."""
        return len(self.counts)

    def up_to(self, n_steps: int) -> ConfidentialArrivals:
        """The arrivals of the first steps alone."""
        return replace(self, counts=self.counts[:n_steps])

    def facts(self) -> Iterator[Fact]:
        """As in :class:`~tallytree.model.confidential.ExactValues`."""
        yield repr(self.unit)
        yield self.counts

    def _shown(self) -> str:
        return f"{self.n_steps:,} steps"

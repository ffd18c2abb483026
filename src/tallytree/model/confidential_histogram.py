"""The confidential counts of a histogram, kept apart from everything that may be shown or saved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.bins import Bins
from tallytree.model.confidential import UNALTERED, Altered, Confidential, Fact
from tallytree.model.limits import saturated
from tallytree.model.part import Part
from tallytree.model.unit import ONE_ROW, Unit


@dataclass(frozen=True)
class PublicHistogram:
    """What is public about a histogram beyond its bins, which its manifest says.

    Attributes
    ----------
    note
        What was done to values outside the bins.
    unit
        What is protected.
    part
        The rows that were read: those of one part, or all of them (None).
    """

    note: str = "no value lies outside the bins"
    unit: Unit = ONE_ROW
    part: Part | None = None


NOTHING_OUTSIDE = PublicHistogram()


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialHistogram(Confidential):
    """Exact counts per bin, in one or more dimensions. Only :mod:`tallytree.ranges.measure` looks
    inside.

    Attributes
    ----------
    axes
        Public: the bins of each dimension.
    counts
        Confidential: how many entities lie in each bin, one dimension per axis.
    public
        What may be said about them.
    altered
        Confidential: how many values outside the bins something was done to.
    """

    axes: tuple[Bins, ...]
    counts: IntArray
    public: PublicHistogram = NOTHING_OUTSIDE
    altered: Altered = UNALTERED

    def __post_init__(self) -> None:
        if not self.axes or self.counts.shape != tuple(axis.n_bins for axis in self.axes):
            raise InputError(
                "A histogram needs as many counts as bins, in as many dimensions as axes."
            )
        if self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise InputError("Counts of a histogram are whole numbers of at least 0.")
        object.__setattr__(self, "counts", read_only(saturated(self.counts)))

    def facts(self) -> Iterator[Fact]:
        """As in :class:`~tallytree.model.confidential.ExactValues`."""
        yield repr(([axis.spelled for axis in self.axes], self.public.unit))
        yield self.counts

    def _shown(self) -> str:
        return f"{', '.join(map(repr, self.axes))}"

"""The confidential counts of a histogram, kept apart from everything that may be shown or saved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.bins import Bins
from tallytree.model.part import Part


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialHistogram:
    """Exact counts per bin, in one or more dimensions. Only :mod:`tallytree.measure` looks inside.

    Attributes
    ----------
    axes
        Public: the bins of each dimension.
    counts
        Confidential: how many entities lie in each bin, one dimension per axis.
    entity
        What one entity is called, for the privacy statement.
    contributions
        Public bound on how many entities one protected unit has.
    unit
        The column that names the protected unit where its rows were bounded while reading; otherwise empty.
    note
        What was done to values outside the bins; goes into the manifest.
    part
        The rows that were read: those of one part, or all of them (None).
    """

    axes: tuple[Bins, ...]
    counts: IntArray
    entity: str = "row"
    contributions: int = 1
    note: str = "no value lies outside the bins"
    unit: str = ""
    part: Part | None = None

    def __post_init__(self) -> None:
        if not self.axes or self.counts.shape != tuple(axis.n_bins for axis in self.axes):
            raise InputError("A histogram needs as many counts as bins, in as many dimensions as axes.")
        if self.counts.dtype != np.int64 or np.any(self.counts < 0):
            raise InputError("Counts of a histogram are whole numbers of at least 0.")
        if self.contributions < 1:
            raise InputError("contributions must be at least 1.")
        read_only(self.counts)

    def __repr__(self) -> str:
        return f"ConfidentialHistogram({', '.join(map(repr, self.axes))}, values hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("Confidential counts cannot be pickled; release them first.")

"""A released map: counts of boxes that answer any box query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tallytree.boxes.answers import MapAnswer, MapAnswers, MapSurface, boxes_in_cells, interpolate
from tallytree.boxes.checks import check_map
from tallytree.boxes.draft import Measurement
from tallytree.boxes.estimates import MapEstimates
from tallytree.boxes.intervals import BoxLaw
from tallytree.boxes.manifest import KIND, UNIFORMITY
from tallytree.boxes.methods import method_named
from tallytree.boxes.picture import save_picture
from tallytree.boxes.tables import (
    axes_of_folder,
    axes_tables,
    boxes_table,
    estimates_from_table,
    measurements_from_table,
    noisy_table,
)
from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.model.bins import Bins
from tallytree.model.frame import Box, Frame
from tallytree.model.notebook import html_table
from tallytree.options.text import value_range
from tallytree.privacy.budget import Budget, noise_for, written_fraction
from tallytree.privacy.guarantee import budget_of
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import histogram_sensitivity
from tallytree.releases.checks import Verification
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.density import Density
from tallytree.strategies.intervals import check_confidence


@dataclass(frozen=True, eq=False)
class SpatialRelease(Published):
    """Counts of boxes that tile a map, made to answer how many points lie in any box.

    Attributes
    ----------
    estimates
        The boxes with their unbiased and published counts.
    manifest
        Method, privacy, what is public: everything that ``manifest.json`` will hold.
    noisy
        The raw noisy counts, or None when they were left out.
    axes
        The bins of every column, where their edges were stated; None where the box is cut evenly.

    Examples
    --------
    >>> import numpy as np, tallytree as tt
    >>> points = np.random.default_rng(1).normal(0.5, 0.1, size=(10_000, 2))
    >>> city = tt.spatial(points, box=[(0, 1), (0, 1)], outside="clip", epsilon=1, insecure_seed=1)
    >>> answer = city.range([(0.4, 0.6), (0.4, 0.6)])
    >>> bool(abs(answer.estimate - 4660) < 500)
    True
    """

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "a map"
    answers: ClassVar[frozenset[str]] = frozenset({"ranges", "confidence"})

    estimates: MapEstimates
    manifest: Manifest
    noisy: tuple[Measurement, ...] | None = field(default=None, repr=False)
    axes: tuple[Bins, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the dimensions."""
        return tuple(self.manifest["columns"])

    @property
    def box(self) -> Box:
        """Lower and upper end of every dimension."""
        return tuple((float(low), float(high)) for low, high in self.manifest["box"])

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells of the fine grid per dimension."""
        return self.estimates.tree.shape

    @cached_property
    def frame(self) -> Frame:
        """Where the cells of the fine grid lie."""
        return Frame(self.box, self.shape, self.axes)

    @property
    def note(self) -> str:
        """How parts of boxes are answered, and what standard errors include."""
        return UNIFORMITY

    @property
    def density(self) -> Density | None:
        """The average count of a cell beside what a flat map needs; None for other mechanisms. From
        noisy counts.
        """
        if self.mechanism != "flat":
            return None
        (variance,) = noise_variances(self.manifest).values()
        return Density.of(float(self.estimates.unbiased[0]), math.prod(self.shape), variance)

    @cached_property
    def surface(self) -> MapSurface:
        """The counts spread over the fine grid."""
        return MapSurface(self.estimates, self._law)

    @property
    def _law(self) -> BoxLaw | None:
        """The law of errors of whole boxes, where the boxes do not follow from noisy counts."""
        pruned = self.manifest["mechanism"]["prune"] is not None
        if pruned or not method_named(self.mechanism).exact_errors:
            return None
        return BoxLaw(
            self.estimates.tree,
            self.estimates.variances,
            tuple(noise_by_share(self.manifest).values()),
        )

    def range(self, box: Sequence[Sequence[object]], *, confidence: float = 0.95) -> MapAnswer:
        """How many points lie in a box, given as one pair (low, high) per column; of categories
        both are included.
        """
        return self.ranges([box], confidence=confidence)[0]

    def ranges(
        self, boxes: Sequence[Sequence[Sequence[object]]] | FloatArray, *, confidence: float = 0.95
    ) -> MapAnswers:
        """Many boxes at once: a list of boxes, or an array of shape (boxes, columns, 2)."""
        first, last = boxes_in_cells(boxes, self.frame)
        estimate = self.surface.answer(first, last)
        return MapAnswers(self.surface, first, last, estimate, check_confidence(confidence))

    def total(self, *, confidence: float = 0.95) -> MapAnswer:
        """How many points there are."""
        corners = np.zeros((1, len(self.shape))), np.array([self.shape], dtype=np.float64)
        return MapAnswers(
            self.surface, *corners, self.surface.answer(*corners), check_confidence(confidence)
        )[0]

    def grid(self, resolution: int | Sequence[int]) -> FloatArray:
        """Published counts on a regular grid with so many cells per column, whatever boxes were
        counted.
        """
        cells = (
            (resolution,) * len(self.shape) if isinstance(resolution, int) else tuple(resolution)
        )
        if len(cells) != len(self.shape) or min(cells) < 1 or math.prod(cells) > 1 << 26:
            raise RequestError(
                f"A grid has at least one cell per column, {1 << 26:,} at most in all; got {cells}."
            )
        lines = [np.arange(n + 1) * (extent / n) for n, extent in zip(cells, self.shape)]
        corners = np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")], axis=1)
        sums = interpolate(self.surface.sums, corners).reshape([n + 1 for n in cells])
        for axis in range(sums.ndim):
            sums = np.diff(sums, axis=axis)
        return sums

    def table(self) -> pa.Table:
        """The boxes as an Arrow table: node, parent, depth, leaf, low and high per column, count,
        estimate, variance.
        """
        return boxes_table(self.estimates, self.columns, self.frame)

    def picture(self, path: str | Path, *, size: int = 768) -> Path:
        """Save a map picture (PNG): darker is denser, on a logarithmic scale."""
        return save_picture(self.surface.density, path, size=size)

    def verify(self) -> Verification:
        """Check that boxes tile the map, that counts add up and follow from the raw measurements,
        and what they cost.
        """
        return check_map(self.estimates, self.manifest, self.noisy)

    def _reply(self, question: Question) -> Reply:
        """Boxes; without a question, the whole map's total."""
        confidence = 0.95 if question.confidence is None else question.confidence
        columns = ("box", "estimate", "std_error", "by_area", "low", "high")
        found = [
            (
                text,
                self.range([value_range(side) for side in text.split(",")], confidence=confidence),
            )
            for text in question.ranges
        ] or [("everything", self.total(confidence=confidence))]
        rows = [[text, *(getattr(answer, name) for name in columns[1:])] for text, answer in found]
        facts = {
            "note": self.note,
            "confidence": confidence,
            "answers": [dict(zip(columns, row)) for row in rows],
        }
        return Reply("boxes", columns, rows, facts, note=self.note)

    def tables(self, *, noisy: bool) -> dict[str, pa.Table]:
        """Boxes and the raw measurements."""
        tables = {"counts.parquet": self.table(), **axes_tables(self.axes)}
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = noisy_table(self.noisy)
        return tables

    def __repr__(self) -> str:
        return self._described(f"{' x '.join(self.columns)}, {self.estimates.leaves.sum():,} boxes")

    def _repr_html_(self) -> str:
        rows = [
            [name, low, high, cells]
            for name, (low, high), cells in zip(self.columns, self.box, self.shape)
        ]
        caption = f"Map of {int(self.estimates.leaves.sum()):,} boxes, {self.mechanism}"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, ["column", "from", "to", "cells"], rows, note=note)


def load_map(folder: Folder) -> SpatialRelease:
    """The map of a folder, with its raw measurements where they were saved."""
    manifest = folder.manifest
    # A histogram holds its bins in counts.parquet, and the boxes behind them apart.
    boxes = folder.table("boxes.parquet" if folder.has("boxes.parquet") else "counts.parquet")
    estimates = estimates_from_table(boxes, manifest["columns"], tuple(manifest["resolution"]))
    noisy = None
    if folder.has("noisy.parquet"):
        noisy = measurements_from_table(folder.table("noisy.parquet"), noise_variances(manifest))
    return SpatialRelease(estimates, manifest, noisy, axes_of_folder(folder))


def noise_variances(manifest: Manifest) -> dict[str, float]:
    """Noise variance by share."""
    return {share: noise.variance for share, noise in noise_by_share(manifest).items()}


def noise_by_share(manifest: Manifest) -> dict[str, Noise]:
    """Noise by share, worked out anew from budget and sensitivity."""
    budget = budget_of(manifest["privacy"])
    bound = histogram_sensitivity(contributions=int(manifest["privacy"]["unit"]["contributions"]))
    shares = {step["share"] for step in manifest["privacy"]["steps"] if "noise" in step}
    return {
        share: noise_for(Budget(budget.definition, budget.total * written_fraction(share)), bound)
        for share in sorted(shares)
    }

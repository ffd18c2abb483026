"""A released map: counts of boxes that answer any box query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray
from tallytree.model.confidential_grid import Box
from tallytree.model.notebook import html_table
from tallytree.release.checks import Verification
from tallytree.release.spatial_checks import check_map
from tallytree.release.spatial_tables import boxes_table, noisy_table
from tallytree.spatial.answers import MapAnswer, MapAnswers, MapSurface, boxes_in_cells, interpolate
from tallytree.spatial.draft import Measurement
from tallytree.spatial.estimates import MapEstimates
from tallytree.spatial.picture import save_picture
from tallytree.storage.folder import Manifest, write_folder


@dataclass(frozen=True, eq=False)
class SpatialRelease:
    """Counts of boxes that tile a map, made to answer how many points lie in any box.

    Attributes
    ----------
    estimates
        The boxes with their unbiased and published counts.
    manifest
        Method, privacy, what is public: everything that ``manifest.json`` will hold.
    measurements
        The raw noisy counts, or None when they were left out.

    Examples
    --------
    >>> import numpy as np, tallytree as tt
    >>> points = np.random.default_rng(1).normal(0.5, 0.1, size=(10_000, 2))
    >>> city = tt.spatial(points, box=[(0, 1), (0, 1)], outside="clip", epsilon=1, insecure_seed=1)
    >>> answer = city.range([(0.4, 0.6), (0.4, 0.6)])
    >>> bool(abs(answer.estimate - 4660) < 500)
    True
    """

    estimates: MapEstimates
    manifest: Manifest
    measurements: tuple[Measurement, ...] | None = field(default=None, repr=False)

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness; False for experiments with ``insecure_seed``."""
        return bool(self.manifest["privacy"]["private"])

    @property
    def method(self) -> str:
        """The method used."""
        return str(self.manifest["method"]["name"])

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

    @property
    def note(self) -> str:
        """How parts of boxes are answered, and what standard errors leave out."""
        return str(self.manifest["uniformity"])

    @cached_property
    def surface(self) -> MapSurface:
        """The counts spread over the fine grid."""
        return MapSurface(self.estimates)

    def range(self, box: Sequence[Sequence[float]]) -> MapAnswer:
        """How many points lie in a box, given as one pair (low, high) per column."""
        return self.ranges([box])[0]

    def ranges(self, boxes: Sequence[Sequence[Sequence[float]]] | FloatArray) -> MapAnswers:
        """Many boxes at once: a list of boxes, or an array of shape (boxes, columns, 2)."""
        low, high = boxes_in_cells(boxes, self.box, self.shape)
        return MapAnswers(self.surface, low, high, self.surface.answer(low, high))

    def total(self) -> MapAnswer:
        """How many points there are."""
        return self.range(self.box)

    def grid(self, resolution: int | Sequence[int]) -> FloatArray:
        """Published counts on a regular grid with so many cells per column, whatever boxes were counted."""
        cells = (resolution,) * len(self.shape) if isinstance(resolution, int) else tuple(resolution)
        if len(cells) != len(self.shape) or min(cells) < 1 or math.prod(cells) > 1 << 26:
            raise RequestError(f"A grid has at least one cell per column, {1 << 26:,} at most in all; got {cells}.")
        lines = [np.arange(n + 1) * (extent / n) for n, extent in zip(cells, self.shape)]
        corners = np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")], axis=1)
        sums = interpolate(self.surface.sums, corners).reshape([n + 1 for n in cells])
        for axis in range(sums.ndim):
            sums = np.diff(sums, axis=axis)
        return sums

    def table(self) -> pa.Table:
        """The boxes as an Arrow table: node, parent, depth, leaf, low and high per column, count, estimate, standard_error."""
        return boxes_table(self.estimates, self.columns, self.box)

    def picture(self, path: str | Path, *, size: int = 768) -> Path:
        """Save a map picture (PNG): darker is denser, on a logarithmic scale."""
        return save_picture(self.surface.density, path, size=size)

    def verify(self) -> Verification:
        """Check that boxes tile the map, that counts add up and follow from the raw measurements, and what they cost."""
        return check_map(self.estimates, self.manifest, self.measurements)

    def save(self, path: str | Path, *, overwrite: bool = False, noisy: bool = True) -> Path:
        """Write the map as a folder; ``noisy=False`` leaves the raw measurements out."""
        tables: dict[str, pa.Table | pa.RecordBatchReader] = {"counts.parquet": self.table()}
        if noisy and self.measurements is not None:
            tables["noisy.parquet"] = noisy_table(self.measurements)
        return write_folder(path, tables, self.manifest, overwrite=overwrite)

    def __repr__(self) -> str:
        privacy = self.manifest["privacy"]
        loss = ", ".join(f"{name} = {privacy[name]}" for name in ("epsilon", "rho") if name in privacy)
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        return f"SpatialRelease({' x '.join(self.columns)}, {self.estimates.leaves.sum():,} boxes, {self.method}, {loss}{mark})"

    def _repr_html_(self) -> str:
        rows = [[name, low, high, cells] for name, (low, high), cells in zip(self.columns, self.box, self.shape)]
        caption = f"Map of {int(self.estimates.leaves.sum()):,} boxes, {self.method}"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, ["column", "from", "to", "cells"], rows, note=note)

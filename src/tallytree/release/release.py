"""A release of group sizes: tables that add up, with the manifest that says how they came about."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from tallytree.measure.noisy import NoisyCounts
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.notebook import html_table
from tallytree.release.checks import Check, Verification, check_counts
from tallytree.release.region import RegionCounts
from tallytree.release.tables import counts_reader, counts_table, noisy_reader, path_array, regions_reader
from tallytree.release.zero_cells import ZeroEnds
from tallytree.storage.folder import Manifest, write_folder


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Standard error and interval of every released count, run by run of the release; upper ends of counts that are 0."""

    confidence: float
    std_error: FloatArray
    low: IntArray
    high: IntArray
    zeros: ZeroEnds

    def __repr__(self) -> str:
        return f"CountIntervals({len(self.low):,} counts, confidence {self.confidence:g})"


@dataclass(frozen=True, eq=False)
class Release:
    """Released counts of groups by size for every region of a hierarchy.

    Attributes
    ----------
    hierarchy
        The regions.
    counts
        Released counts by size of every region, numbered as in the hierarchy.
    n_groups
        Number of groups of every region that the release keeps to.
    manifest
        Mechanism, privacy, what is public: everything that ``manifest.json`` will hold.
    noisy
        The raw measurements, or None when the release was loaded without them.
    intervals
        Standard errors and intervals of the counts, where they were asked for.
    """

    hierarchy: Hierarchy
    counts: CountsBySize
    n_groups: IntArray
    manifest: Manifest
    noisy: NoisyCounts | None = field(default=None, repr=False)
    intervals: CountIntervals | None = field(default=None, repr=False)

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness; False for experiments with ``insecure_seed``."""
        return bool(self.manifest["privacy"]["private"])

    def region(self, path: str) -> RegionCounts:
        """Counts of one region, by its path from the root (``"US/Georgia"``)."""
        index = self.hierarchy.find(path)
        counts = self.counts.region(index)
        return RegionCounts(self.hierarchy.paths[index], counts.size, counts.count)

    def table(self) -> pa.Table:
        """All counts as an Arrow table: level, region, size, count; rows with count 0 left out.

        With intervals, columns std_error, low and high follow.
        """
        table = counts_table(self.hierarchy, self.counts)
        for name, values in self._interval_columns().items():
            table = table.append_column(name, pa.array(values))
        return table

    def _interval_columns(self) -> dict[str, FloatArray | IntArray]:
        if self.intervals is None:
            return {}
        return {name: getattr(self.intervals, name) for name in ("std_error", "low", "high")}

    def verify(self) -> Verification:
        """Check integers, nonnegativity, group totals and tree sums."""
        whole = Check("counts are nonnegative integers", self.counts.count.dtype == np.int64)
        all_totals = self.manifest["totals"]["kept"] == "every region"
        return Verification((whole, *check_counts(self.hierarchy, self.counts, self.n_groups, all_totals=all_totals)))

    def save(self, path: str | Path, *, overwrite: bool = False, noisy: bool = True) -> Path:
        """Write the release as a folder; ``noisy=False`` leaves the raw measurements out."""
        paths = path_array(self.hierarchy)
        tables: dict[str, pa.Table | pa.RecordBatchReader] = {
            "counts.parquet": counts_reader(self.hierarchy, self.counts, paths, self._interval_columns()),
            "regions.parquet": regions_reader(self.hierarchy, self.n_groups, paths),
        }
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = noisy_reader(self.hierarchy, self.noisy, paths)
        facts: Manifest = {}
        if self.intervals is not None:
            zeros = self.intervals.zeros.to_json()
            facts = {"intervals": {"confidence": self.intervals.confidence, "zeros": zeros}}
        return write_folder(path, tables, {**self.manifest, **facts}, overwrite=overwrite)

    def __repr__(self) -> str:
        privacy = self.manifest["privacy"]
        loss = ", ".join(f"{name} = {privacy[name]}" for name in ("epsilon", "rho") if name in privacy)
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        return f"Release({self.hierarchy!r}, {self.manifest['mechanism']['name']}, {loss}{mark})"

    def _repr_html_(self) -> str:
        tree, facts = self.hierarchy, self.manifest["privacy"]["levels"]
        groups = [int(self.n_groups[tree.level_slice(level)].sum()) for level in range(tree.n_levels)]
        rows = [
            [name, tree.level_size(level), groups[level], facts[level]["view"], facts[level]["share"]]
            for level, name in enumerate(tree.level_names)
        ]
        columns = ["level", "regions", "groups", "view", "share of the budget"]
        caption = f"Release by {self.manifest['mechanism']['name']}"
        return html_table(caption, columns, rows, note=self.manifest["privacy"]["statement"])

"""A released table of values, and what may be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError, VerificationError
from tallytree.group_sizes.manifest import VALUES, attributes_of, scale_of
from tallytree.group_sizes.release.noisy_tables import noisy_reader
from tallytree.group_sizes.release.region import Interval
from tallytree.group_sizes.release.release import Release, with_margins
from tallytree.group_sizes.release.tables import counts_from_parts, regions_of_folder
from tallytree.group_sizes.values.statistics import QUANTILES, RegionValues, statistic_names
from tallytree.group_sizes.values.tables import (
    Statistics,
    in_steps,
    statistics_from_table,
    statistics_of_all,
    statistics_table,
    values_reader,
)
from tallytree.model.attributes import Attributes
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.notebook import html_table
from tallytree.model.scale import ValueScale
from tallytree.releases.checks import Check, Verification
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.releases.region_tables import path_array, regions_reader
from tallytree.storage.folder import Folder, Manifest

STATISTICS_FILE = "statistics.parquet"
# What checks of the counts are called where rows have values.
_CHECKS = {
    "group totals hold": "numbers of rows hold",
    "group totals by attributes hold": "numbers of rows by attributes hold",
}


@dataclass(frozen=True, eq=False)
class ValuesRelease(Published):
    """Released counts of rows by value for every region of a hierarchy, and their statistics.

    Attributes
    ----------
    in_steps
        The same counts by steps of the scale, as they were measured.
    statistics
        Sums, means, quantiles and the rest of every region and combination of values.
    manifest
        Mechanism, privacy, what is public: everything that ``manifest.json`` will hold.

    Examples
    --------
    >>> import pyarrow as pa
    >>> jobs = pa.table({"pay": [10, 20, 20, 55, 70], "state": ["GA", "GA", "GA", "NY", "NY"]})
    >>> pay = tt.values(jobs, value="pay", step=10, max=100, levels=["state"], epsilon=2)
    >>> pay.table().column_names
    ['level', 'region', 'value', 'count']
    >>> pay.statistics_table().column_names
    ['level', 'region', 'statistic', 'value', 'std_error', 'low', 'high']
    >>> bool(pay.verify())
    True
    """

    kind: ClassVar[str] = VALUES
    title: ClassVar[str] = "a table of values"
    answers: ClassVar[frozenset[str]] = frozenset(
        {
            "region",
            "where",
            "at_least",
            "between",
            "share",
            "quantile",
            "mean",
            "total",
            "confidence",
            "copies",
        }
    )

    in_steps: Release = field(repr=False)
    statistics: Statistics = field(repr=False)
    manifest: Manifest

    @cached_property
    def scale(self) -> ValueScale:
        """The public scale of values."""
        scale = scale_of(self.manifest)
        assert scale is not None
        return scale

    @property
    def hierarchy(self) -> Hierarchy:
        """The regions."""
        return self.in_steps.hierarchy

    @property
    def attributes(self) -> Attributes:
        """Attributes of rows, none by default."""
        return self.in_steps.attributes

    @property
    def lattice(self) -> Lattice:
        """All tables that levels and attributes make."""
        return self.in_steps.lattice

    @property
    def root(self) -> str:
        """Path of the root."""
        return self.in_steps.root

    def region(self, path: str, where: Sequence[str] = ()) -> RegionValues:
        """Counts by value of one region, by its path from the root, of rows with some values of
        attributes (``["sex=f"]``) or of all.
        """
        return self.regions([path], where)

    def regions(self, paths: Sequence[str], where: Sequence[str] = ()) -> RegionValues:
        """Counts of several regions together, none of which lies in another."""
        found = self.in_steps.regions(paths, where)
        return RegionValues(found.path, self.scale, found.size, found.count)

    def table(self, by: str | Sequence[str] = ()) -> pa.Table:
        """All counts as an Arrow table: level, region, value, count; rows with count 0 left out.
        ``by`` names attributes, which become columns after the region.
        """
        table = self.in_steps.table(by)
        values = pa.array(self.scale.values(table["size"].to_numpy()))
        return table.set_column(table.schema.get_field_index("size"), "value", values)

    def statistics_table(self) -> pa.Table:
        """Level, region, attributes, statistic, value, and where the release was simulated
        std_error, low and high; null stands for all values of an attribute, and for a statistic
        of no rows.
        """
        return statistics_table(self.lattice, self.statistics)

    def tables(self, *, noisy: bool) -> dict[str, pa.RecordBatchReader | pa.Table]:
        """Counts, statistics, regions and the raw measurements."""
        made, paths = self.in_steps, path_array(self.hierarchy)
        tables: dict[str, pa.RecordBatchReader | pa.Table] = {
            "counts.parquet": values_reader(self.lattice, made.all_counts, paths, self.scale),
            STATISTICS_FILE: self.statistics_table(),
            "regions.parquet": regions_reader(self.hierarchy, made.n_groups, "rows"),
        }
        if noisy and made.noisy is not None:
            tables["noisy.parquet"] = noisy_reader(self.lattice, made.noisy, paths)
        return tables

    def verify(self) -> Verification:
        """Check integers, nonnegativity and tree sums, and that statistics follow from counts."""
        checks = tuple(
            replace(check, name=_CHECKS.get(check.name, check.name))
            for check in self.in_steps.verify().checks
        )
        own = statistics_of_all(self.in_steps.all_counts, self.scale)
        same = np.allclose(own, self.statistics.value, rtol=1e-9, atol=0, equal_nan=True)
        return Verification((*checks, Check("statistics follow from the counts", bool(same))))

    def _reply(self, question: Question) -> Reply:
        return self.reply(question)

    def reply(self, question: Question, intervals: Mapping[str, Interval] | None = None) -> Reply:
        """Answers, with intervals by question where the release was simulated for them; without a
        question, the statistics of a region.
        """
        if (question.copies or question.confidence) and intervals is None:
            raise RequestError(
                "Intervals of questions need simulated copies of the release: use tallytree.ask("
                "release, copies=40, …)."
            )
        paths, region = question.paths(self.root), None
        region, asked = self.regions(paths, question.where), asked_by(question, self.scale)
        if not asked:
            return self._told(question, region)
        found = {words: one(region) for words, one in asked.items()}
        facts: dict[str, Any] = {"region": region.path, **found}
        rows = [[words, answer] for words, answer in found.items()]
        head = ("question", "answer")
        if intervals:
            rows = [
                [*row, ends.std_error, ends.low, ends.high]
                for row, ends in zip(rows, intervals.values())
            ]
            head = (*head, "std_error", "low", "high")  # type: ignore[assignment]
            facts["intervals"] = {words: vars(one) for words, one in intervals.items()}
        return Reply(region.path, head, rows, facts)

    def _told(self, question: Question, region: RegionValues) -> Reply:
        """The statistics of one region, with their intervals where there are some; of several
        together without.
        """
        paths = question.paths(self.root)
        if len(paths) == 1:
            rows = self.statistics.of_row(self.in_steps.row(paths[0], question.where))
            errors = tuple(self.statistics.errors)
        else:
            names = statistic_names(self.scale)
            counts = self.in_steps.regions(paths, question.where)
            own = RegionValues(counts.path, self.scale, counts.size, counts.count)
            rows, errors = [list(pair) for pair in zip(names, _values_of(own))], ()
        head = ("statistic", "value", *errors)
        facts = {"region": region.path, "statistics": [dict(zip(head, row)) for row in rows]}
        named = ", ".join([region.path, *question.where]) if question.where else region.path
        return Reply(f"{self.scale.name} in {named}", head, rows, facts)

    def saved_manifest(self) -> Manifest:
        """The manifest, and the confidence of the intervals where there are any."""
        if not self.statistics.errors:
            return self.manifest
        return {**self.manifest, "intervals": {"confidence": CONFIDENCE}}

    def __repr__(self) -> str:
        by = f" by {', '.join(self.attributes.names)}" if self.attributes else ""
        return self._described(f"{self.scale.name}, {self.hierarchy!r}{by}")

    def _repr_html_(self) -> str:
        rows = self.statistics.of_row(self.in_steps.row(self.root))
        head = ["statistic", "value", *self.statistics.errors]
        caption = f"{self.scale.name} in {self.root}"
        return html_table(caption, head, rows, note=self.manifest["privacy"]["statement"])


CONFIDENCE = 0.95
"""Of the intervals of statistics."""


def asked_by(question: Question, scale: ValueScale) -> dict[str, Callable[[RegionValues], float]]:
    """What a question asks about a region, by its words."""
    name = scale.name
    found: dict[str, Callable[[RegionValues], float]] = {}
    if question.at_least is not None:
        least = question.at_least
        found[f"rows with {name} of at least {least:,}"] = lambda region: region.at_least(least)
    if question.between is not None:
        low, high = question.between
        found[f"rows with {name} from {low:,} to {high:,}"] = lambda region: region.between(
            low, high
        )
    if question.share:
        if not found:
            raise RequestError("A share is one of rows with some value: say at_least or between.")
        found = {f"share of {words}": _share_of(one) for words, one in found.items()}
    if question.quantile is not None:
        q = question.quantile
        found[f"quantile {q:g} of {name}"] = lambda region: region.quantile(q)
    if question.mean:
        found[f"mean {name}"] = lambda region: region.mean()
    if question.total:
        found["rows"] = lambda region: region.n_rows
        found[f"sum of {name}"] = lambda region: region.sum()
    return found


def _share_of(asked: Callable[[RegionValues], float]) -> Callable[[RegionValues], float]:
    def share(region: RegionValues) -> float:
        if not region.n_rows:
            raise RequestError(f"{region.path} has no rows, so there is no share of them.")
        return asked(region) / region.n_rows

    return share


def _values_of(region: RegionValues) -> list[float | None]:
    from tallytree.group_sizes.values.statistics import statistics_of

    return [None if np.isnan(one) else float(one) for one in statistics_of(region)]


def values_release(made: Release) -> ValuesRelease:
    """The table of values that counts by steps are, with its statistics."""
    scale = scale_of(made.manifest)
    assert scale is not None
    value = statistics_of_all(made.all_counts, scale)
    return ValuesRelease(made, Statistics(statistic_names(scale), value, {}), made.manifest)


def load_values(folder: Folder) -> ValuesRelease:
    """The table of values of a folder; its raw measurements stay on disk."""
    manifest = dict(folder.manifest)
    manifest.pop("intervals", None)
    hierarchy, n_rows = regions_of_folder(folder)
    scale, attributes = scale_of(manifest), attributes_of(manifest)
    assert scale is not None
    lattice, names = Lattice(hierarchy, attributes), ("region", *attributes.names)
    parts = in_steps(folder.parts("counts.parquet", names=names), scale)
    counts, _ = counts_from_parts(lattice, parts)
    made = Release(hierarchy, counts, n_rows, manifest)
    if attributes:
        cells = counts.at(lattice.rows_in_margins(lattice.finest)).n_groups()
        made = with_margins(lattice, counts, made, cells)
    table = folder.table(STATISTICS_FILE, names=(*names, "statistic"))
    loaded = ValuesRelease(made, statistics_from_table(lattice, scale, counts, table), manifest)
    if loaded.saved_manifest().get("intervals") != folder.manifest.get("intervals"):
        raise VerificationError(
            f"{folder.path} is not a whole release: what its manifest says of intervals does not "
            f"fit {STATISTICS_FILE}.",
            (STATISTICS_FILE,),
        )
    return loaded


__all__ = ["QUANTILES", "ValuesRelease", "load_values", "values_release"]

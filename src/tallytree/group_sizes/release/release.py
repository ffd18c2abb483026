"""A release of group sizes: tables that add up, with the manifest that says how they came about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError, VerificationError
from tallytree.group_sizes.intervals.total_ends import NO_ENDS, TotalEnds
from tallytree.group_sizes.intervals.zero_cells import ZeroEnds
from tallytree.group_sizes.manifest import KIND, attributes_of, people_of, size_names_of
from tallytree.group_sizes.noisy import NoisyCounts
from tallytree.group_sizes.release.noisy_tables import noisy_reader
from tallytree.group_sizes.release.people import (
    PEOPLE_FILE,
    PeopleCounts,
    people_from_table,
    people_reply,
    refuse_people,
)
from tallytree.group_sizes.release.questions import asked_by
from tallytree.group_sizes.release.region import Interval, RegionCounts, Slot, slot_of, together
from tallytree.group_sizes.release.tables import (
    INTERVAL_COLUMNS,
    cell_groups_from_table,
    cells_table,
    chosen_runs,
    counts_from_parts,
    counts_reader,
    counts_table,
    regions_of_folder,
)
from tallytree.model.arrays import AnyArray, FloatArray, IntArray
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.classes import SizeClasses, SizeNames, classes_from
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.notebook import html_table
from tallytree.releases.checks import Check, Verification, check_counts, check_margins
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.releases.region_tables import path_array, regions_reader
from tallytree.storage.folder import Folder, Manifest
from tallytree.storage.memory import give_back


@dataclass(frozen=True, eq=False)
class CountIntervals:
    """Standard error and interval of every released count, run by run of the release (with
    attributes, of its margins); upper ends of counts that are 0, by level and then by further
    tables; and how far numbers of entities may be off.
    """

    confidence: float
    std_error: FloatArray
    low: IntArray
    high: IntArray
    zeros: ZeroEnds
    totals: TotalEnds = NO_ENDS

    def __repr__(self) -> str:
        return f"CountIntervals({len(self.low):,} counts, confidence {self.confidence:g})"


@dataclass(frozen=True, eq=False)
class Release(Published):
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
    attributes
        Attributes of groups, none by default.
    margins
        With attributes: released counts by size of every region by every combination of their
        values, all values included, slot by slot of each region as a
        :class:`~tallytree.model.lattice.Lattice` numbers them.
    cell_groups
        With attributes: number of groups of every leaf and combination of values that the release
        keeps to.
    people
        Released numbers of entities by class, where they were asked for.

    Examples
    --------
    >>> release.table().column_names
    ['level', 'region', 'size', 'count']
    >>> release.region("US/Georgia").n_groups
    3
    >>> bool(release.verify())
    True
    """

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "a release of group sizes"
    answers: ClassVar[frozenset[str]] = frozenset(
        {
            "region",
            "where",
            "size",
            "at_least",
            "between",
            "share",
            "largest",
            "quantile",
            "mean",
            "total",
            "people",
            "confidence",
            "copies",
        }
    )

    hierarchy: Hierarchy
    counts: CountsBySize
    n_groups: IntArray
    manifest: Manifest
    noisy: NoisyCounts | None = field(default=None, repr=False)
    intervals: CountIntervals | None = field(default=None, repr=False)
    attributes: Attributes = NO_ATTRIBUTES
    margins: CountsBySize | None = field(default=None, repr=False)
    cell_groups: IntArray | None = field(default=None, repr=False)
    people: PeopleCounts | None = field(default=None, repr=False)

    @property
    def lattice(self) -> Lattice:
        """All tables that levels and attributes make."""
        return Lattice(self.hierarchy, self.attributes)

    def region(self, path: str, where: Sequence[str] = ()) -> RegionCounts:
        """Counts of one region, by its path from the root (``"US/Georgia"``), of groups with some
        values of attributes (``["tenure=rented"]``) or of all.
        """
        return self.regions([path], where)

    def regions(self, paths: Sequence[str], where: Sequence[str] = ()) -> RegionCounts:
        """Counts of several regions together, none of which lies in another."""
        slot = Slot(self.lattice.n_slots, slot_of(self.attributes, where))
        found = together(self.hierarchy, self.all_counts, paths, self.size_names, slot)
        return replace(found, path=", ".join([found.path, *where])) if where else found

    @cached_property
    def classes(self) -> SizeClasses | None:
        """The classes that sizes are counted in: ``counts`` then has the numbers of classes; None
        for sizes themselves.
        """
        found = self.manifest.get("classes")
        return None if found is None else classes_from(found)

    @cached_property
    def size_names(self) -> SizeNames | None:
        """What sizes in the tables stand for: their classes, or under a public bound single sizes
        and all from the bound on; None where each size is itself.
        """
        return size_names_of(self.manifest)

    def table(self, by: str | Sequence[str] = ()) -> pa.Table:
        """All counts as an Arrow table: level, region, size, count; rows with count 0 left out.

        ``by`` names attributes, which become columns after the region. Of a release in classes,
        ``size`` is the smallest one of a class and ``class`` its name; under a public bound the
        last size is such a class, ``12+``. With intervals, columns std_error, low and high follow.
        """
        names = (by,) if isinstance(by, str) else tuple(by)
        table = counts_table(self.lattice, self.all_counts, names, self.size_names)
        kept = chosen_runs(self.lattice, self.all_counts, names)
        for name, values in self._interval_columns().items():
            table = table.append_column(name, pa.array(values[kept]))
        return table

    @property
    def n_rows(self) -> int:
        """Rows of the released table of regions."""
        return len(self.counts.size)

    @property
    def all_counts(self) -> CountsBySize:
        """Counts of every row that the release has: of regions, and of their slots where groups
        have attributes.
        """
        return self.counts if self.margins is None else self.margins

    def row(self, path: str, where: Sequence[str] = ()) -> int:
        """Number of a region, of groups with some values of attributes or of all, among
        ``all_counts``.
        """
        return self.hierarchy.find(path) * self.lattice.n_slots + slot_of(self.attributes, where)

    def without_attributes(self) -> Release:
        """The tables of regions alone."""
        bare = replace(self, attributes=NO_ATTRIBUTES, margins=None, cell_groups=None, people=None)
        return replace(bare, intervals=self.region_intervals)

    @cached_property
    def region_intervals(self) -> CountIntervals | None:
        """Intervals of the counts of regions, run by run of ``counts``; of a release without
        attributes all there are.
        """
        if self.intervals is None or self.margins is None:
            return self.intervals
        kept, found = chosen_runs(self.lattice, self.margins), self.intervals
        return replace(
            found, std_error=found.std_error[kept], low=found.low[kept], high=found.high[kept]
        )

    def people_table(self, by: str | Sequence[str] = ()) -> pa.Table:
        """Numbers of entities as an Arrow table: level, region, count; rows with count 0 left out.

        ``by`` names classes of entities and attributes of groups, which become columns after the
        region.
        """
        return refuse_people(self.people).table((by,) if isinstance(by, str) else by)

    def _interval_columns(self) -> dict[str, FloatArray | IntArray]:
        if self.intervals is None:
            return {}
        return {name: getattr(self.intervals, name) for name in INTERVAL_COLUMNS}

    def verify(self) -> Verification:
        """Check integers, nonnegativity, group totals and tree sums."""
        whole = Check("counts are nonnegative integers", self.counts.count.dtype == np.int64)
        all_totals = self.manifest["totals"]["kept"] == "every region"
        checks = check_counts(self.hierarchy, self.counts, self.n_groups, all_totals=all_totals)
        if self.margins is not None and self.cell_groups is not None:
            checks += check_margins(self.lattice, self.margins, self.cell_groups)
        if self.people is not None:
            checks += self.people.checks(self.all_counts)
        return Verification((whole, *checks))

    def _reply(self, question: Question) -> Reply:
        """What was asked about one region, the root by default; without a question, its counts."""
        return self.reply(question)

    def reply(self, question: Question, intervals: Mapping[str, Interval] | None = None) -> Reply:
        """Answers, with intervals by question where :func:`tallytree.ask` has simulated them."""
        if (question.copies or question.confidence) and intervals is None:
            raise RequestError(
                "Intervals need simulated copies of the release: use tallytree.ask(release, "
                "copies=40, …)."
            )
        if question.people:
            return people_reply(refuse_people(self.people), question, self.root)
        counts = self.regions(question.paths(self.root), question.where)
        asked = asked_by(question, self.size_names)
        facts: dict[str, Any]
        if not asked:
            rows = [[size, int(count)] for size, count in zip(counts.names(), counts.count)]
            head = "size" if self.size_names is None else "class"
            facts = {"region": counts.path, "groups": counts.n_groups, "counts": rows}
            return Reply(counts.path, (head, "count"), rows, facts)
        found = {words: one.told(one.ask(counts), counts) for words, one in asked.items()}
        facts = {"region": counts.path, **found}
        if not intervals:
            return Reply(
                counts.path, ("question", "answer"), [list(pair) for pair in found.items()], facts
            )
        ends: list[tuple[float, float | str, float | str]] = []
        for words, one in intervals.items():
            if asked[words].open_above(counts):
                ends.append((one.std_error, one.low, "no end"))
            else:
                low, high = (asked[words].told(end, counts) for end in (one.low, one.high))
                ends.append((one.std_error, low, high))
        told = [[words, answer, *end] for (words, answer), end in zip(found.items(), ends)]
        facts["intervals"] = {
            words: vars(one) | ({"high": None} if asked[words].open_above(counts) else {})
            for words, one in intervals.items()
        }
        return Reply(counts.path, ("question", "answer", "std_error", "low", "high"), told, facts)

    @property
    def root(self) -> str:
        """Path of the root."""
        return str(self.hierarchy.paths[0])

    def tables(self, *, noisy: bool) -> dict[str, pa.RecordBatchReader | pa.Table]:
        """Counts, regions, their cells and the raw measurements, in streams."""
        paths = path_array(self.hierarchy)
        reader = counts_reader(
            self.lattice, self.all_counts, paths, self._interval_columns(), self.size_names
        )
        tables: dict[str, pa.RecordBatchReader | pa.Table] = {
            "counts.parquet": reader,
            "regions.parquet": regions_reader(self.hierarchy, self.n_groups),
        }
        if self.cell_groups is not None:
            tables["cells.parquet"] = cells_table(self.lattice, self.cell_groups, paths)
        if self.people is not None:
            tables[PEOPLE_FILE] = self.people.reader(paths)
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = noisy_reader(self.lattice, self.noisy, paths)
        return tables

    def saved_manifest(self) -> Manifest:
        """The manifest, and the confidence of the intervals where there are any."""
        if self.intervals is None:
            return self.manifest
        found = self.intervals
        ends = {"zeros": found.zeros.to_json(), "totals": found.totals.to_json()}
        return {**self.manifest, "intervals": {"confidence": found.confidence, **ends}}

    def __repr__(self) -> str:
        by = f" by {', '.join(self.attributes.names)}" if self.attributes else ""
        return self._described(repr(self.hierarchy) + by)

    def _repr_html_(self) -> str:
        tree, facts = self.hierarchy, self.manifest["privacy"]["levels"]
        groups = [
            int(self.n_groups[tree.level_slice(level)].sum()) for level in range(tree.n_levels)
        ]
        rows = [
            [
                fact["name"],
                tree.level_size(fact["level"]),
                groups[fact["level"]],
                fact["view"],
                fact["share"],
            ]
            for fact in facts
        ]
        columns = ["level", "regions", "groups", "view", "share of the budget"]
        caption = f"Release by {self.manifest['mechanism']['name']}"
        return html_table(caption, columns, rows, note=self.manifest["privacy"]["statement"])


def load_release(folder: Folder) -> Release:
    """The release of group sizes of a folder; its raw measurements stay on disk."""
    manifest = dict(folder.manifest)
    hierarchy, n_groups = regions_of_folder(folder)
    lattice = Lattice(hierarchy, attributes_of(manifest))
    parts = folder.parts("counts.parquet", names=("region", *lattice.attributes.names))
    counts, more = counts_from_parts(lattice, parts, size_names_of(manifest))
    give_back()
    intervals = _intervals(more, manifest.pop("intervals", None))
    people = people_of(manifest)
    counted = None
    if people:
        names = ("region", *people.tables(lattice).attributes.names)
        counted = people_from_table(people, lattice, folder.table(PEOPLE_FILE, names=names))
    made = Release(hierarchy, counts, n_groups, manifest, intervals=intervals, people=counted)
    if not lattice.attributes:
        return made
    cell_groups = cell_groups_from_table(lattice, folder.table("cells.parquet"))
    return with_margins(lattice, counts, made, cell_groups)


def with_margins(
    lattice: Lattice, margins: CountsBySize, release: Release, cell_groups: IntArray
) -> Release:
    """A release with its tables by attributes, of which those of regions alone are the slots of all
    values.
    """
    counts = margins.at(np.arange(lattice.hierarchy.n_regions) * lattice.n_slots)
    return replace(
        release,
        counts=counts,
        attributes=lattice.attributes,
        margins=margins,
        cell_groups=cell_groups,
    )


def _intervals(
    columns: Mapping[str, AnyArray], facts: Mapping[str, Any] | None
) -> CountIntervals | None:
    """Intervals as they stand in a table of counts, whose rows are in the order of the release's
    runs.
    """
    if facts is None:
        if "std_error" in columns:
            raise VerificationError(
                "manifest.json lacks the confidence of the intervals in counts.parquet.",
                ("manifest.json",),
            )
        return None
    std_error, low, high = (columns[name] for name in INTERVAL_COLUMNS)
    zeros, totals = (
        ZeroEnds.from_json(facts["zeros"]),
        TotalEnds.from_json(facts["totals"]),
    )
    return CountIntervals(facts["confidence"], std_error, low, high, zeros, totals)

"""A released table: whole numbers that add up over regions and values, with error bars and the
manifest of their origin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.lattice import Lattice
from tallytree.model.notebook import html_table
from tallytree.model.values import Values
from tallytree.releases.checks import Check, Verification, where_wrong
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.releases.region_tables import hierarchy_of_folder, regions_reader
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.answers import Answer, Answers, whole_interval
from tallytree.strategies.intervals import check_confidence, half_widths
from tallytree.strategies.noise_moments import fourth_cumulant
from tallytree.tables.cells import (
    LevelCells,
    cells_from_parts,
    cells_reader,
    levels_above,
    summed,
)
from tallytree.tables.manifest import KIND, plan_from_manifest
from tallytree.tables.measure import NoisyTable
from tallytree.tables.noisy_tables import noisy_from_folder, noisy_reader
from tallytree.tables.plan import TablePlan

# Regions times cells up to which a release is estimated again when it is checked.
MOST_FOLLOWED = 1 << 24
NOT_FOLLOWED = (
    "Whether the counts follow from the noisy answers was not checked, since there are many: "
    "estimate the release again (tallytree re-estimate) and compare."
)

Noisy = Sequence[NoisyTable] | Callable[[], Sequence[NoisyTable]]


@dataclass(frozen=True, eq=False)
class TableRelease(Published):
    """How many rows every region has, by attributes.

    Attributes
    ----------
    plan
        What was measured, with which noise.
    levels
        Released counts of the finest cells of each level, the root first.
    manifest
        Mechanism, privacy, what is public: everything that ``manifest.json`` will hold.
    measured
        The raw measurements, or how to read them; None when they were left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"state": ["GA", "GA", "NY"], "age": [7, 30, 81]})
    >>> made = tt.table(rows, levels=["state"], by={"age": ["0-17", "18-64", "65+"]}, epsilon=1)
    >>> made.count(region="total/GA", age="18-64") >= 0
    True
    """

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "a table"
    answers: ClassVar[frozenset[str]] = frozenset(
        {"region", "where", "by", "total", "share", "confidence"}
    )

    plan: TablePlan
    levels: tuple[LevelCells, ...]
    manifest: Manifest
    measured: Noisy | None = field(default=None, repr=False)

    @property
    def hierarchy(self) -> Hierarchy:
        """The regions."""
        return self.plan.facts.hierarchy

    @property
    def attributes(self) -> Values:
        """The attributes and their values."""
        return self.plan.facts.values

    @property
    def lattice(self) -> Lattice:
        """All tables that levels and attributes make."""
        return Lattice(self.hierarchy, self.attributes)

    @property
    def root(self) -> str:
        """Path of the root."""
        return str(self.hierarchy.labels[0])

    @cached_property
    def noisy(self) -> Sequence[NoisyTable] | None:
        """The raw measurements, read when they are first asked for."""
        return self.measured() if callable(self.measured) else self.measured

    def cells(self, region: str | None = None) -> IntArray:
        """Released counts of the cells of a region, one dimension per attribute; of the root where
        none is named.
        """
        place = 0 if region is None else self.hierarchy.find(region)
        return self._cells(place).reshape(self.attributes.shape)

    def _cells(self, region: int) -> IntArray:
        level, n_cells = int(self.hierarchy.level_of[region]), self.attributes.n_cells
        first = (region - int(self.hierarchy.level_starts[level])) * n_cells
        part = self.levels[level].between(first, first + n_cells)
        found = np.zeros(n_cells, dtype=np.int64)
        found[part.cell - first] = part.n
        return found

    def count(self, region: str | None = None, **where: str) -> int:
        """How many rows a region has, of all of them or of some values: a value of an attribute, a
        class, or a range such as ``age="16-64"``.
        """
        return int(self.answer(region, where).estimate)

    def answer(
        self,
        region: str | None = None,
        where: Mapping[str, str] | None = None,
        *,
        confidence: float = 0.95,
    ) -> Answer:
        """The same with its standard error and an interval."""
        path = self.root if region is None else region
        return self.answers_of([path], [where or {}], confidence=confidence)[0]

    def answers_of(
        self,
        paths: Sequence[str],
        wheres: Sequence[Mapping[str, str]],
        *,
        confidence: float = 0.95,
    ) -> Answers:
        """Counts of some regions together, one for each choice of values."""
        regions = [self.hierarchy.find(path) for path in paths]
        if len(set(regions)) != len(regions):
            raise RequestError("A region is named twice; each counts once.")
        cells = np.sum([self._cells(region) for region in regions], axis=0)
        cells = cells.reshape(self.attributes.shape)
        estimates, variances, possible = [], [], self.plan.facts.possible
        for where in wheres:
            chosen = self.chosen(where)
            box = np.ix_(*(np.flatnonzero(weights) for weights in chosen))
            estimates.append(int(cells[box].sum()))
            empty = possible is not None and not possible.reshape(cells.shape)[box].any()
            variance = self._variance(regions) @ self.plan.energy(chosen)
            variances.append(0.0 if empty else float(variance))
        return self.with_ends(np.array(estimates), np.array(variances), confidence)

    def _variance(self, regions: Sequence[int]) -> FloatArray:
        """Of each component of a sum of regions; of several at most that, as if all their errors
        went the same way: those of a region and its parts do.
        """
        if len(regions) == 1:
            return self.plan.variance[regions[0]]
        return np.asarray(np.sqrt(self.plan.variance[list(regions)]).sum(axis=0) ** 2)

    def chosen(self, where: Mapping[str, str]) -> list[FloatArray]:
        """For each attribute 1 at the values that are asked about."""
        self.attributes.chosen(list(where))
        found = []
        for name, values in zip(self.attributes.names, self.attributes.values):
            weights = np.ones(len(values))
            if name in where:
                weights[:] = 0
                weights[self.attributes.places(name, where[name])] = 1
            found.append(weights)
        return found

    def with_ends(self, counts: IntArray, variances: FloatArray, confidence: float) -> Answers:
        """Counts with their standard errors and intervals."""
        # As if all noise were that of the table whose noise has the heaviest tails.
        cumulants = np.max(
            [
                fourth_cumulant(table.noise) * (variances / table.noise.variance) ** 2
                for table in self.plan.tables
            ],
            axis=0,
        )
        half = half_widths(variances, cumulants, check_confidence(confidence))
        ends = whole_interval(counts.astype(np.float64), half, counts)
        return Answers(counts, np.sqrt(variances), *ends, confidence=confidence)

    def table(self, by: Sequence[str] | None = None, level: str | None = None) -> pa.Table:
        """Released counts as an Arrow table: level, region, one column per attribute, count.

        Of all levels, or of one; by all attributes, or by some. Counts of 0 are left out.
        """
        names = self.attributes.names if by is None else tuple(by)
        margin = self.attributes.chosen(names)
        levels = range(self.hierarchy.n_levels)
        if level is not None:
            if level not in self.hierarchy.level_names:
                known = ", ".join(self.hierarchy.level_names)
                raise RequestError(f"There is no level {level!r}; levels are {known}.")
            only = self.hierarchy.level_names.index(level)
            levels = range(only, only + 1)
        attributes = self.attributes.margin(margin)
        found = [
            self.margin(one, margin)
            if one in levels
            else LevelCells(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
            for one in range(self.hierarchy.n_levels)
        ]
        made = cells_reader(Lattice(self.hierarchy, attributes), found).read_all()
        plain = [
            column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            for column in made.columns
        ]
        return pa.table(dict(zip(made.column_names, plain)))

    def margin(self, level: int, margin: Sequence[int]) -> LevelCells:
        """Counts of a level by some attributes, by their places: region times combinations plus
        combination.
        """
        if tuple(margin) == self.lattice.finest.margin:
            return self.levels[level]
        shape = self.attributes.shape
        place = np.zeros(1, dtype=np.int64)
        for number, size in enumerate(shape):
            values = np.arange(size) if number in margin else np.zeros(size, dtype=np.int64)
            place = (place[:, None] * (size if number in margin else 1) + values).ravel()
        n_rows = int(np.prod([shape[number] for number in margin], dtype=np.int64))
        region, cell = np.divmod(self.levels[level].cell, self.attributes.n_cells)
        return summed(region * n_rows + place[cell], self.levels[level].n)

    def verify(self) -> Verification:
        """Check that counts add up over regions, and that they follow from the raw measurements,
        where these are at hand.
        """
        tree = self.hierarchy
        again = levels_above(tree, self.attributes.n_cells, self.levels[-1])
        positive = all(level.n.min(initial=1) > 0 for level in self.levels)
        checks = [Check("counts are nonnegative integers", positive)]
        possible = self.plan.facts.possible
        if possible is not None:
            cells = self.levels[-1].cell % self.attributes.n_cells
            checks.append(Check("no count breaks a rule", bool(possible[cells].all())))
        for known in self.plan.facts.known:
            found = np.zeros(known.counts.size, dtype=np.int64)
            part = self.margin(known.level, known.margin)
            found[part.cell] = part.n
            kept = np.array_equal(found, known.counts.ravel())
            checks.append(Check(f"known totals of {tree.level_names[known.level]} hold", kept))
        for level in range(1, tree.n_levels):
            cells, apart = _differences(again[level - 1], self.levels[level - 1])
            regions = np.unique(cells[apart != 0] // self.attributes.n_cells)
            wrong = regions + tree.level_starts[level - 1]
            name = f"{tree.level_names[level]} adds up to {tree.level_names[level - 1]}"
            checks.append(Check(name, not len(wrong), where_wrong(tree, wrong)))
        if self.measured is None:
            return Verification(tuple(checks))
        if not self._few_enough():
            return Verification(tuple(checks), (NOT_FOLLOWED,))
        return Verification((*checks, self._follows()))

    def _few_enough(self) -> bool:
        """Whether it takes seconds to estimate the release again."""
        return self.hierarchy.n_regions * self.attributes.n_cells <= MOST_FOLLOWED

    def _follows(self) -> Check:
        from tallytree.tables.estimate import Estimates
        from tallytree.tables.reconcile import whole_table

        assert self.noisy is not None
        cell, n = whole_table(self.plan, Estimates(self.plan, self.noisy))
        released = self.levels[-1]
        # A tie may be rounded the other way on another machine, and move a row to a cell nearby.
        apart = np.abs(_differences(released, LevelCells(cell, n))[1])
        most = max(2, int(n.sum()) // 1000)
        follow = bool(apart.max(initial=0) <= 1 and apart.sum() <= most)
        return Check("counts follow from the noisy answers", follow)

    def tables(self, *, noisy: bool) -> dict[str, Any]:
        """Counts, regions, and the raw measurements."""
        tables: dict[str, Any] = {
            "counts.parquet": cells_reader(self.lattice, self.levels),
            "regions.parquet": regions_reader(self.hierarchy),
        }
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = noisy_reader(self.plan, self.noisy)
        return tables

    def _reply(self, question: Question) -> Reply:
        from tallytree.tables.questions import table_reply

        return table_reply(self, question)

    def __repr__(self) -> str:
        names = ", ".join(self.attributes.names)
        return self._described(f"{self.hierarchy!r}{' by ' if names else ''}{names}")

    def _repr_html_(self) -> str:
        made = self.table(level=self.hierarchy.level_names[0])
        rows = [list(row.values())[2:] for row in made.slice(0, 50).to_pylist()]
        caption = f"Table of {self.root}"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, made.column_names[2:], rows, n_rows=len(made), note=note)


def _differences(one: LevelCells, other: LevelCells) -> tuple[IntArray, IntArray]:
    """Cells that one of both has, and how far their counts lie apart."""
    apart = summed(np.concatenate([one.cell, other.cell]), np.concatenate([one.n, -other.n]))
    return apart.cell, apart.n


def table_release(
    plan: TablePlan, leaves: LevelCells, manifest: Manifest, noisy: Noisy | None
) -> TableRelease:
    """The release of these counts of the leaves."""
    levels = levels_above(plan.facts.hierarchy, plan.axes.n_cells, leaves)
    return TableRelease(plan, levels, manifest, noisy)


def load_table(folder: Folder) -> TableRelease:
    """The table of a folder, with its raw measurements where they were saved."""
    plan = plan_from_manifest(folder.manifest, hierarchy_of_folder(folder))
    lattice = Lattice(plan.facts.hierarchy, plan.facts.values)
    names = ("region", *lattice.attributes.names)
    levels = cells_from_parts(lattice, folder.parts("counts.parquet", names=names))
    measured = None
    if folder.has("noisy.parquet"):
        measured = lambda: noisy_from_folder(plan, folder)  # noqa: E731
    return TableRelease(plan, levels, folder.manifest, measured)

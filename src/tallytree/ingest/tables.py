"""From rows to counts by region and attributes, as one query inside the engine that holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError, RequestError
from tallytree.ingest.columns import Problem, at_most, identifier, is_nan, whole_number
from tallytree.ingest.contribution import with_kept
from tallytree.ingest.counting import Inputs, Opened, find_regions, open_hierarchy, refuse_problem
from tallytree.ingest.engine import Session, open_session
from tallytree.ingest.filters import part_columns, rows_of_part
from tallytree.ingest.group_sizes import Rows, label_columns
from tallytree.ingest.regions import Regions
from tallytree.ingest.rules import rules_of
from tallytree.ingest.shapes import RowShape
from tallytree.ingest.sources import Source, Wanted, open_source
from tallytree.model.attributes import OTHER
from tallytree.model.classes import OPEN
from tallytree.model.confidential import UNALTERED
from tallytree.model.confidential_table import ConfidentialTable, PublicTable
from tallytree.model.limits import MOST_ENTITIES
from tallytree.model.part import Part
from tallytree.model.rules import Rule, possible_cells
from tallytree.model.unit import COLUMN, ENTITY, unit_from
from tallytree.model.values import Values, in_rising_order, listed_values, spans_of
from tallytree.options.tables import CellOptions

SUMS = ("n", "outside", "broken", "left_out")
FROM_DATA = "the regions were read off the data and declared public"
FROM_TABLE = "the regions are those of a public hierarchy table"


def values_of(options: CellOptions) -> Values:
    """The attributes that options describe: their values, orders and classes."""
    by = {name: listed_values(name, values) for name, values in _entries(options.by, "by").items()}
    closed, ordered = _names(options.closed), list(_names(options.ordered))
    for name in (*closed, *ordered):
        if name not in by:
            raise RequestError(f"{name!r} is no attribute of by= ({', '.join(by) or 'none'}).")
    values = {}
    for name, listed in by.items():
        known = tuple(value for value in listed if value != OTHER)
        if not known or (name in closed and OTHER in listed):
            raise RequestError(
                f"{OTHER!r} is every value of {name!r} that stands on no list: list the values "
                "that it is not, and leave it out where the list is closed."
            )
        spans = spans_of(known)
        if name not in ordered and len(known) > 1 and spans and in_rising_order(spans):
            ordered.append(name)
        values[name] = known if name in closed else (*known, OTHER)
    classes = tuple(
        (name, tuple(_class(name, label, values.get(name, ())) for label in labels))
        for name, labels in _entries(options.classes, "classes").items()
    )
    in_order = tuple(name for name in by if name in ordered)
    return Values(tuple(values), tuple(values.values()), in_order, classes)


def _class(name: str, label: str, values: Sequence[str]) -> tuple[str, str, str]:
    """A class with its first and last value: written as a range of values, ``0-17`` or ``65+``."""
    known = [value for value in values if value != OTHER]
    if label.endswith("+") and label[:-1] in known:
        return label, label[:-1], known[-1]
    for place, mark in enumerate(label):
        if mark in "-–" and label[:place] in known and label[place + 1 :] in known:
            return label, label[:place], label[place + 1 :]
    if label in known:
        return label, label, label
    raise RequestError(f"classes= has a class {label!r} that is no range of the values of {name}.")


def _entries(told: Any, option: str) -> dict[str, tuple[str, ...]]:
    """Columns with lists, from a mapping or from ``"column=value,value"``."""
    if isinstance(told, Mapping):
        if not all(str(name).strip() for name in told):
            raise RequestError(f"{option}= names a column without a name.")
        return {
            str(name): tuple(part.strip() for part in values.split(","))
            if isinstance(values, str)
            else tuple(map(str, values))
            for name, values in told.items()
        }
    found = {}
    for entry in (told,) if isinstance(told, str) else told:
        name, equals, values = str(entry).partition("=")
        if not equals or not name.strip() or name.strip() in found:
            raise RequestError(f"{option}= takes COLUMN=VALUES, each column once; got {entry!r}.")
        found[name.strip()] = tuple(part.strip() for part in values.split(","))
    return found


def _names(told: str | Sequence[str]) -> tuple[str, ...]:
    return (told,) if isinstance(told, str) else tuple(told)


@dataclass(frozen=True, eq=False)
class _Domain:
    """The public values of attributes, and the rules that they keep."""

    values: Values
    rules: tuple[Rule, ...]

    @classmethod
    def of(cls, options: CellOptions) -> _Domain:
        """As options describe them; rules that leave nothing are refused."""
        values, rules = values_of(options), rules_of(options)
        possible_cells(values, rules)
        return cls(values, rules)

    def breaks(self, places: Sequence[Any]) -> Any:
        """Whether a row breaks a rule, from the numbers of its values; decided by these alone."""
        found: Any = ibis.literal(False)
        for rule in self.rules:
            attributes, broken = rule.broken(self.values)
            number: Any = ibis.literal(0, "int64")
            for place in attributes:
                number = number * self.values.shape[place] + places[place]
            flat = broken.ravel()
            if 2 * np.count_nonzero(flat) <= len(flat):
                some = number.isin(np.flatnonzero(flat).tolist()) if flat.any() else None
            else:
                some = ~number.isin(np.flatnonzero(~flat).tolist())
            found = found if some is None else found | some
        return found.fill_null(False)


def read_table(source: Any, options: CellOptions, part: Part | None) -> ConfidentialTable:
    """Count the rows of every leaf region by all attributes together, exactly."""
    domain, shape = _Domain.of(options), _shape(options)
    values = domain.values
    with open_session() as session:
        opened, rows = _opened(session, source, options, shape, domain, part)
        rows, regions = find_regions(session, rows, opened, shape, options.root)
        runs = _counted(session, rows, regions, opened)
    refuse_problem(pc.min(runs["problem"]).as_py(), opened, shape)
    public = _public(options, domain, regions, part)
    altered = UNALTERED.also_rows_of(public.unit, int(pc.sum(runs["left_out"]).as_py() or 0))
    if options.closed:
        outside = int(pc.sum(runs["outside"]).as_py() or 0)
        altered = altered.also("rows with a value on no list, left out", outside)
    if public.rules:
        broken = int(pc.sum(runs["broken"]).as_py() or 0)
        altered = altered.also("rows that break a rule, left out", broken)
    kept = runs.filter(pc.greater(runs["n"], 0))
    leaf, place, n = (kept[name].cast(pa.int64()).to_numpy() for name in ("leaf", "c", "n"))
    cell = leaf * values.n_cells + place
    order = np.argsort(cell, kind="stable")
    return ConfidentialTable(public, cell[order], n[order], altered)


def public_table(source: Any, options: CellOptions, part: Part | None) -> PublicTable:
    """The regions and values of a table alone: nothing is counted."""
    domain, shape = _Domain.of(options), _shape(options)
    with open_session() as session:
        opened, rows = _opened(session, source, options, shape, domain, part)
        _, regions = find_regions(session, rows, opened, shape, options.root)
    return _public(options, domain, regions, part)


def _shape(options: CellOptions) -> RowShape:
    levels, unit = _names(options.levels), options.unit.removeprefix(COLUMN)
    named = [*levels, *_entries(options.by, "by"), *([options.count] if options.count else [])]
    repeated = [name for name in named if named.count(name) > 1]
    if repeated:
        raise RequestError(f"Column {repeated[0]!r} is given twice; each column has one meaning.")
    if options.hierarchy is not None and len(levels) != 1:
        raise RequestError(
            "hierarchy= needs levels= to name exactly one column: the region by which it is looked "
            "up."
        )
    protected = None if options.unit == ENTITY else unit
    if protected is not None and options.count is not None:
        raise RequestError("count= says that a row stands for many, so their unit= is unknown.")
    if protected in levels and options.hierarchy is None:
        raise RequestError(
            f"With unit={protected!r} the regions cannot be read off the column {protected!r}: "
            "the promise would cover nobody. Give a public table of regions: hierarchy= "
            "(--hierarchy)."
        )
    if not options.root:
        raise RequestError("root= is the label of the root, a text that is not empty.")
    return RowShape(None, levels, count=options.count, unit=protected,
                    contributions=options.contributions)  # fmt: skip


def _public(
    options: CellOptions, domain: _Domain, regions: Regions, part: Part | None
) -> PublicTable:
    counted = options.count is not None
    unit = unit_from(options.unit, options.entity, options.contributions, counted=counted)
    listed = options.hierarchy is not None or not _names(options.levels)
    alone = "" if listed or counted else "a region"
    note = FROM_TABLE if options.hierarchy is not None else FROM_DATA
    return PublicTable(regions.hierarchy, domain.values, unit, part, alone, note, domain.rules)


def _opened(
    session: Session,
    source: Any,
    options: CellOptions,
    shape: RowShape,
    domain: _Domain,
    part: Part | None,
) -> tuple[Opened, Rows]:
    """The inputs, and rows with labels, the number ``c`` of their cell, how many they stand for and
    what was done to them.
    """
    hierarchy = None
    if options.hierarchy is not None:
        hierarchy = open_hierarchy(session, options.hierarchy, shape.levels[0])
    named = (shape.unit, shape.count, *shape.levels, *domain.values.names)
    wanted = Wanted((*(name for name in named if name), *part_columns(part)) or None)
    inputs = Inputs(source, place=options.place(), where=part)
    opened = rows_of_part(open_source(session, inputs.source, wanted, inputs.place), part)
    rows = Rows(_rows(session, opened, shape, domain), len(shape.levels), False, True)
    return Opened(opened, None, hierarchy, part=part), rows


def _rows(session: Session, source: Source, shape: RowShape, domain: _Domain) -> Any:
    columns, values = label_columns(source, shape), domain.values
    places = [_place(source, values, name) for name in values.names]
    cell: Any = ibis.literal(0, "int64")
    for place, listed in zip(places, values.values):
        cell = cell * len(listed) + place
    n, problem = ibis.literal(1, "int64"), ibis.literal(0, "int8")
    if shape.count is not None:
        n, problem = whole_number(source.table, shape.count, source.name, count=True)
    known = reduce(and_, [place.notnull() for place in places], ibis.literal(True))
    zero = ibis.literal(0, "int64")
    broken = known & domain.breaks(places)
    columns |= {
        "c": cell.fill_null(0),
        "n": ibis.cases((known & ~broken, n), else_=zero),
        "outside": ibis.cases((known, zero), else_=n),
        "broken": ibis.cases((broken, n), else_=zero),
        "problem": problem,
    }
    if shape.unit is None:
        return source.table.select(**columns).mutate(left_out=zero)
    columns["u"] = identifier(source.table, shape.unit, source.name)
    table = source.table.select(**columns)
    # Rows that do not count are the last of their unit, so that they take no place of others.
    identity = [*(f"l{place}" for place in range(len(shape.levels))), "c", "n"]
    inside, outside = table.filter(table.n > 0), table.filter(table.n == 0)
    kept = with_kept(session, inside, identity, shape.contributions, source.name)
    counted = kept.mutate(n=kept.n * kept.kept, left_out=1 - kept.kept).drop("kept")
    problem = ibis.cases(
        (outside.u.isnull(), ibis.literal(int(Problem.UNIT_MISSING), "int8")), else_=outside.problem
    )
    rest = outside.mutate(problem=problem, left_out=zero).drop("u")
    if session.engine_of(counted) is not session.engine_of(rest):
        rest = session.bring(rest, source.name)
    return ibis.union(counted, rest.select(counted.columns))


def _place(source: Source, values: Values, name: str) -> Any:
    """Number of a row's value; null where it is on no list and there is no "other"."""
    listed = values.values_of(name)
    known = [value for value in listed if value != OTHER]
    column = source.table[name]
    spans = spans_of(known)
    nothing = ibis.literal(listed.index(OTHER), "int64") if OTHER in listed else ibis.null("int64")
    if spans is not None and column.type().is_numeric():
        return _place_of_number(column, spans, nothing)
    text = identifier(source.table, name, source.name).cast("string")
    tests = [(text == value, ibis.literal(i, "int64")) for i, value in enumerate(known)]
    if spans is not None and column.type().is_string():
        # A file of text may hold the names of classes, or the numbers that are in them.
        nothing = _place_of_number(column.try_cast("float64"), spans, nothing)
    return ibis.cases(*tests, else_=nothing) if tests else nothing


def _place_of_number(column: Any, spans: Sequence[tuple[int, int]], nothing: Any) -> Any:
    """The class that a number lies in; ages are whole years, so that 17.5 is 17."""
    if column.type().is_floating():
        column = ibis.cases((is_nan(column), ibis.null("float64")), else_=column)
    low = min(a for a, _ in spans)
    # From here on a number lies in the same class as any other: an open one, or none.
    beyond = max(a if b == OPEN else b + 1 for a, b in spans)
    inside = (column >= low) & (column < beyond)
    # No number that the engine cannot round to a whole one may show in an error.
    whole = ibis.cases((inside, column), else_=ibis.literal(low)).floor().cast("int64")
    if (
        len(spans) > 1
        and all(a == b for a, b in spans)
        and in_rising_order(spans)
        and beyond - low == len(spans)
    ):
        return ibis.cases((inside, whole - low), else_=nothing)
    tests = [
        (
            (inside & (whole >= a) & (whole <= b)) | ((column >= beyond) & (b == OPEN)),
            ibis.literal(i, "int64"),
        )
        for i, (a, b) in enumerate(spans)
    ]
    return ibis.cases(*tests, else_=nothing)


def _counted(session: Session, rows: Rows, regions: Regions, opened: Opened) -> pa.Table:
    """Counts by leaf and cell with the number of the leaf, and what was left out."""
    table = rows.table
    sums = {name: _bounded_sum(table[name]) for name in SUMS}
    query = table.group_by([*rows.keys, "c"]).agg(problem=table.problem.min(), **sums)
    found = session.bring(query, opened.source.name)
    if not rows.n_key_columns:
        numbered = found.mutate(leaf=ibis.literal(0, "int64"))
    else:
        numbered = found.left_join(session.register(regions.leaf_of_key), rows.keys)
    columns = ["leaf", "c", *SUMS, "problem"]
    counted = session.fetch(numbered.select(columns), opened.source.name)
    if counted["leaf"].null_count:
        raise InputError(f"The rows of {opened.source.name} changed while they were read.")
    return counted


def _bounded_sum(column: Any) -> Any:
    return at_most(at_most(column, MOST_ENTITIES).sum(), MOST_ENTITIES).cast("int64")

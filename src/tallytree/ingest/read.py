"""Reading confidential tables into exact counts. The engine, and with it Ibis, is loaded when the
first table is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.public import Declared, declared
from tallytree.ingest.shapes import RowShape, attributes_asked, closed_of, row_shape
from tallytree.model.attributes import OTHER, Attributes
from tallytree.model.classes import SizeClasses, class_span, classes_from
from tallytree.model.confidential import ConfidentialCounts, in_classes
from tallytree.model.part import part_from
from tallytree.model.people import People, classes_of_entities
from tallytree.model.scale import value_scale
from tallytree.model.unit import unit_from
from tallytree.options.reading import ReadOptions
from tallytree.options.spelled import spelled
from tallytree.options.values import ValuesOptions


@spelled(ReadOptions)
def read(source: Any, options: ReadOptions) -> ConfidentialCounts:
    """Count the groups of each size in every leaf region, exactly and inside the engine that holds
    the table.

    Parameters
    ----------
    source
        Parquet or CSV file, glob or folder; pandas, Polars (lazy too), Arrow or Ibis table; DuckDB
        relation; or a database URL (``duckdb://``, ``postgres://``, ``sqlite://``) together with
        ``table`` or ``sql``.
    options
        What one row is; may be spelled as keywords, ``read(source, group="household", …)``.

    Notes
    -----
    Text and integers become labels exactly as written: ``01001`` keeps its zero, in CSV files too.

    Malformed rows are refused with an :class:`~tallytree.errors.InputError`. That such a row exists
    is then visible, to the owner of the data, before anything is released; which row it is, its
    values, group and region never are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"household": [1, 1, 2, 3], "state": ["GA", "GA", "GA", "NY"]})
    >>> read(people, group="household", levels=["state"], root="US", public="groups")
    ConfidentialCounts(Hierarchy(US: 1, state: 2), values hidden)
    """
    shape = checked_shape(options)
    from tallytree.ingest.counting import count_groups  # loads Ibis and DuckDB
    from tallytree.storage.memory import give_back

    public, classes = declared_by(options), classes_of(options)
    counts = count_groups(
        inputs_of(source, options), shape, root=options.root, public=public, entity=options.entity
    )
    give_back()
    return counts if classes is None else in_classes(counts, classes)


def read_values(source: Any, options: ValuesOptions) -> ConfidentialCounts:
    """Count the rows with each value in every leaf region, exactly and inside the engine that holds
    the table; numbers of steps stand where sizes of groups do.
    """
    shape = values_shape(options)
    from tallytree.ingest.counting import Inputs, count_groups  # loads Ibis and DuckDB
    from tallytree.storage.memory import give_back

    public = declared("regions", hierarchy=options.hierarchy)
    inputs = Inputs(
        source,
        hierarchy=options.hierarchy,
        place=options.place(),
        where=part_from(options.where),
    )
    counts = count_groups(inputs, shape, root=options.root, public=public, entity=options.entity)
    give_back()
    return counts


def values_shape(options: ValuesOptions) -> RowShape:
    """What one row of a table of values is, where the options fit together."""
    for name in ("value", "step", "max"):
        if getattr(options, name) in (None, ""):
            raise RequestError(
                f"{name}= (--{name}) is missing: a table of values needs value=, the column, and "
                "step= and max=, which are public and chosen without looking at the data."
            )
    unit = unit_from(options.unit, options.entity, options.contributions)
    levels = (options.levels,) if isinstance(options.levels, str) else tuple(options.levels)
    by = attributes_asked(options.by)
    unlisted = [name for name, values in by if values is None]
    if unlisted:
        raise RequestError(
            f"The values of {unlisted[0]!r} cannot be read off the data, since one row may be the "
            f"only one of its value: give them, {unlisted[0]}=VALUE,VALUE; all others count as "
            "'other'."
        )
    if options.hierarchy is not None and len(levels) != 1:
        raise RequestError(
            "hierarchy= needs levels= to name exactly one column: the region by which it is looked "
            "up."
        )
    if not options.root:
        raise RequestError("root= is the label of the root, a text that is not empty.")
    scale = value_scale(
        str(options.value), step=options.step, least=options.min, largest=options.max
    )
    shape = RowShape(
        None,
        levels,
        size=options.value,
        unit=unit.column or None,
        contributions=unit.contributions,
        by=by,
        closed=closed_of(options.closed, [name for name, _ in by]),
        scale=scale,
    )
    _refuse_unit_of_regions(shape.unit, shape, options.hierarchy)
    return shape


def read_totals(
    table: Any, *, levels: str | Sequence[str] = (), root: str = "total"
) -> ConfidentialCounts:
    """The regions and numbers of groups of a public table of group totals, all groups empty; for
    planning.
    """
    from tallytree.ingest.counting import totals_alone

    names = (levels,) if isinstance(levels, str) else tuple(levels)
    return totals_alone(table, names, root)


def declared_by(options: ReadOptions) -> Declared:
    """What the options declare public."""
    return declared(
        options.public,
        groups=options.groups,
        group_totals=options.group_totals,
        hierarchy=options.hierarchy,
    )


def classes_of(options: ReadOptions) -> SizeClasses | None:
    """The classes that sizes are counted in: named, or those of a wide table; None where sizes are
    themselves.
    """
    wide = [str(size) for size in (options.sizes or {}).values()]
    merged = [text for text in wide if len(set(class_span(text))) > 1]
    if merged and options.classes is not None:
        raise RequestError(
            f"sizes= says the classes already ({', '.join(merged)}); leave out classes=."
        )
    if merged:
        return classes_from(sorted(wide, key=class_span))
    if options.classes is None:
        return None
    classes = classes_from(options.classes)
    if classes.lows[0] > 0 and (options.groups is not None or options.group_totals is not None):
        raise RequestError(
            "A public table of groups brings empty ones, and the classes begin at "
            f"{classes.lows[0]}. Add a class for size "
            "0, or begin the first one there."
        )
    return classes


def checked_shape(options: ReadOptions) -> RowShape:
    """What one row is, where the options fit together."""
    shape = row_shape(options, _wide_columns(options), _people(options))
    _check_attributes(shape, options)
    if options.groups is not None and options.group is None:
        raise RequestError(
            "groups= needs group=, the column by which its rows and those of the data are matched."
        )
    if options.hierarchy is not None and len(shape.levels) != 1:
        raise RequestError(
            "hierarchy= needs levels= to name exactly one column: the region by which it is looked "
            "up."
        )
    if shape.whole_groups and (
        options.public == "groups" or options.groups is not None or options.group_totals is not None
    ):
        raise RequestError(
            "unit='group' protects whole groups, so numbers of groups cannot be public: they would "
            "tell of the group. Say "
            'public="regions", or give a hierarchy=; the release pays for the numbers of groups.'
        )
    _refuse_covering_nobody(shape, options)
    if not options.root:
        raise RequestError("root= is the label of the root, a text that is not empty.")
    return shape


def _refuse_covering_nobody(shape: RowShape, options: ReadOptions) -> None:
    """Refuse public facts read off rows that go with their unit, where its neighbours would have
    other public facts.

    A unit of several rows may have all rows of a group. Where it always has, as with customers
    whose groups are customers, nobody is covered, and the public numbers of groups are exact
    numbers of units. Whether it always has cannot be known without a look at the data.
    """
    unit, listed = shape.unit, options.groups is not None or options.group_totals is not None
    if unit is None or shape.whole_groups or listed:
        return
    if options.public in ("groups", "cells"):
        whole = (
            f", or unit='group' with it, which protects each {unit} with its place"
            if unit == shape.group
            else ""
        )
        raise RequestError(
            f"With unit={unit!r} the numbers of groups cannot be read off the data "
            f"(public={options.public!r}): all rows "
            f"of a group may be those of one {unit}, whose removal takes the group away, so that "
            "the promise would not "
            f'cover that {unit}. Say public="regions" (--public regions){whole}; the release then '
            "pays for the numbers of "
            'groups (for degrees: public="none"). Or give a register of groups that does not '
            "depend on the rows: groups= "
            "(--groups) or group_totals= (--group-totals)."
        )
    _refuse_unit_of_regions(unit, shape, options.hierarchy)


def _refuse_unit_of_regions(unit: str | None, shape: RowShape, hierarchy: Any) -> None:
    """Refuse regions that are units, unless a public table lists them."""
    if unit is not None and unit in shape.levels and hierarchy is None:
        raise RequestError(
            f"With unit={unit!r} the regions cannot be read off the column {unit!r}: removing a "
            f"{unit} would remove a "
            "region, so that the promise would cover nobody. Give a public table of regions: "
            "hierarchy= (--hierarchy)."
        )


def _people(options: ReadOptions) -> People:
    """The classes that entities are counted by."""
    by = (options.people_by,) if isinstance(options.people_by, str) else tuple(options.people_by)
    asked = attributes_asked(options.people)
    if asked and options.classes is not None:
        raise RequestError(
            "Sizes in classes do not say how many entities there are, so people= cannot agree with "
            "them; leave out classes=."
        )
    return People(classes_of_entities(asked), by).checked(
        Attributes(*_named(attributes_asked(options.by)))
    )


def _named(asked: Sequence[tuple[str, Any]]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    return tuple(name for name, _ in asked), tuple((OTHER,) for _ in asked)


def _check_attributes(shape: RowShape, options: ReadOptions) -> None:
    """Refuse attributes whose protection would not be what a reader of the statement expects."""
    if not shape.by:
        if options.public == "cells":
            raise RequestError(
                'public="cells" goes with by=, the columns with attributes of groups.'
            )
        return
    if shape.whole_groups:
        unlisted = [name for name, values in shape.by if values is None]
        if options.public == "cells":
            raise RequestError(
                "unit='group' protects whole groups with their attributes; say public=\"regions\"."
            )
        if unlisted:
            raise RequestError(
                f"With unit='group' the values of {unlisted[0]!r} cannot be read off the data, "
                "since one group may be the only "
                f"one of its value: give them, {unlisted[0]}=VALUE,VALUE; all others count as "
                "'other'."
            )
        return
    if options.public != "cells" and options.groups is None and options.group_totals is None:
        raise RequestError(
            "by= needs public numbers of groups per region and combination of values, "
            'public="cells" (--public cells) or a '
            "table groups= or group_totals= with the columns, because the attributes of a group "
            "must stay when one of its rows "
            "goes. Of an attribute that follows from the rows (age of the head, children present) "
            "one row can move the whole "
            "group, which no noise for single rows hides; protect whole groups then: unit='group' "
            "(--unit group)."
        )


def _wide_columns(options: ReadOptions) -> tuple[tuple[str, int], ...]:
    """The columns of a wide table with the smallest size of each."""
    found = {column: class_span(str(size)) for column, size in (options.sizes or {}).items()}
    if options.sizes is not None and len({low for low, _ in found.values()}) != len(found):
        raise RequestError("sizes= names a size twice; each column counts sizes of its own.")
    if options.sizes is not None and not found:
        raise RequestError("sizes= names the columns of a wide table and their sizes; it is empty.")
    return tuple((column, low) for column, (low, _) in found.items())


def inputs_of(source: Any, options: ReadOptions) -> Any:
    """The confidential table and the public ones beside it, as :mod:`tallytree.ingest.counting`
    takes them.
    """
    from tallytree.ingest.counting import Inputs

    tables = (options.groups, options.hierarchy, options.group_totals)
    return Inputs(source, *tables, options.place(), part_from(options.where))

"""Options of tables: counts of rows by region and attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tallytree.options.base import option
from tallytree.options.groups import NamedUnit, Output, Releasing, SourceOptions
from tallytree.options.panels import OUTPUT, PLAN, PUBLIC, TABLE
from tallytree.options.reading import LevelOptions
from tallytree.options.text import comma_names, one_entry


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CellOptions(LevelOptions, NamedUnit, SourceOptions, panel=TABLE):
    """What is counted, and by what.

    Attributes
    ----------
    by
        Attributes with their public values, ``"sex=f,m"`` or a mapping. Of a column of numbers the
        values are numbers and classes of them, ``"age=0-4,5-17,65+"``; ``"age=0-100"`` alone means
        every whole number from 0 to 100. Whatever stands on no list, or is missing, is ``"other"``.
    closed
        Attributes of ``by`` that have no ``"other"``: rows with another value, or none, are left
        out.
    ordered
        Attributes of ``by`` whose values have the order of their list, so that ranges of them are
        asked for. Those of numbers are.
    classes
        Public classes of the values of an ordered attribute, ``"age=0-17,18-64,65-100"``, that
        questions, pages and exports may name beside its values.
    count
        Column that says how many rows a row stands for.
    rule
        Public rules that every row keeps, ``"age<15 => marital=single"``: no released count breaks
        one, and rows of the data that do are left out.
    rules
        File of such rules: text with one per line, or a table (CSV, Parquet) of the possible
        combinations of its attributes, so that one follows from others.
    hierarchy
        Public table of all regions, as for :func:`tallytree.read`. Without one the regions in the
        data are public.
    """

    by: str | Sequence[str] | Mapping[str, Sequence[str]] = option(
        (),
        help="Attribute with its public values, such as sex=f,m or age=0-100. Repeatable.",
        metavar="COLUMN=VALUES",
        text=one_entry,
        repeats=True,
    )
    closed: str | Sequence[str] = option(
        (),
        help="Attributes of --by without a value other, comma-separated: rows with none of the "
        "values are left out.",
        text=comma_names,
        rare=True,
    )
    ordered: str | Sequence[str] = option(
        (),
        help="Attributes of --by whose values are in order, comma-separated; numbers are.",
        text=comma_names,
        rare=True,
    )
    classes: str | Sequence[str] | Mapping[str, Sequence[str]] = option(
        (),
        help="Classes of an ordered attribute, such as age=0-17,18-64,65-100. Repeatable.",
        metavar="COLUMN=CLASSES",
        text=one_entry,
        repeats=True,
        rare=True,
    )
    count: str | None = option(
        None, help="Column that says how many rows a row stands for.", rare=True
    )
    rule: Any = option(
        (),
        help='What every row keeps, such as "age<15 => marital=single". Repeatable.',
        metavar="RULE",
        text=one_entry,
        repeats=True,
    )
    rules: str | None = option(
        None,
        help="File of rules, one per line, or a table of the possible combinations of attributes.",
        rare=True,
    )
    hierarchy: Any = option(
        None,
        help="Separate table of regions: region, then one column per level.",
        panel=PUBLIC,
        rare=True,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TableOptions(CellOptions, Releasing, panel=PLAN):
    """How to release a table; see :func:`tallytree.table`.

    Examples
    --------
    >>> options = tt.TableOptions(by={"sex": ["f", "m"]}, closed=["sex"], epsilon=1)
    >>> options.by
    {'sex': ['f', 'm']}

    Attributes
    ----------
    want
        Tables that matter, each a level and attributes: ``"county:age"``, ``"state:age,sex"``,
        ``"state"``. All of them where left out.
    known
        Public tables of known totals: region, attributes, count. They are kept exactly and never
        compared with the data; the loss is then that of replacing one unit by another.
    """

    want: str | Sequence[str] = option(
        (),
        help="A table that matters, such as county:age or state:age,sex. Repeatable; all when left "
        "out.",
        metavar="LEVEL:ATTRIBUTES",
        text=one_entry,
        repeats=True,
    )
    known: Any = option(
        (),
        help="Table of known totals, kept exactly: region, attributes, count. Repeatable.",
        metavar="FILE",
        text=one_entry,
        repeats=True,
        rare=True,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TableOutput(Output, panel=OUTPUT):
    """Where a table goes, or a look ahead.

    Attributes
    ----------
    dry_run
        Predict the errors of every table, and pay and write nothing. Regions alone are read.
    """

    dry_run: bool = option(
        False, help="Predict the error of every table; read regions alone, pay and write nothing."
    )


EVALUATES_WITH = frozenset(field.name for field in fields(CellOptions))
"""What may be said of the data that a table is compared with."""

"""Options of tables of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallytree.options.base import option
from tallytree.options.choices import Split
from tallytree.options.groups import NamedUnit, Output, Releasing, SourceOptions
from tallytree.options.panels import OUTPUT, PLAN, PUBLIC, TABLE
from tallytree.options.reading import LevelOptions
from tallytree.options.text import comma_names, one_entry, one_or_many
from tallytree.privacy.budget import Exact


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ValuesOptions(LevelOptions, NamedUnit, SourceOptions, Releasing, panel=TABLE):
    """What the rows of a table of values are, and how to release it; see :func:`tallytree.values`.

    Examples
    --------
    >>> options = tt.ValuesOptions(value="income", step=100, max=200_000, epsilon=1)
    >>> options.value
    'income'

    Attributes
    ----------
    value
        Column of numbers; each row has one. Rows without a number there are left out.
    step
        Public: values are rounded down to a multiple of it, exactly: 0.3 is three steps of 0.1.
    max, min
        Public bounds, multiples of the step; values beyond count as the bound. ``min`` is 0 where
        it is not given. Choose them without looking at the data.
    by
        Columns with attributes, each with its public values: ``"sex=f,m"``, or a mapping from
        columns to values. What stands on no list, or is missing, is ``"other"``.
    closed
        Attributes of ``by`` whose list of values is complete, so that there is no ``"other"``. Data
        with another value, or none, are refused.
    hierarchy
        Public table of all regions: a column of the same name as the only one in ``levels``, then
        their labels from the top level to the leaf. Without one the regions are read off the data
        and are public.
    budget
        ``"auto"`` (default) gives each level a share in proportion to n^¾, n its number of regions by
        values of attributes; or ``"equal"``, or shares that add up to 1, root first.
    """

    value: str | None = option(None, help="Column of values, one per row.", needed="")
    step: Exact | None = option(
        None, help="Public step: values are rounded down to a multiple.", panel=PUBLIC, needed=""
    )
    max: Exact | None = option(
        None, help="Public bound: larger values count as it.", panel=PUBLIC, needed=""
    )
    min: Exact = option(
        0, help="Public bound: smaller values count as it; 0 when left out.", panel=PUBLIC
    )
    by: str | Sequence[str] | Mapping[str, Sequence[str] | None] = option(
        (),
        help="Column with an attribute and its values, such as sex=f,m. Repeatable.",
        metavar="COLUMN=VALUES",
        text=one_entry,
        repeats=True,
    )
    closed: str | Sequence[str] = option(
        (),
        help="Attributes of --by whose list is complete, comma-separated: they have no value other.",
        text=comma_names,
        rare=True,
    )
    hierarchy: Any = option(
        None,
        help="Separate table of regions: region, then one column per level.",
        panel=PUBLIC,
        rare=True,
    )
    budget: Split | Sequence[Exact] = option(
        "auto",
        help="auto, equal, or one share per level, root first: 0.15,0.25,0.6",
        text=one_or_many,
        panel=PLAN,
        rare=True,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ValuesOutput(Output, panel=OUTPUT):
    """Where a command writes a table of values, and how often it simulates it for intervals.

    Attributes
    ----------
    intervals
        Simulated releases behind the intervals of medians, means and the rest; 0 leaves them out.
    """

    intervals: int = option(
        40,
        help="Simulate the release this often for the intervals of statistics; 0 leaves them out.",
        least=0,
    )

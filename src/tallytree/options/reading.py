"""Options that say what the rows of a table are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallytree.model.unit import ENTITY
from tallytree.options.base import Options, option
from tallytree.options.choices import Engine, Public
from tallytree.options.groups import SourceOptions
from tallytree.options.panels import EXPERTS, PRIVACY, PUBLIC, TABLE
from tallytree.options.text import comma_names, one_entry
from tallytree.options.text import sizes as sizes_text


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LevelOptions(Options, panel=TABLE):
    """Which columns name regions.

    Attributes
    ----------
    levels
        Columns that name the regions of each row, from the level below the root to the leaf. None:
        the root alone. Regions are known by their path, so equal labels under different parents are
        different regions.
    root
        Label of the root.
    """

    levels: str | Sequence[str] = option(
        (),
        help="Level columns below the root, comma-separated, largest regions first.",
        text=comma_names,
        needed="unless there is but the root",
    )
    root: str = option("total", help="Label of the root.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RegionOptions(LevelOptions, panel=TABLE):
    """Which columns name groups and regions.

    Attributes
    ----------
    group
        Column that names the group of each row.
    """

    group: str | None = option(
        None,
        help="Column that identifies the group (household, taxi …).",
        needed="unless with --size",
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PublicOptions(Options, panel=PUBLIC):
    """What is public about groups and regions.

    Attributes
    ----------
    groups
        Public table of all groups with the columns ``group`` and ``levels``. Brings in the groups
        without any entity and makes the number of groups per region public. Where the rows have no
        level columns, it gives their regions.
    hierarchy
        Public table of all regions: a column of the same name as the only one in ``levels`` (or
        else its first column), then their labels from the top level to the leaf. Regions without
        data then exist too. Labels that do not tell the regions apart are followed by the region
        itself.
    group_totals
        Public table of all leaf regions, one row each: the columns ``levels`` and the number of
        groups in ``groups``. Groups that the data do not have are empty ones.
    public
        What is taken as public and published as it is: ``"groups"``, the regions in the data and
        the number of groups in each of them; ``"regions"``, the regions alone, so that the release
        pays for the numbers of groups; ``"cells"``, with ``by``, the number of groups of each
        combination of values in each region. Needed unless one of the tables says it.
    """

    groups: Any = option(None, help="Public table of groups, so that empty groups count.")
    hierarchy: Any = option(
        None, help="Separate table of regions: region, then one column per level.", rare=True
    )
    group_totals: Any = option(
        None, help="Public table of regions and their number of groups, one row per region."
    )
    public: Public | None = option(
        None,
        help="What is held fixed: groups, regions (totals are then paid for), or with --by cells.",
        needed="unless a table says it",
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReadOptions(RegionOptions, PublicOptions, SourceOptions, panel=TABLE):
    """What one row of a table is; see :func:`tallytree.read`.

    Examples
    --------
    >>> options = tt.ReadOptions(group="household", levels=["state"], public="groups")
    >>> tt.read(people, options)
    ConfidentialCounts(Hierarchy(total: 1, state: 2), values hidden)

    Attributes
    ----------
    by
        Columns with attributes of groups (tenure, age of the head …), each alone or with its public
        values: ``"tenure"``, ``"tenure=owned,rented"``, or a mapping from columns to values.
        Whatever stands on no list, or is missing, is ``"other"``. Without a list the values are
        those of the public cells or tables.
    closed
        Attributes of ``by`` whose list of values is complete, so that there is no ``"other"``. Data
        with another value, or none, are refused.
    people
        Columns with classes of entities (age, sex …), each with its public values,
        ``"age=0-17,18-64,65+"`` or a mapping: the release then also says how many entities of each
        class every region has, in agreement with the sizes. Values that stand on no list, or are
        missing, are ``"other"``.
    people_by
        Attributes of groups, of those in ``by``, that people are counted by too.
    sizes
        Rows are leaf regions, and these columns hold their numbers of groups: ``{"hh1": 1, "hh2":
        2, "hh7plus": "7+"}``. Where one of them stands for several sizes, the release is in these
        classes.
    classes
        Public classes that sizes are counted in, such as ``["1-4", "5-9", "10+"]``: nothing is
        measured or released about sizes within one. Sizes outside count in the first or the last
        class: refusing them would show that they exist.
    size
        Rows are groups, and this column holds their size. ``group`` is then optional, and only
        checked.
    count
        With ``size``: rows say how many groups of that size their leaf has.
    quantity
        Rows are entities, and the size of a group is the sum of this column over its entities (σ_u
        of fioretto2021 §3).
    max_quantity
        Public bound on what one entity adds to the size of its group; needed with ``quantity``.
        Larger quantities are lowered to it inside the engine: refusing them would show that they
        exist.
    entity
        What one entity is called in the privacy statement.
    unit
        What is protected: ``"entity"``, one row; ``"group"``, a whole group with all its rows and
        its place, the number of groups per region then being confidential too; or the column that
        names a person with several rows, in one group or many (``"column:group"`` for a column of a
        reserved name).
    contributions
        Public bound on the rows that count of one unit; needed with a ``unit`` column. Of further
        rows it is decided inside the engine which ones count, from the unit's own rows alone (see
        :mod:`tallytree.ingest.contribution`). With ``people`` and ``unit="group"``: bound on the
        entities that count of one group.
    """

    by: str | Sequence[str] | Mapping[str, Sequence[str] | None] = option(
        (),
        help="Column with an attribute of groups, such as tenure, or tenure=owned,rented with its "
        "values. Repeatable.",
        metavar="COLUMN[=VALUES]",
        text=one_entry,
        repeats=True,
    )
    closed: str | Sequence[str] = option(
        (),
        help="Attributes of --by whose list is complete, comma-separated: they have no value other.",
        text=comma_names,
        rare=True,
    )
    people: str | Sequence[str] | Mapping[str, Sequence[str] | None] = option(
        (),
        help="Column with a class of entities and its values, such as sex=f,m: people are counted "
        "too. Repeatable.",
        metavar="COLUMN=VALUES",
        text=one_entry,
        repeats=True,
        rare=True,
    )
    people_by: str | Sequence[str] = option(
        (),
        help="With --people: attributes of --by that people are counted by too, comma-separated.",
        text=comma_names,
        rare=True,
    )
    sizes: Mapping[str, int | str] | None = option(
        None,
        help="Wide tables: columns and the sizes that they count, as in hh1=1,hh2=2,hh7plus=7+.",
        text=sizes_text,
        rare=True,
    )
    classes: str | Sequence[str] | None = option(
        None,
        help="Public classes that sizes are counted in, as in 1-4,5-9,10+.",
        text=comma_names,
        rare=True,
    )
    size: str | None = option(None, help="Column with the size: rows are groups already.")
    count: str | None = option(
        None, help="Column with the number of groups: rows are (leaf, size, how many).", rare=True
    )
    quantity: str | None = option(
        None, help="Column to add up per group instead of counting rows.", rare=True
    )
    max_quantity: int | None = option(
        None, help="Public bound on the quantity of one row.", rare=True
    )
    entity: str | None = option(
        None,
        help="What one row is called in the privacy statement (person, trip …).",
        panel=PRIVACY,
        rare=True,
    )
    unit: str = option(
        ENTITY,
        help="What is protected: entity (one row), group, or the column that names a person.",
        panel=PRIVACY,
    )
    contributions: int | None = option(
        None, help="Public bound on the rows that count of one --unit.", panel=PRIVACY
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class EngineOptions(Options, panel=EXPERTS):
    """Which engine a command reads with.

    Attributes
    ----------
    engine, master
        ``"spark"`` for data and hierarchies that outgrow one machine, and the cluster, such as
        ``spark://host:7077``.
    """

    engine: Engine = option(
        "local", help="local, or spark for data and hierarchies that outgrow one machine."
    )
    master: str | None = option(
        None, help="With --engine spark: the cluster, for example spark://host:7077 or local[4]."
    )

"""Options that say what the rows of a table are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallytree.model.confidential import ENTITY
from tallytree.options.base import Options, option
from tallytree.options.choices import Engine, Public
from tallytree.options.groups import SourceOptions
from tallytree.options.text import comma_names


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RegionOptions(Options):
    """Which columns name groups and regions.

    Attributes
    ----------
    group
        Column that names the group of each row.
    levels
        Columns that name the regions of each row, from the level below the root to the leaf. None: the root alone. Regions
        are known by their path, so equal labels under different parents are different regions.
    root
        Label of the root.
    """

    group: str | None = option(None, help="Column that identifies the group (household, taxi …).")
    levels: str | Sequence[str] = option(
        (), help="Level columns below the root, comma-separated, largest regions first.", text=comma_names
    )
    root: str = option("total", help="Label of the root.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PublicOptions(Options):
    """What is public about groups and regions.

    Attributes
    ----------
    groups
        Public table of all groups with the columns ``group`` and ``levels``. Brings in the groups without any entity and
        makes the number of groups per region public. Where the rows have no level columns, it gives their regions.
    groups_private
        The number of groups per region is confidential too, and the release pays for it.
    hierarchy
        Public table of all regions: a column of the same name as the only one in ``levels`` (or else its first column),
        then their labels from the top level to the leaf. Regions without data then exist too. Labels that do not tell the
        regions apart are followed by the region itself.
    group_totals, public
        Reserved: a public table of the number of groups per region; and what is public, ``"groups"`` or ``"regions"``.
        Refused so far.
    """

    groups: Any = option(None, help="Public table of groups, so that empty groups count.")
    groups_private: bool = option(False, help="Spend budget on group totals: they are not public.")
    hierarchy: Any = option(None, help="Separate table of regions: region, then one column per level.")
    group_totals: Any = option(None, help="Reserved for a public table of numbers of groups; refused so far.")
    public: Public | None = option(None, help="Reserved for what is public, groups or regions; refused so far.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReadOptions(RegionOptions, PublicOptions, SourceOptions):
    """What one row of a table is; see :func:`tallytree.read`.

    Attributes
    ----------
    size
        Rows are groups, and this column holds their size. ``group`` is then optional, and only checked.
    count
        With ``size``: rows say how many groups of that size their leaf has.
    quantity
        Rows are entities, and the size of a group is the sum of this column over its entities (σ_u of fioretto2021 §3).
    max_quantity
        Public bound on what one entity adds to the size of its group; needed with ``quantity``. Larger quantities are
        lowered to it inside the engine: refusing them would show that they exist.
    entity
        What one entity is called in the privacy statement.
    unit
        What is protected: ``"entity"``, one row; or the column that names a person with several rows, in one group or many.
    contributions
        Public bound on the rows that count of one unit; needed with a ``unit`` column. Of further rows it is decided inside
        the engine which ones count, from the unit's own rows alone (see :mod:`tallytree.ingest.contribution`).
    """

    size: str | None = option(None, help="Column with the size: rows are groups already.")
    count: str | None = option(None, help="Column with the number of groups: rows are (leaf, size, how many).")
    quantity: str | None = option(None, help="Column to add up per group instead of counting rows.")
    max_quantity: int | None = option(None, help="Public bound on the quantity of one row.")
    entity: str | None = option(None, help="What one row is called in the privacy statement (person, trip …).")
    unit: str = option(ENTITY, help="What is protected: entity (one row), or the column that names a person.")
    contributions: int | None = option(None, help="Public bound on the rows that count of one --unit.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class EngineOptions(Options):
    """Which engine a command reads with.

    Attributes
    ----------
    engine, master
        ``"spark"`` for data and hierarchies that outgrow one machine, and the cluster, such as ``spark://host:7077``.
    """

    engine: Engine = option("local", help="local, or spark for data and hierarchies that outgrow one machine.")
    master: str | None = option(
        None, help="With --engine spark: the cluster, for example spark://host:7077 or local[4]."
    )

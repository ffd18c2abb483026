"""Reading confidential tables into exact counts. The engine, and with it Ibis, is loaded when the first table is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tallytree.errors import RequestError
from tallytree.ingest.shapes import row_shape
from tallytree.model.confidential import ENTITY


def read(
    source: Any,
    *,
    group: str | None = None,
    levels: str | Sequence[str] = (),
    size: str | None = None,
    count: str | None = None,
    quantity: str | None = None,
    max_quantity: int | None = None,
    groups: Any = None,
    groups_private: bool = False,
    hierarchy: Any = None,
    root: str = "total",
    table: str | None = None,
    sql: str | None = None,
    entity: str | None = None,
    unit: str = ENTITY,
    contributions: int | None = None,
    counter: Callable[..., Any] | None = None,
) -> Any:
    """Count the groups of each size in every leaf region, exactly and inside the engine that holds the table.

    Parameters
    ----------
    source
        Parquet or CSV file, glob or folder; pandas, Polars (lazy too), Arrow or Ibis table; or a database URL
        (``duckdb://``, ``postgres://``, ``sqlite://``) together with ``table`` or ``sql``.
    group
        Column that names the group of each row.
    levels
        Columns that name the regions of each row, from the level below the root to the leaf. None: the root alone. Regions
        are known by their path, so equal labels under different parents are different regions.
    size
        Rows are groups, and this column holds their size. ``group`` is then optional, and only checked.
    count
        With ``size``: rows say how many groups of that size their leaf has.
    quantity
        Rows are entities, and the size of a group is the sum of this column over its entities (σ_u of fioretto2021 §3).
    max_quantity
        Public bound on what one entity adds to the size of its group; needed with ``quantity``. Larger quantities are
        lowered to it inside the engine: refusing them would show that they exist.
    groups
        Public table of all groups with the columns ``group`` and ``levels``. Brings in the groups without any entity and
        makes the number of groups per region public. Where the rows have no level columns, it gives their regions.
    groups_private
        The number of groups per region is confidential too, and the release pays for it.
    hierarchy
        Public table of all regions: a column of the same name as the only one in ``levels`` (or else its first column),
        then their labels from the top level to the leaf. Regions without data then exist too. Labels that do not tell the
        regions apart are followed by the region itself.
    root
        Label of the root.
    table, sql
        Which table of the database, or which query on it.
    entity
        What one entity is called in the privacy statement.
    unit
        What is protected: ``"entity"``, one row; ``"group"``, a whole group with all its rows and its place, the number of
        groups per region then being confidential too; or the column that names a person with several rows, in one group or many
        (``"column:group"`` for a column of a reserved name).
    contributions
        Public bound on the rows that count of one unit; needed with a ``unit`` column. Of further rows it is decided inside
        the engine which ones count, from the unit's own rows alone (see :mod:`tallytree.ingest.contribution`).
    counter
        What counts instead of this process, where the table lies elsewhere; see :mod:`tallytree.distributed`.

    Returns
    -------
    ConfidentialCounts
        Or what ``counter`` returns.

    Notes
    -----
    Text and integers become labels exactly as written: ``01001`` keeps its zero, in CSV files too.

    Malformed rows are refused with an :class:`~tallytree.errors.InputError`. That such a row exists is then visible, to
    the owner of the data, before anything is released; which row it is, its values, group and region never are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = pa.table({"household": [1, 1, 2, 3], "state": ["GA", "GA", "GA", "NY"]})
    >>> read(people, group="household", levels=["state"], root="US")
    ConfidentialCounts(Hierarchy(US: 1, state: 2), values hidden)
    """
    shape = row_shape(
        group=group,
        levels=levels,
        size=size,
        count=count,
        quantity=quantity,
        max_quantity=max_quantity,
        unit=unit,
        contributions=contributions,
    )
    if groups is not None and group is None:
        raise RequestError("groups= needs group=, the column by which its rows and those of the data are matched.")
    if shape.whole_groups and groups is not None:
        raise RequestError(
            "unit='group' protects whole groups, so a public table of groups= cannot be given: it would tell of the group. "
            "Leave it out; the release pays for the numbers of groups."
        )
    groups_private = groups_private or shape.whole_groups
    if groups is not None and groups_private:
        raise RequestError("groups= is a public table, so groups_private= contradicts it; leave one of them out.")
    if hierarchy is not None and len(shape.levels) != 1:
        raise RequestError("hierarchy= needs levels= to name exactly one column: the region by which it is looked up.")
    if not isinstance(root, str) or not root:
        raise RequestError(f"root= is the label of the root, a text that is not empty; got {root!r}.")
    from tallytree.ingest.counting import Inputs, count_groups  # loads Ibis and DuckDB

    inputs = Inputs(source, groups=groups, hierarchy=hierarchy, table=table, sql=sql)
    count_them = count_groups if counter is None else counter
    return count_them(inputs, shape, root=root, groups_private=groups_private, entity=entity)

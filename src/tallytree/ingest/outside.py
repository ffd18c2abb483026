"""What is public about a table, read without looking at a size: its regions and, where public, its
numbers of groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.ingest.counting import Opened, find_regions, open_inputs, totals_of
from tallytree.ingest.engine import Session, open_session
from tallytree.ingest.group_sizes import Rows
from tallytree.ingest.public import Declared
from tallytree.ingest.read import checked_shape, declared_by, inputs_of
from tallytree.ingest.regions import Regions
from tallytree.ingest.shapes import RowShape
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.reading import ReadOptions


@dataclass(frozen=True, eq=False)
class Outside:
    """The public outside of a table.

    Attributes
    ----------
    hierarchy
        Its regions.
    n_groups
        Groups per leaf, and combination of values of attributes; None where they are not public,
        and then nothing about them was read.
    public
        What was declared public, in words.
    shape
        What a row is.
    doubts
        What the columns alone make doubtful, one sentence each.
    attributes
        Attributes of groups and their public values.
    """

    hierarchy: Hierarchy
    n_groups: IntArray | None
    public: Declared
    shape: RowShape
    doubts: tuple[str, ...]
    attributes: Attributes = NO_ATTRIBUTES

    @property
    def leaf_groups(self) -> IntArray | None:
        """Groups per leaf, whatever their attributes."""
        if self.n_groups is None:
            return None
        return self.n_groups.reshape(-1, self.attributes.n_cells).sum(axis=1)


def read_outside(source: Any, options: ReadOptions) -> Outside:
    """The regions of a table and, where they are public, its numbers of groups. Sizes are not asked
    for.
    """
    shape, public = checked_shape(options), declared_by(options)
    with open_session() as session:
        opened, rows = open_inputs(
            session, inputs_of(source, options), shape, groups_private=not public.groups_public
        )
        rows, regions = find_regions(session, rows, opened, shape, options.root)
        totals = None
        if public.groups_public:
            totals = (
                totals_of(opened.totals, regions, shape).groups
                if opened.totals is not None
                else _groups_per_leaf(session, rows, regions, opened)
            )
    return Outside(
        regions.hierarchy,
        totals,
        public,
        shape,
        _doubts_about_columns(opened, shape),
        regions.attributes,
    )


def _groups_per_leaf(session: Session, rows: Rows, regions: Regions, opened: Opened) -> IntArray:
    """Numbers of groups, counted by their names or rows: no column of sizes takes part."""
    table = rows.table
    if "listed" in table.columns:
        table = table.filter(table.listed == 1)
    named = table.g.nunique() if rows.has_group else table.count()
    n = table.n.sum() if "n" in table.columns else named
    counted = session.bring(
        table.group_by(rows.keys).agg(n=n) if rows.keys else table.agg(n=n), opened.regions_name
    )
    found = np.zeros(regions.hierarchy.n_leaves * regions.attributes.n_cells, dtype=np.int64)
    if not rows.keys:
        found[:] = session.fetch(counted, opened.regions_name)["n"].to_numpy()
        return found
    numbered = session.fetch(
        counted.inner_join(session.register(regions.leaf_of_key), rows.keys).select("leaf", "n"),
        opened.regions_name,
    )
    found[numbered["leaf"].to_numpy()] = numbered["n"].to_numpy()
    return found


def _doubts_about_columns(opened: Opened, shape: RowShape) -> tuple[str, ...]:
    if opened.groups is not None and shape.size is not None and shape.size in opened.groups.columns:
        return (
            f"Column {shape.size!r}, named as the size, is also in {opened.groups.name}, the "
            "public table of groups: is it the "
            "name of a group? A public size needs no release.",
        )
    return ()

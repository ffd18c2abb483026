"""From the leaves that a query found to the hierarchy, and to the number of each leaf in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import InputError
from tallytree.ingest.problems import not_on_list
from tallytree.ingest.shapes import RowShape
from tallytree.model.arrays import IntArray, LabelArray
from tallytree.model.attributes import NO_ATTRIBUTES, OTHER, Attributes
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_columns


@dataclass(frozen=True)
class Regions:
    """The hierarchy, and the number of the leaf that each key stands for.

    Attributes
    ----------
    hierarchy
        Leaves sorted by their labels.
    leaf_of_key
        Arrow table of the key columns and ``leaf``.
    remarks
        What the user should know about the regions, in sentences.
    attributes
        Attributes of groups. With some, ``leaf`` numbers leaf by leaf their combinations of values.
    """

    hierarchy: Hierarchy
    leaf_of_key: pa.Table
    remarks: tuple[str, ...] = ()
    attributes: Attributes = NO_ATTRIBUTES


@dataclass(frozen=True)
class RegionTable:
    """A public table of all regions: ``labels`` has a text column per level (``t0`` …) and
    ``region`` to find them by.
    """

    labels: pa.Table
    level_names: tuple[str, ...]
    name: str


@dataclass(frozen=True, eq=False)
class TotalsTable:
    """A public table of all leaves, sorted: ``labels`` has a text column per level (``t0`` …),
    ``groups`` their groups.
    """

    labels: pa.Table
    groups: IntArray
    name: str

    def regions(self, n_levels: int) -> TotalsTable:
        """The leaves alone, by their first labels, without the attributes that further labels are."""
        texts = self.labels.column_names
        if n_levels == len(texts):
            return self
        leaves = (
            self.labels.select(texts[:n_levels])
            .group_by(texts[:n_levels], use_threads=False)
            .aggregate([])
        )
        return TotalsTable(leaves, np.zeros(len(leaves), dtype=np.int64), self.name)


def regions_from_leaves(leaves: pa.Table, level_names: Sequence[str], root: str) -> Regions:
    """The hierarchy whose leaves are those of a table with columns ``t0`` … (labels as text),
    sorted by them.

    All other columns are the key.
    """
    texts = [f"t{level}" for level in range(len(level_names))]
    labels = [label_array(leaves[text]) for text in texts]
    hierarchy = hierarchy_from_columns(level_names, labels, root=root)
    leaf_of_key = leaves.drop_columns(texts).append_column("leaf", pa.array(np.arange(len(leaves))))
    n_distinct = [pc.count_distinct(leaves[text]).as_py() for text in texts]
    return Regions(hierarchy, leaf_of_key, repeated_labels(hierarchy, n_distinct))


def root_alone(root: str) -> Regions:
    """The hierarchy of one region; there is no key to look for."""
    return Regions(hierarchy_from_columns((), (), root=root), pa.table({"leaf": pa.array([0])}))


def regions_from_table(leaves: pa.Table, table: RegionTable, root: str) -> Regions:
    """The hierarchy of a separate table; ``leaves`` holds the key and the region (``t0``) of those
    that have rows.
    """
    found = regions_from_leaves(table.labels, table.level_names, root)
    matched = leaves.rename_columns({"t0": "region"}).join(
        found.leaf_of_key, "region", join_type="left outer"
    )
    if matched["leaf"].null_count:
        raise InputError(
            f"The data has regions that {table.name} lacks; add them there, and check that both "
            "write them alike "
            "(01001 and 1001 are different regions)."
        )
    return Regions(found.hierarchy, matched.drop_columns(["region"]), found.remarks)


def regions_from_totals(
    leaves: pa.Table, totals: TotalsTable, level_names: Sequence[str], root: str
) -> Regions:
    """The hierarchy of a table of group totals; ``leaves`` holds the key and the labels of those
    that have rows.
    """
    found = regions_from_leaves(
        totals.labels.append_column("key", pa.array(range(len(totals.groups)))), level_names, root
    )
    texts = totals.labels.column_names
    numbered = totals.labels.append_column("leaf", pa.array(np.arange(len(totals.groups))))
    matched = leaves.join(numbered, texts, join_type="left outer")
    if matched["leaf"].null_count:
        raise InputError(
            f"The data has regions that {totals.name} lacks; add them there, and check that both "
            "write them alike."
        )
    return Regions(found.hierarchy, matched.drop_columns(texts), found.remarks)


def by_attributes(
    leaves: pa.Table,
    shape: RowShape,
    find: Callable[[pa.Table], Regions],
    listed: pa.Table | None = None,
) -> Regions:
    """The regions, and the number of the combination of values that each key stands for.

    Parameters
    ----------
    leaves
        Keys with labels of regions and attributes (``t0`` …), sorted by the labels.
    find
        The regions of a table of regions' labels whose key is ``place``.
    listed
        A public table that says which values there are, ``leaves`` itself where there is none.
    """
    texts = [f"t{place}" for place in range(len(shape.labels))]
    of_regions, of_attributes = texts[: len(shape.levels)], texts[len(shape.levels) :]
    place = np.zeros(len(leaves), dtype=np.int64)
    for text in of_regions:
        labels = label_array(leaves[text])
        place[1:] |= labels[1:] != labels[:-1]
    place = np.cumsum(place)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    distinct = {text: leaves[text].take(pa.array(first)) for text in of_regions}
    regions = find(pa.table({**distinct, "place": np.arange(len(first))}))
    told = leaves if listed is None else listed
    attributes = _attributes(shape, [label_array(told[text]) for text in of_attributes])
    leaf = np.zeros(len(first), dtype=np.int64)
    if shape.levels:
        leaf[regions.leaf_of_key["place"].to_numpy()] = regions.leaf_of_key["leaf"].to_numpy()
    number = leaf[place] * attributes.n_cells + cells_of(attributes, leaves.select(of_attributes))
    keys = leaves.drop_columns(texts).append_column("leaf", pa.array(number))
    return Regions(regions.hierarchy, keys, regions.remarks, attributes)


def cells_of(attributes: Attributes, labels: pa.Table) -> IntArray:
    """Number of the combination of values in each row of a table with one column per attribute."""
    cell = np.zeros(len(labels), dtype=np.int64)
    for name, values, column in zip(attributes.names, attributes.values, labels.columns):
        place = pc.index_in(column, value_set=pa.array(values))
        if place.null_count and OTHER not in values:
            raise InputError(not_on_list(name, "the table"))
        other = values.index(OTHER) if OTHER in values else 0
        cell = cell * len(values) + pc.fill_null(place, other).to_numpy().astype(np.int64)
    return cell


def _attributes(shape: RowShape, labels: Sequence[LabelArray]) -> Attributes:
    """The attributes with their lists of values, those without a list with the values found;
    "other" comes last where the list is not complete.
    """
    lists = [
        sorted(set(found)) if given is None else given
        for (_, given), found in zip(shape.by, labels)
    ]
    values = tuple(
        tuple(each)
        if name in shape.closed
        else (*(value for value in each if value != OTHER), OTHER)
        for name, each in zip(shape.attributes, lists)
    )
    return Attributes(shape.attributes, values)


def region_table(name: str, rows: pa.Table, region: str) -> RegionTable:
    """Check a separate hierarchy table, all columns text: one row per region, its labels from the
    top level to the leaf.

    Where the labels do not tell the regions apart, the region itself is the last level: a table
    (county, state) then means counties within states.
    """
    if len(rows) == 0:
        raise InputError(f"{name} has no rows; the hierarchy needs at least one region.")
    for column in rows.column_names:
        if rows[column].null_count:
            raise InputError(
                f"Column {column!r} of {name} has missing values; every region needs all its "
                "labels."
            )
    if pc.count_distinct(rows[region]).as_py() < len(rows):
        raise InputError(
            f"Column {region!r} of {name} names a region twice, so that it would lie under two "
            "parents; "
            "list each region once."
        )
    levels = [column for column in rows.column_names if column != region]
    if not levels or len(rows.group_by(levels).aggregate([])) < len(rows):
        levels.append(region)
    labels = {f"t{level}": rows[column] for level, column in enumerate(levels)}
    return RegionTable(pa.table({**labels, "region": rows[region]}), tuple(levels), name)


def label_array(column: pa.ChunkedArray) -> LabelArray:
    """Labels as Python text; equal labels share one object."""
    codes = column.combine_chunks().dictionary_encode()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.combine_chunks()
    distinct = np.array(codes.dictionary.to_pylist(), dtype=object)
    return (
        distinct[codes.indices.to_numpy(zero_copy_only=False)]
        if len(distinct)
        else np.empty(0, dtype=object)
    )


def alike_labels(hierarchy: Hierarchy, attributes: Attributes) -> tuple[str, ...]:
    """What to say of regions below the same one, and of values, whose labels differ by capitals,
    spaces or leading zeros alone: they count as different ones.
    """
    found = []
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        labels = pa.array(hierarchy.labels_of(here), pa.large_string())
        found += _alike(f"level {hierarchy.level_names[level]!r}", labels, hierarchy.parent[here])
    for name, values in zip(attributes.names, attributes.values):
        listed = pa.array(values, pa.large_string())
        found += _alike(f"attribute {name!r}", listed, np.zeros(len(values), dtype=np.int64))
    return tuple(found)


def _alike(where: str, labels: pa.LargeStringArray, parent: IntArray) -> list[str]:
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(labels))
    plain = pc.if_else(pc.utf8_is_digit(plain), pc.utf8_ltrim(plain, "0"), plain)
    table = pa.table({"plain": plain, "parent": parent, "place": np.arange(len(labels))})
    grouped = table.group_by(["parent", "plain"], use_threads=False).aggregate(
        [("place", "count"), ("place", "min"), ("place", "max")]
    )
    twice = grouped.filter(pc.greater(grouped["place_count"], 1))
    if not len(twice):
        return []
    first = twice.slice(0, 1).to_pylist()[0]
    pair = [labels[first[name]].as_py() for name in ("place_min", "place_max")]
    return [
        f"Labels of {where} differ by capitals, spaces or leading zeros alone, {len(twice):,} times, "
        f"such as {pair[0]!r} and {pair[1]!r}; they count as different ones. Write them alike."
    ]


def repeated_labels(hierarchy: Hierarchy, n_distinct: Sequence[int]) -> tuple[str, ...]:
    """What to say of levels with fewer different labels than regions, ``n_distinct`` of each below
    the root.
    """
    repeated = [
        level
        for level in range(2, hierarchy.n_levels)
        if hierarchy.level_size(level) > n_distinct[level - 1]
    ]
    return tuple(
        f"Some labels of level {hierarchy.level_names[level]!r} occur below more than one region "
        "of level "
        f"{hierarchy.level_names[level - 1]!r}; they count as different regions, told apart by "
        "their paths."
        for level in repeated
    )

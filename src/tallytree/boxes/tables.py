"""The Arrow tables of a map, and back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa

from tallytree.boxes.draft import Measurement
from tallytree.boxes.estimates import MapEstimates
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.bins import Bins
from tallytree.model.box_tree import BoxTree
from tallytree.model.frame import Frame
from tallytree.privacy.budget import written_fraction
from tallytree.storage.folder import Folder

AXES = "axes.parquet"


def boxes_table(estimates: MapEstimates, columns: tuple[str, ...], frame: Frame) -> pa.Table:
    """One row per box, parents before children.

    ``first_`` and ``end_`` columns are in cells of the fine grid, ``low_`` and ``high_`` in
    coordinates. ``leaf`` marks the boxes that tile the map. ``variance`` is that of the box's own
    measurements, null where there is none.
    """
    tree = estimates.tree
    table: dict[str, pa.Array] = {
        "node": pa.array(np.arange(tree.n_nodes)),
        "parent": pa.array(tree.parent),
        "depth": pa.array(tree.depth.astype(np.int32)),
        "leaf": pa.array(estimates.leaves),
    }
    for axis, name in enumerate(columns):
        table[f"first_{name}"] = pa.array(tree.low[:, axis])
        table[f"end_{name}"] = pa.array(tree.high[:, axis])
        table[f"low_{name}"] = pa.array(frame.lines(axis, tree.low[:, axis]))
        table[f"high_{name}"] = pa.array(frame.lines(axis, tree.high[:, axis]))
    whole = estimates.published.dtype == np.int64
    table["count"] = pa.array(estimates.published, pa.int64() if whole else pa.float64())
    table["estimate"] = pa.array(estimates.unbiased)
    table["variance"] = pa.array(estimates.variances, mask=~np.isfinite(estimates.variances))
    return pa.table(table)


def layout_table(tree: BoxTree, leaves: BoolArray, columns: tuple[str, ...]) -> pa.Table:
    """The boxes alone, in cells of the fine grid."""
    table: dict[str, pa.Array] = {"parent": pa.array(tree.parent), "leaf": pa.array(leaves)}
    for axis, name in enumerate(columns):
        table[f"first_{name}"] = pa.array(tree.low[:, axis])
        table[f"end_{name}"] = pa.array(tree.high[:, axis])
    return pa.table(table)


def noisy_table(measurements: tuple[Measurement, ...]) -> pa.Table:
    """Step, query, share, node, value: every raw noisy count."""
    lengths = [len(one.nodes) for one in measurements]
    step = np.repeat(np.arange(len(lengths)), lengths)
    names = [
        pa.array([text], pa.string())
        for one in measurements
        for text in (one.query, str(one.share))
    ]
    zeros = [np.zeros(length, dtype=np.int64) for length in lengths]
    return pa.table(
        {
            "step": pa.array(step),
            "query": pa.chunked_array(
                [names[2 * i].take(pa.array(zeros[i])) for i in range(len(lengths))], pa.string()
            ),
            "share": pa.chunked_array(
                [names[2 * i + 1].take(pa.array(zeros[i])) for i in range(len(lengths))],
                pa.string(),
            ),
            "node": pa.array(np.concatenate([one.nodes for one in measurements])),
            "value": pa.array(np.concatenate([one.values for one in measurements])),
        }
    )


def estimates_from_table(
    table: pa.Table, columns: list[str], shape: tuple[int, ...]
) -> MapEstimates:
    """The estimates that :func:`boxes_table` wrote."""
    tree, leaves = tree_from_table(table, columns, shape)
    variance = table["variance"].to_numpy(zero_copy_only=False).astype(np.float64)
    count = table["count"].to_numpy()
    published: FloatArray | IntArray = count.astype(
        np.int64 if count.dtype.kind == "i" else np.float64
    )
    return MapEstimates(
        tree,
        np.where(np.isnan(variance), np.inf, variance),
        table["estimate"].to_numpy().astype(np.float64),
        published,
        leaves,
    )


def tree_from_table(
    table: pa.Table, columns: list[str], shape: tuple[int, ...]
) -> tuple[BoxTree, BoolArray]:
    """The boxes of a table, and which of them tile the map."""
    low = np.stack([table[f"first_{name}"].to_numpy() for name in columns], axis=1).astype(np.int64)
    high = np.stack([table[f"end_{name}"].to_numpy() for name in columns], axis=1).astype(np.int64)
    parent = table["parent"].to_numpy().astype(np.int64)
    n_children = np.bincount(parent[1:], minlength=len(parent))
    child_starts = np.concatenate([[1], 1 + np.cumsum(n_children)])
    leaves = np.array(table["leaf"].to_numpy(zero_copy_only=False), dtype=bool)
    return BoxTree(shape, low, high, child_starts), leaves


def measurements_from_table(
    table: pa.Table, variances: dict[str, float]
) -> tuple[Measurement, ...]:
    """The measurements that :func:`noisy_table` wrote; ``variances`` by share, worked out from the
    budget.
    """
    step, node, value = (
        table[name].to_numpy().astype(np.int64) for name in ("step", "node", "value")
    )
    starts = (
        np.searchsorted(step, np.arange(int(step[-1]) + 2))
        if len(step)
        else np.zeros(1, dtype=np.int64)
    )
    found = []
    for first, last in pairwise(starts.tolist()):
        share = table["share"][first].as_py()
        query = table["query"][first].as_py()
        found.append(
            Measurement(
                query,
                written_fraction(share),
                node[first:last],
                value[first:last],
                variances[share],
            )
        )
    return tuple(found)


def axes_tables(axes: tuple[Bins, ...] | None) -> dict[str, pa.Table]:
    """Where edges were stated, a file of one row per bin of each axis: axis, bin, low, high,
    category.
    """
    if axes is None:
        return {}
    rows = [
        (
            number,
            place,
            axis.edges[place],
            axis.edges[place + 1],
            axis.categories[place] if axis.categories else None,
        )
        for number, axis in enumerate(axes)
        for place in range(axis.n_bins)
    ]
    columns = zip(*rows)
    names = ("axis", "bin", "low", "high", "category")
    types = (pa.int64(), pa.int64(), pa.float64(), pa.float64(), pa.string())
    return {
        AXES: pa.table(
            {name: pa.array(column, kind) for name, column, kind in zip(names, columns, types)}
        )
    }


def axes_of_folder(folder: Folder) -> tuple[Bins, ...] | None:
    """The axes that :func:`axes_tables` wrote, where edges were stated."""
    if not folder.has(AXES):
        return None
    table = folder.table(AXES)
    number, low, high = (table[name].to_numpy() for name in ("axis", "low", "high"))
    names = np.array(table["category"].to_pylist(), dtype=object)
    axes = []
    for axis in range(int(number.max()) + 1):
        here = number == axis
        categories = tuple(names[here]) if names[here][0] is not None else None
        axes.append(Bins(np.append(low[here], high[here][-1]), categories))
    return tuple(axes)

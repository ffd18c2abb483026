"""Slow, obvious twins for tables by attributes: margins by adding up rows one by one, least squares
by dense matrices.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tallytree.model.arrays import FloatArray
from tallytree.model.lattice import Family, Lattice

Row = tuple[str, tuple[str | None, ...], int]


def margins_by_hand(groups: list[tuple[tuple[str, ...], tuple[str, ...], int]]) -> Counter[Row]:
    """Groups, each with its path of labels, its values and its size, counted in every region and
    every margin.
    """
    found: Counter[Row] = Counter()
    for path, values, size in groups:
        for depth in range(1, len(path) + 1):
            for shown in product(*((None, value) for value in values)):
                found["/".join(path[:depth]), shown, size] += 1
    return found


def rows_by_hand(table: Any, names: tuple[str, ...]) -> Counter[Row]:
    """The rows of a table of counts in the same form."""
    rows = table.to_pylist()
    return Counter(
        {
            (row["region"], tuple(row[name] for name in names), row["size"]): row["count"]
            for row in rows
        }
    )


def membership(lattice: Lattice, family: Family) -> npt.NDArray[np.float64]:
    """One row per row of a family with ones at its cells, found by comparing labels."""
    tree, attributes = lattice.hierarchy, lattice.attributes
    leaves = tree.paths[tree.level_slice(tree.n_levels - 1)]
    regions = tree.paths[tree.level_slice(family.level)]
    chosen = attributes.margin(family.margin)
    matrix = np.zeros((len(regions) * chosen.n_cells, len(leaves) * attributes.n_cells))
    for (i, region), (j, leaf) in product(enumerate(regions), enumerate(leaves)):
        if leaf != region and not leaf.startswith(region + "/"):
            continue
        for cell in range(attributes.n_cells):
            labels = attributes.labels_of(cell)
            row = i * chosen.n_cells + chosen.cell_of([labels[place] for place in family.margin])
            matrix[row, j * attributes.n_cells + cell] = 1.0
    return matrix


def dense_least_squares(
    lattice: Lattice,
    measured: Mapping[Family, tuple[FloatArray, FloatArray]],
    shared: Mapping[Family, FloatArray] | None = None,
) -> npt.NDArray[np.float64]:
    """Cells that fit all rows best, from the heights and variances of every measured family; column
    by column.

    The finest curves below a row of a family may share an error of a given variance, which adds to
    their covariance.
    """
    finest = membership(lattice, lattice.finest)
    others = {
        family: membership(lattice, family) for family in measured if family != lattice.finest
    }
    n_sizes = next(iter(measured.values()))[0].shape[1]
    columns = []
    for size in range(n_sizes):
        own = measured[lattice.finest][1][:, size]
        covariance = np.diag(own)
        for family, variance in (shared or {}).items():
            for cells, of_row in zip(membership(lattice, family) * own, variance[:, size]):
                covariance += of_row * np.outer(cells, cells) / cells.sum() ** 2
        root = np.linalg.cholesky(np.linalg.inv(covariance)).T
        stacked = np.concatenate(
            [
                root @ finest,
                *(m / np.sqrt(measured[f][1][:, size, None]) for f, m in others.items()),
            ]
        )
        told = [measured[f][0][:, size] / np.sqrt(measured[f][1][:, size]) for f in others]
        told = np.concatenate([root @ measured[lattice.finest][0][:, size], *told])
        columns.append(np.linalg.lstsq(stacked, told, rcond=None)[0])
    return np.stack(columns, axis=1)


def dense_joint_entities(
    lattice: Lattice, sizes: Mapping[Family, Any], groups: Lattice, people: Mapping[Family, Any]
) -> npt.NDArray[np.float64]:
    """Curves of the finest cells that fit sizes and classes best together, where both tell the same
    number of entities.

    One unknown per cell and size, and per cell of people and class; that sums agree is a row of
    nearly infinite weight.
    """
    n_sizes = next(iter(sizes.values())).height.shape[1]
    n_classes = next(iter(people.values())).height.shape[1]
    n_cells, n_rows = lattice.n_rows(lattice.finest), groups.n_rows(groups.finest)
    rows, told = [], []
    for family, curves in sizes.items():
        for size in range(n_sizes):
            block = np.zeros((lattice.n_rows(family), n_cells * n_sizes + n_rows * n_classes))
            block[:, size : n_cells * n_sizes : n_sizes] = membership(lattice, family)
            weight = 1 / np.sqrt(curves.variance[:, size])
            rows.append(block * weight[:, None])
            told.append(curves.height[:, size] * weight)
    for family, counted in people.items():
        for place in range(n_classes):
            block = np.zeros((groups.n_rows(family), n_cells * n_sizes + n_rows * n_classes))
            block[:, n_cells * n_sizes + place :: n_classes] = membership(groups, family)
            weight = 1 / np.sqrt(counted.variance[:, 0])
            rows.append(block * weight[:, None])
            told.append(counted.height[:, place] * weight)
    names = [lattice.attributes.names.index(name) for name in groups.attributes.names]
    same = membership(lattice, Family(groups.finest.level, tuple(names)))
    block = np.concatenate(
        [np.repeat(same, n_sizes, axis=1), -np.repeat(np.eye(n_rows), n_classes, axis=1)], axis=1
    )
    rows.append(1e5 * block)
    told.append(np.zeros(n_rows))
    found = np.linalg.lstsq(np.concatenate(rows), np.concatenate(told), rcond=None)[0]
    return found[: n_cells * n_sizes].reshape(n_cells, n_sizes)

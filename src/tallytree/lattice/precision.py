"""How well tables that are measured on a hierarchy tell of one another: least squares in closed
form.

In the basis of :mod:`tallytree.lattice.tables` a table with equal noise on its numbers tells of
each number of the basis with the same variance, and of one independently of the others. So the
number of every region is one small problem on the tree of regions, alike for all numbers of a
component: what a region's own tables tell is combined with what its children tell together, level
by level upwards, and children share out what their parent knows better, level by level downwards
(hay2010 §4.1 for trees of one number). All variances follow from the precision of components on
levels and the shape of the tree.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.arrays import FloatArray
from tallytree.model.hierarchy import Hierarchy

# What is not measured at all is known this much less well than anything else: it is spread evenly.
UNMEASURED = 1e-9


def own_precision(axes: Axes, variances: Mapping[TableKey, float], n_levels: int) -> FloatArray:
    """What the tables of each level tell of each component, ``(n_levels, n_components)``: one over
    the variance of a number of the basis.
    """
    found = np.zeros((n_levels, len(axes.partitions)))
    parts = np.array(axes.partitions).reshape(len(axes.partitions), len(axes.axes))
    for key, variance in variances.items():
        told = np.all(parts <= np.array(key.parts, dtype=np.int64), axis=1)
        found[key.level, told] += 1 / (variance * model_variance(axes, key.parts))
    return np.maximum(found, UNMEASURED * found.max())


def model_variance(axes: Axes, parts: tuple[int, ...]) -> float:
    """Variance of a number of the basis that a table tells of, in units of the table's own."""
    return float(np.prod([axis.model_variance(part) for axis, part in zip(axes.axes, parts)]))


def excess(axes: Axes, parts: tuple[int, ...]) -> float:
    """How many times as large as in the model the variance of a table's numbers may be."""
    return float(np.prod([axis.excess(part) for axis, part in zip(axes.axes, parts)]))


def upward_precision(hierarchy: Hierarchy, own: FloatArray) -> FloatArray:
    """Precision of each component in each region from its own tables and those of all regions below
    it, ``(n_regions, n_components)``.
    """
    found = own[hierarchy.level_of]
    for level in range(hierarchy.n_levels - 1, 0, -1):
        above, below = hierarchy.level_slice(level - 1), hierarchy.level_slice(level)
        found[above] += 1 / hierarchy.sum_to_parents(level, 1 / found[below])  # type: ignore[arg-type]
    return found


def posterior_variance(hierarchy: Hierarchy, upward: FloatArray) -> FloatArray:
    """Variance of each component in each region from all tables, ``(n_regions, n_components)``.

    A child keeps what its siblings do not tell, and has its part k of what the parent does not
    know: (1 − k)/π + k² V, with k = (1/π) / Σ 1/π.
    """
    found = 1 / upward
    for level in range(1, hierarchy.n_levels):
        here = hierarchy.level_slice(level)
        parent = hierarchy.parent[here]
        own = found[here]
        together = hierarchy.sum_to_parents(level, own)  # type: ignore[arg-type]
        part = own / together[parent - hierarchy.level_starts[level - 1]]
        found[here] = own * (1 - part) + part**2 * found[parent]
    return found

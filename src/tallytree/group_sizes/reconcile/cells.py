"""From estimated staircases of some families of a lattice to cells that add up in every direction.

Curves N(i) are additive over regions and over values of attributes alike. The finest cells are
those of least squares over all measured families (:mod:`tallytree.lattice.least_squares`), one
column per size, and whole numbers are handed down one path through the lattice.

The curves of the finest cells lean on shapes of the families above, so what is wrong with a shape
is wrong in many cells alike, which their variances do not show. Where the sums of the finest curves
stray from what another family tells by more than the variances of both explain, the cells of a row
of that family are taken to share an error of as much, one more unknown per row.

Where all measured families lie on that path they are the levels of a tree, and are reconciled as
such: there least squares take one pass up and one down, sums are kept free of what smoothing bends,
and the finest cells are estimated in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tallytree.group_sizes.estimate.staircases import Staircases
from tallytree.group_sizes.kernels.curves import Curves
from tallytree.group_sizes.reconcile.staircases import (
    Leaves,
    consistent_leaves,
    families_of_leaves,
    shifted,
    whole_leaves,
    window_means,
)
from tallytree.lattice.least_squares import added, least_squares_cells, variance_of
from tallytree.lattice.whole import whole_path
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.count_of_counts import CountsBySize, sum_over_regions
from tallytree.model.lattice import Family, Lattice

_NONE = np.empty((0, 0))


def consistent_cells(
    lattice: Lattice,
    n_groups: IntArray,
    measured: Mapping[Family, Staircases],
    look: Curves,
    max_size: int | None = None,
    shift: FloatArray | None = None,
) -> CountsBySize:
    """Counts by size of the finest cells from the staircases of the measured families, the finest
    among them.

    ``n_groups`` holds the number of groups of every cell, ``look`` the root's curve as the first
    look alone shows it; no group is larger than a public ``max_size``. ``shift`` is what other
    tables add to the number of entities of each cell.
    """
    top = Family(0, ())
    curves = {family: staircases.curves for family, staircases in measured.items()}
    curves.setdefault(top, look)
    height = least_squares_cells(lattice, curves, shared_errors(lattice, curves))
    variance = 1 / added(
        lattice.spread(family, 1 / variance_of(known)) for family, known in curves.items()
    )
    path = whole_path(
        lattice, {family: known.blocks.noise_variance for family, known in measured.items()}
    )
    tree, orders = lattice.nested(path)
    groups = [lattice.sums(family, n_groups)[order] for family, order in zip(path, orders)]
    combined = [
        Curves(lattice.sums(family, height)[order], lattice.sums(family, variance)[order], _NONE)
        for family, order in zip(path, orders)
    ]
    if shift is not None:
        moved = (lattice.sums(family, shift)[order] for family, order in zip(path, orders))
        combined = [shifted(curves, by) for curves, by in zip(combined, moved)]
    told = [
        measured[family].largest.at(order) if family in measured else None
        for family, order in zip(path, orders)
    ]
    leaves = whole_leaves(tree, groups, combined, told, max_size)
    return sum_over_regions(leaves, orders[-1], len(orders[-1]))


def nested_cells(
    lattice: Lattice,
    path: Sequence[Family],
    n_groups: IntArray,
    above: Mapping[Family, Staircases],
    finest: Callable[[IntArray], Callable[[slice], Staircases]],
    look: Curves,
    max_size: int | None = None,
    shift: FloatArray | None = None,
) -> CountsBySize:
    """The same where all measured families lie on one path: a tree, with all that a hierarchy of
    regions has.

    ``above`` holds the measured families above the finest one; ``finest`` estimates pieces of the
    finest, in a given order.
    """
    tree, orders = lattice.nested(path)
    groups = np.concatenate(
        [lattice.sums(family, n_groups)[order] for family, order in zip(path, orders)]
    )
    levels = [
        above[family].at(order) if family in above else None
        for family, order in zip(path[:-1], orders)
    ]
    leaves = Leaves(families_of_leaves(tree), finest(orders[-1]), look.height.shape[1])
    moved = None if shift is None else shift[orders[-1]]
    found = consistent_leaves(tree, groups, levels, leaves, look, max_size, moved)
    return sum_over_regions(found, orders[-1], len(orders[-1]))


def shared_errors(lattice: Lattice, curves: Mapping[Family, Curves]) -> dict[Family, FloatArray]:
    """Variance of the error that the finest curves below each row of the other families share, size
    by size.

    A family's rows are judged together, as sums over regions are in a tree: one row alone says
    little about its own error.
    """
    finest = curves[lattice.finest]
    found = {}
    for family in curves:
        if family != lattice.finest:
            apart = lattice.sums(family, finest.height) - curves[family].height
            explained = variance_of(curves[family]) + lattice.sums(family, variance_of(finest))
            doubt = window_means(apart**2).sum(axis=0) / explained.sum(axis=0)
            found[family] = np.maximum(doubt - 1, 0.0) * explained
    return found

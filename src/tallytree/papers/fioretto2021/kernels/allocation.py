"""The exact integer optimum of fioretto2021 Model 1 with the root's public total (M_H^dp), without
cost tables.

The continuous optimum (:mod:`tallytree.papers.fioretto2021.kernels.prices`) gives prices that are almost right.
Per size, bottom up, every region takes all units that cost at most the rounded price and none that
costs more: then each size is optimal for its own total. What the sizes together lack or exceed is
added or removed unit by unit, cheapest or dearest first. Each step keeps optimality
(:mod:`tallytree.papers.fioretto2021.kernels.units`), so the result is exact whatever the prices were: they only
decide how many units have to move. All arithmetic that decides is on integers.

Erratum (fioretto2021 Model 1, H2): the total is fixed at the root alone.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from tallytree.errors import InputError
from tallytree.kernels.jit import run_in_chunks, serial
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.kernels.prices import (
    RealFit,
    Tree,
    fit_tree_prices,
    sizes_per_chunk,
)
from tallytree.papers.fioretto2021.kernels.units import (
    Units,
    add_unit,
    fill_leaves,
    refresh,
    remove_unit,
    settle,
    write_values,
)

# The largest magnitude of a target and of a weight: prices, which add up over the levels, then stay
# inside 64 bits.
LARGEST_TARGET = 2**44
LARGEST_WEIGHT = 1000


@serial
def turn_of_size(size):
    """Where scans over tied siblings start for a size: consecutive sizes are spread evenly
    (multiples of the golden ratio).
    """
    return (size * 2654435769) % 4294967296 >> 8


@serial
def _units_of_size(state, size):
    return Units(
        state.shift[size],
        state.extra[size],
        state.eligible[size],
        state.value[size],
        state.cost_to_add[size],
        state.saved_by_removing[size],
        state.cheapest[size],
        state.dearest[size],
        state.target[size],
    )


@serial
def _settle_sizes(tree, state, child_price, real_value, top_price, start, stop):
    """Bring each size to the prices of the continuous optimum, bottom up."""
    n_levels = len(tree.level_starts) - 1
    leaf_stretch = 2.0 * tree.weights[n_levels - 1]
    for size in range(start, stop):
        units = _units_of_size(state, size)
        turn = turn_of_size(size)
        for region in range(tree.level_starts[n_levels - 2], tree.level_starts[n_levels - 1]):
            guess = int(np.floor(child_price[size, region] / leaf_stretch))
            fill_leaves(tree, units, region, max(0, int(np.rint(real_value[size, region]))), guess)
            refresh(tree, units, region, n_levels - 2, turn)
        for level in range(n_levels - 3, -1, -1):
            for region in range(tree.level_starts[level], tree.level_starts[level + 1]):
                price = int(np.floor(child_price[size, region]))
                total = 0
                for child in range(tree.child_starts[region], tree.child_starts[region + 1]):
                    settle(tree, units, child, price, turn)
                    total += units.value[child]
                units.value[region] = total
                refresh(tree, units, region, level, turn)
        settle(tree, units, 0, top_price, turn)


@serial
def _next_cost(state, size, adding):
    return state.cost_to_add[size, 0] if adding else -state.saved_by_removing[size, 0]


@serial
def _write_sizes(tree, state, start, stop, out):
    for size in range(start, stop):
        write_values(tree, _units_of_size(state, size), turn_of_size(size), out[size])


def _new_state(tree: Tree, target: IntArray) -> Units:
    n_sizes = target.shape[0]
    n_internal = int(tree.level_starts[-2])
    n_bottom = n_internal - int(tree.level_starts[-3])
    bottom = np.zeros((3, n_sizes, n_bottom), dtype=np.int64)
    internal = np.zeros((5, n_sizes, n_internal), dtype=np.int64)
    return Units._make((*bottom, *internal, target))


@serial
def _reach_total(tree, state, total):
    """Add the cheapest or remove the dearest units, over all sizes, until the roots hold ``total``."""
    missing = total - state.value[:, 0].sum()
    adding = missing > 0
    # Smallest first: what a unit costs, or minus what it saves. Then a key that breaks ties between
    # sizes evenly instead of small sizes first.
    heap = [
        (_next_cost(state, size, adding), turn_of_size(size), size)
        for size in range(len(state.value))
    ]
    heapq.heapify(heap)
    for _ in range(abs(missing)):
        _, turn, size = heap[0]
        if adding:
            add_unit(tree, _units_of_size(state, size), 0, turn)
        else:
            remove_unit(tree, _units_of_size(state, size), 0, turn)
        heapq.heapreplace(heap, (_next_cost(state, size, adding), turn, size))


def tree_of(hierarchy: Hierarchy, weights: IntArray | None = None) -> Tree:
    """The hierarchy as these kernels take it; a root alone gets a weightless region above it.

    ``weights`` is (n_levels,).
    """
    if weights is None:
        weights = np.ones(hierarchy.n_levels, dtype=np.int64)
    weights = np.ascontiguousarray(weights, dtype=np.int64)
    if len(weights) != hierarchy.n_levels or weights.min() < 1 or weights.max() > LARGEST_WEIGHT:
        raise InputError(
            f"Give one whole weight from 1 to {LARGEST_WEIGHT} for each of the "
            f"{hierarchy.n_levels} levels, got {weights}."
        )
    if hierarchy.n_levels == 1:
        # Read-only like the arrays of a hierarchy: one compiled kernel serves both.
        shape = [
            read_only(np.array(values, dtype=np.int64))
            for values in ([0, 1, 2], [-1, 0], [1, 2, 2])
        ]
        return Tree._make((*shape, np.array([0, weights[0]])))
    return Tree(hierarchy.level_starts, hierarchy.parent, hierarchy.child_starts, weights)


def _by_size(hierarchy: Hierarchy, target: IntArray, total: int) -> IntArray:
    """Check the noisy table and turn it, sizes first."""
    if target.ndim != 2 or target.shape[0] != hierarchy.n_regions or target.shape[1] == 0:
        raise InputError(
            f"Give one row for each of the {hierarchy.n_regions} regions and one column per size, "
            f"got {target.shape}."
        )
    if not 0 <= total <= LARGEST_TARGET or np.abs(target).max() > LARGEST_TARGET:
        raise InputError(f"Noisy counts and the total must lie within ±2^44 = {LARGEST_TARGET}.")
    by_size = np.ascontiguousarray(target.T, dtype=np.int64)
    if hierarchy.n_levels == 1:
        by_size = np.concatenate([by_size, by_size], axis=1)
    return by_size


def _fit(
    hierarchy: Hierarchy, target: IntArray, total: int, weights: IntArray | None
) -> tuple[Tree, IntArray, RealFit]:
    tree = tree_of(hierarchy, weights)
    by_size = _by_size(hierarchy, target, total)
    return tree, by_size, fit_tree_prices(tree, by_size, total)


def allocate_over_tree(
    hierarchy: Hierarchy, target: IntArray, total: int, *, weights: IntArray | None = None
) -> IntArray:
    """Whole, nonnegative counts that add up over the tree and to ``total`` at the root, closest to
    ``target``.

    Minimises the sum of squared deviations over all regions and sizes, weighted per level; exact.

    Parameters
    ----------
    target
        Noisy counts, ``(n_regions, n_sizes)``.
    total
        Public number of groups at the root.
    weights
        Whole weight of a squared deviation per level; ones if not given, as in the paper.

    Returns
    -------
    IntArray
        ``(n_regions, n_sizes)``. Optima need not be unique; ties are spread over siblings and
        sizes.

    Cost: linear in the table, times a number of Newton rounds that is about 10.
    """
    if total == 0:
        _by_size(hierarchy, target, total)
        return np.zeros(target.shape, dtype=np.int64)
    tree, by_size, fit = _fit(hierarchy, target, total, weights)
    state = _new_state(tree, by_size)
    n_sizes = len(by_size)
    top_price = math.floor(fit.top_price)
    run_in_chunks(
        lambda start, stop: _settle_sizes(
            tree, state, fit.child_price, fit.value, top_price, start, stop
        ),
        n_sizes,
        smallest=sizes_per_chunk(tree),
    )
    _reach_total(tree, state, total)
    values = np.empty_like(by_size)
    run_in_chunks(
        lambda start, stop: _write_sizes(tree, state, start, stop, values),
        n_sizes,
        smallest=sizes_per_chunk(tree),
    )
    return np.ascontiguousarray(values[:, -hierarchy.n_regions :].T)


@serial
def _leaf_values(tree, target, child_price, start, stop, out):
    n_levels = len(tree.level_starts) - 1
    leaf_stretch = 2.0 * tree.weights[n_levels - 1]
    for size in range(start, stop):
        for leaf in range(tree.level_starts[n_levels - 1], tree.level_starts[n_levels]):
            out[size, leaf] = max(
                0.0, target[size, leaf] + child_price[size, tree.parent[leaf]] / leaf_stretch
            )


def relax_over_tree(
    hierarchy: Hierarchy, target: IntArray, total: int, *, weights: IntArray | None = None
) -> FloatArray:
    """The same program without integrality (M_H^r before rounding): nonnegative reals that add up
    over the tree.

    ``target`` and the result are (n_regions, n_sizes), ``weights`` is (n_levels,).
    """
    if total == 0:
        _by_size(hierarchy, target, total)
        return np.zeros(target.shape)
    tree, by_size, fit = _fit(hierarchy, target, total, weights)
    values = np.empty(by_size.shape)
    values[:, : fit.value.shape[1]] = fit.value
    run_in_chunks(
        lambda start, stop: _leaf_values(tree, by_size, fit.child_price, start, stop, values),
        len(by_size),
        smallest=sizes_per_chunk(tree),
    )
    return np.ascontiguousarray(values[:, -hierarchy.n_regions :].T)

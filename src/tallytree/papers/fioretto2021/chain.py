"""Consistent counts from noisy cumulative chains: fioretto2021 §9.2, Model 3 (M_c^ch), solved
exactly in one pass.

The chain of a level runs through all sizes, and for each size through all regions of the level, in
order; its entries add up all counts so far. In post-order of the whole tree a region comes right
after its last child, and (C9) makes the two equal. So the chain of leaves carries everything: a
leaf that closes regions above it is merged with their entries, and what remains is nondecreasing
(C8) with a known end (C7): a weighted isotonic regression.

Erratum (C8): the printed program has no inequality where depth increases along the chain;
recurrence (6b) has it, and so do we. Erratum (§9.2.2): the chain of a level of m regions has
sensitivity m, not 1; the noise is the business of :mod:`tallytree.group_sizes.measure`, see the
page on the chain's privacy error.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.kernels.chain import fit_chain


def chain_of_level(table: IntArray) -> IntArray:
    """Cumulative counts of one level, sizes outside and regions inside (§9.2.1), from its
    ``(n_regions, n_sizes)`` counts.
    """
    return np.cumsum(table.T.ravel())


def fit_chains(hierarchy: Hierarchy, noisy: list[IntArray], total: int) -> IntArray:
    """Whole counts, ``(n_regions, n_sizes)``, that add up over the tree and to ``total``, closest
    to the noisy chains.

    Parameters
    ----------
    noisy
        One chain per level, ``level_size · n_sizes`` entries each, as :func:`chain_of_level` orders
        them.
    total
        Public number of groups at the root.
    """
    n_leaves = hierarchy.n_leaves
    n_sizes = len(noisy[-1]) // n_leaves
    if (
        any(
            len(chain) != n_sizes * hierarchy.level_size(level) for level, chain in enumerate(noisy)
        )
        or n_sizes == 0
    ):
        raise InputError(
            "Give one noisy chain per level, as many entries as sizes times regions of the level."
        )
    sums = np.zeros((n_sizes, n_leaves), dtype=np.int64)
    weights = np.zeros(n_leaves, dtype=np.int64)
    for level, chain in enumerate(noisy):
        closing_leaf = hierarchy.leaf_ends[hierarchy.level_slice(level)] - 1
        sums[:, closing_leaf] += chain.reshape(n_sizes, -1)
        weights[closing_leaf] += 1
    fitted = np.empty(n_sizes * n_leaves, dtype=np.int64)
    # The last entry is the total (C7); the others then lie between 0 and it.
    fitted[:-1] = fit_chain(sums.ravel()[:-1], np.tile(weights, n_sizes)[:-1], lower=0, upper=total)
    fitted[-1] = total
    leaves = np.diff(fitted, prepend=0).reshape(n_sizes, n_leaves).T
    tables = [np.ascontiguousarray(leaves)]
    for level in range(hierarchy.n_levels - 1, 0, -1):
        tables.append(hierarchy.sum_to_parents(level, tables[-1]))
    return np.concatenate(tables[::-1])

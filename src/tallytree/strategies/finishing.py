"""From unbiased estimates to what is published: nonnegative and whole where asked for.
Post-processing only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.trees.nonnegative import (
    nonnegative_least_squares,
    split_downwards,
    sum_leaves,
    zero_subtrees,
)
from tallytree.kernels.trees.rounding import round_tree
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.range_tree import RangeTree
from tallytree.options.choices import Nonnegative
from tallytree.strategies.dense_nonnegative import dense_nonnegative_least_squares
from tallytree.strategies.estimates import AnyErrors
from tallytree.strategies.hat_estimates import HatErrors
from tallytree.strategies.matrix import MatrixErrors
from tallytree.strategies.strategies import MOST_DENSE_BINS
from tallytree.strategies.tree import TreeErrors
from tallytree.strategies.tree_layout import TreeLayout
from tallytree.strategies.wavelet import WaveletErrors, haar_matrix


def check_nonnegative(rule: str | bool) -> Nonnegative:
    """The rule itself, if there is such a rule; True stands for ``top-down`` and False for ``no``."""
    if isinstance(rule, bool):
        return "top-down" if rule else "no"
    for known in get_args(Nonnegative):
        if rule == known:
            return known
    raise RequestError(f"nonnegative is one of {', '.join(get_args(Nonnegative))}; got {rule!r}.")


def finish_bins(
    errors: AnyErrors,
    noisy: Sequence[IntArray],
    estimates: FloatArray,
    *,
    nonnegative: Nonnegative,
    integers: bool,
) -> FloatArray | IntArray:
    """Counts per bin to publish, from unbiased estimates and the noisy answers behind them.

    Whole numbers are rounded so that every block of the tree (a helper, where the
    strategy has none) is the sum of
    its bins and within 1 of its unrounded value: rounding does not pile up over long ranges.
    """
    if isinstance(errors, TreeErrors) and (
        errors.layout.tree.n_levels > 1 or nonnegative in ("least-squares", "subtree")
    ):
        layout, nodes = errors.layout, _tree_nodes(errors, noisy, estimates, nonnegative)
    else:
        layout = _helper_tree(errors, len(estimates))
        nodes = _helper_nodes(errors, noisy, estimates, layout, nonnegative)
    if integers:
        return round_tree(nodes, layout.child_starts)[layout.leaves]
    return nodes[layout.leaves].copy()


def _tree_nodes(
    errors: TreeErrors, noisy: Sequence[IntArray], estimates: FloatArray, nonnegative: Nonnegative
) -> FloatArray:
    layout = errors.layout
    if nonnegative == "least-squares":
        values, variances = errors.node_values(noisy), errors.node_variances
        return nonnegative_least_squares(
            values, variances, layout.child_starts, layout.level_starts
        )
    nodes = sum_leaves(estimates, layout.child_starts, layout.n_nodes)
    match nonnegative:
        case "top-down":
            return split_downwards(nodes, errors.from_below, layout.child_starts)
        case "subtree":
            leaves = zero_subtrees(nodes, layout.child_starts)[layout.leaves]
            return sum_leaves(leaves, layout.child_starts, layout.n_nodes)
        case _:
            return nodes


def _helper_tree(errors: AnyErrors, n_bins: int) -> TreeLayout:
    """Blocks by which strategies without blocks are divided from coarse to fine.

    The halves of a wavelet are its own. For single bins and matrices, four children per block came
    out best on the DPBench histograms: one step from the total to the bins would bias long ranges
    more than it helps short ones.
    """
    return TreeLayout(RangeTree.regular(n_bins, 2 if isinstance(errors, WaveletErrors) else 4))


def _helper_nodes(
    errors: AnyErrors,
    noisy: Sequence[IntArray],
    estimates: FloatArray,
    layout: TreeLayout,
    nonnegative: Nonnegative,
) -> FloatArray:
    match nonnegative:
        case "subtree":
            raise RequestError(
                "The subtree rule needs a tree: use strategy 'hierarchical', or nonnegative "
                "'top-down'."
            )
        case "least-squares" if isinstance(errors, HatErrors):
            raise RequestError(
                f"Nonnegative least squares of hats takes at most {MOST_DENSE_BINS:,} bins, got "
                f"{len(estimates):,}. "
                "Use nonnegative 'top-down', or the mechanism 'hierarchical'."
            )
        case "least-squares" if isinstance(errors, WaveletErrors | MatrixErrors):
            estimates = _dense_least_squares(errors, noisy)
        case "top-down":
            nodes = sum_leaves(estimates, layout.child_starts, layout.n_nodes)
            return split_downwards(nodes, np.ones(layout.n_nodes), layout.child_starts)
        case _:
            pass
    return sum_leaves(estimates, layout.child_starts, layout.n_nodes)


def _dense_least_squares(
    errors: WaveletErrors | MatrixErrors, noisy: Sequence[IntArray]
) -> FloatArray:
    if isinstance(errors, MatrixErrors):
        rows, answers = errors.rows.astype(np.float64), noisy[0].astype(np.float64)
    else:
        if errors.n_bins > MOST_DENSE_BINS:
            raise RequestError(
                f"Nonnegative least squares of a wavelet takes at most {MOST_DENSE_BINS:,} bins, "
                f"got {errors.n_bins:,}. "
                "Use nonnegative 'top-down'."
            )
        weights = 1 / np.sqrt(np.repeat(errors.variance, [len(level) for level in noisy]))
        rows = haar_matrix(errors.n_bins) * weights[:, None]
        answers = np.concatenate(noisy) * weights
    return dense_nonnegative_least_squares(rows.T @ rows, rows.T @ answers)

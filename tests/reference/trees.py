"""Slow, obvious twins of the kernels on trees: dense linear algebra and plain enumeration."""

from itertools import product

import numpy as np
from scipy.optimize import nnls


def leaf_membership(child_starts):
    """Matrix with a row per node and a column per leaf: 1 where the leaf lies below the node."""
    n_nodes = len(child_starts) - 1
    leaves = [node for node in range(n_nodes) if child_starts[node] == child_starts[node + 1]]
    column = {leaf: i for i, leaf in enumerate(leaves)}
    rows = np.zeros((n_nodes, len(leaves)))
    for node in range(n_nodes - 1, -1, -1):
        if node in column:
            rows[node, column[node]] = 1
        else:
            rows[node] = rows[child_starts[node] : child_starts[node + 1]].sum(axis=0)
    return rows


def weighted_system(noisy, variances, child_starts):
    """Rows and right-hand side whose plain least squares are the weighted ones; nodes of infinite
    variance left out.
    """
    counted = np.isfinite(variances)
    weight = 1 / np.sqrt(variances[counted])
    return leaf_membership(child_starts)[counted] * weight[:, None], np.asarray(noisy)[
        counted
    ] * weight


def least_squares(noisy, variances, child_starts):
    rows, answers = weighted_system(noisy, variances, child_starts)
    leaves = np.linalg.lstsq(rows, answers, rcond=None)[0]
    return leaf_membership(child_starts) @ leaves


def nonnegative_least_squares(noisy, variances, child_starts):
    rows, answers = weighted_system(noisy, variances, child_starts)
    return leaf_membership(child_starts) @ nnls(rows, answers)[0]


def zero_subtrees(estimates, child_starts):
    """hay2010 §4.2: a leaf keeps its estimate when neither it nor any node above it is at most 0."""
    result = np.array(estimates, dtype=float)
    alive = np.zeros(len(result), dtype=bool)
    for node in range(len(result)):
        parent = next(
            (p for p in range(node) if child_starts[p] <= node < child_starts[p + 1]), None
        )
        alive[node] = result[node] > 0 and (parent is None or alive[parent])
    return np.where(alive, result, 0.0)


def share_out(targets, weights, total):
    """min Σ (x − target)² / weight over x ≥ 0, Σ x = total: try every set of positive entries."""
    best, best_cost = None, np.inf
    for support in product([False, True], repeat=len(targets)):
        chosen = np.array(support)
        if not chosen.any():
            x = np.zeros(len(targets))
        else:
            price = (total - targets[chosen].sum()) / weights[chosen].sum()
            x = np.where(chosen, targets + weights * price, 0.0)
        cost = np.sum((x - targets) ** 2 / weights)
        if abs(x.sum() - total) < 1e-9 * max(1, total) and np.all(x >= -1e-12) and cost < best_cost:
            best, best_cost = x, cost
    return best

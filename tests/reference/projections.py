"""Nearest tables by general means: dense linear algebra, enumeration, and alternating projections
run until nothing moves.
"""

import itertools

import numpy as np

from tallytree.model.hierarchy import Hierarchy


def leaf_matrix(hierarchy: Hierarchy) -> np.ndarray:
    """Row per region, column per leaf: 1 where the leaf lies below the region."""
    leaf = np.arange(hierarchy.n_leaves)
    return (
        (hierarchy.leaf_starts[:, None] <= leaf) & (leaf < hierarchy.leaf_ends[:, None])
    ).astype(float)


def project_on_tree(hierarchy: Hierarchy, table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weighted least squares over the leaves, by the pseudo-inverse."""
    matrix = leaf_matrix(hierarchy)
    root = np.sqrt(weights[hierarchy.level_of])[:, None]
    leaves = np.linalg.pinv(root * matrix) @ (root * table)
    return matrix @ leaves


def isotonic(values: np.ndarray) -> np.ndarray:
    """Largest mean of a stretch ending at or after i, smallest over starts: the min-max formula of
    isotonic regression.
    """
    n = len(values)
    return np.array(
        [
            max(
                min(values[start : end + 1].mean() for end in range(i, n)) for start in range(i + 1)
            )
            for i in range(n)
        ]
    )


def nearest_whole_with_sum(
    target: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: int
) -> float:
    """Smallest squared distance, by enumeration."""
    ranges = [range(int(low), int(high) + 1) for low, high in zip(lower, upper)]
    return min(
        float(((np.array(point) - target) ** 2).sum())
        for point in itertools.product(*ranges)
        if sum(point) == total
    )

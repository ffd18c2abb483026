"""Slow, obvious twins of the range theory: strategies as matrices, every range in turn."""

from __future__ import annotations

import numpy as np

from tallytree.model.range_tree import RangeTree


def all_ranges(n_bins: int) -> np.ndarray:
    """One row of zeros and ones per range."""
    ends = [(start, stop) for start in range(n_bins) for stop in range(start + 1, n_bins + 1)]
    return np.array([[start <= i < stop for i in range(n_bins)] for start, stop in ends], float)


def tree_blocks(tree: RangeTree) -> list[tuple[int, int, int]]:
    """(level, first bin, end) of every block."""
    return [
        (level, start, min(start + width, tree.n_bins))
        for level, width in enumerate(tree.widths)
        for start in range(0, tree.n_bins, width)
    ]


def tree_matrix(tree: RangeTree) -> np.ndarray:
    """One row per block."""
    rows = np.zeros((len(tree_blocks(tree)), tree.n_bins))
    for row, (_, start, stop) in zip(rows, tree_blocks(tree)):
        row[start:stop] = 1
    return rows


def least_squares_error(
    strategy: np.ndarray, row_variances: np.ndarray, queries: np.ndarray
) -> float:
    """Average variance of the queries under generalised least squares, by dense algebra."""
    precision = strategy.T @ (strategy / np.asarray(row_variances)[:, None])
    covariance = np.linalg.inv(precision)
    return float(np.mean([query @ covariance @ query for query in queries]))


def consistent_tree_error(tree: RangeTree, variances: list[float]) -> float:
    row_variances = np.array([variances[level] for level, _, _ in tree_blocks(tree)])
    return least_squares_error(tree_matrix(tree), row_variances, all_ranges(tree.n_bins))


def fewest_blocks_error(
    tree: RangeTree, variances: list[float], ranges: list[tuple[int, int]] | None = None
) -> float:
    """Average variance when each range is covered greedily by its largest blocks, coarsest level
    first.
    """
    n = tree.n_bins
    ranges = ranges or [(start, stop) for start in range(n) for stop in range(start + 1, n + 1)]
    total = 0.0
    for start, stop in ranges:
        open_bins = set(range(start, stop))
        for level, first, end in tree_blocks(tree):
            if open_bins.issuperset(range(first, end)):
                open_bins -= set(range(first, end))
                total += variances[level]
        assert not open_bins
    return total / len(ranges)


def haar_matrix(n_bins: int) -> np.ndarray:
    """Sum of all bins, and left half minus right half of every block, for a power of two."""
    rows = [np.ones(n_bins)]
    width = n_bins
    while width > 1:
        for start in range(0, n_bins, width):
            row = np.zeros(n_bins)
            row[start : start + width // 2] = 1
            row[start + width // 2 : start + width] = -1
            rows.append(row)
        width //= 2
    return np.array(rows)


def padded_haar_error(n_bins: int, variance: float) -> float:
    padded = 1
    while padded < n_bins:
        padded *= 2
    inverse = np.linalg.inv(haar_matrix(padded))[:n_bins]
    covariance = variance * inverse @ inverse.T
    return float(np.mean([query @ covariance @ query for query in all_ranges(n_bins)]))


def grid_nodes(shape: tuple[int, ...], widths: tuple[int, ...]) -> tuple[np.ndarray, list[int]]:
    """One row per node of a grid tree over the flattened cells, and its level."""
    rows, levels = [], []
    for level, width in enumerate(widths):
        for corner in np.ndindex(*(-(-n // width) for n in shape)):
            cells = np.zeros(shape)
            cells[tuple(slice(c * width, (c + 1) * width) for c in corner)] = 1
            rows.append(cells.ravel())
            levels.append(level)
    return np.array(rows), levels


def all_boxes(shape: tuple[int, ...]) -> np.ndarray:
    boxes = np.ones((1, 1))
    for n_bins in shape:
        boxes = np.kron(boxes, all_ranges(n_bins))
    return boxes


def consistent_grid_error(
    shape: tuple[int, ...], widths: tuple[int, ...], variances: list[float]
) -> float:
    rows, levels = grid_nodes(shape, widths)
    return least_squares_error(
        rows, np.array([variances[level] for level in levels]), all_boxes(shape)
    )


def fewest_nodes_grid_error(
    shape: tuple[int, ...], widths: tuple[int, ...], variances: list[float]
) -> float:
    rows, levels = grid_nodes(shape, widths)
    boxes = all_boxes(shape)
    total = 0.0
    for box in boxes:
        rest = box.copy()
        for row, level in zip(rows, levels):
            if np.all(rest >= row):
                rest -= row
                total += variances[level]
        assert not rest.any()
    return total / len(boxes)

"""Slow, obvious twins for range histograms: strategies as dense matrices, ranges by summing."""

import numpy as np


def all_ranges(n_bins):
    """First and one past last bin of every range."""
    return np.triu_indices(n_bins + 1, 1)


def range_rows(n_bins, first, last, share=0.0):
    """One row per range with 1 on its bins, less ``share`` on all bins."""
    places = np.arange(n_bins)
    return ((places >= first[:, None]) & (places < last[:, None])).astype(float) - share


def block_rows(n_bins, widths):
    """Rows of all blocks, level by level."""
    return [
        np.array(
            [
                [start <= place < start + width for place in range(n_bins)]
                for start in range(0, n_bins, width)
            ],
            float,
        )
        for width in widths
    ]


def haar_rows(n_bins):
    """The total, then left minus right half of every block of the bins padded to a power of two,
    level by level.
    """
    padded = 1
    while padded < n_bins:
        padded *= 2
    levels = [np.ones((1, n_bins))]
    width = padded
    while width > 1:
        rows = []
        for start in range(0, n_bins, width):
            row = np.zeros(padded)
            row[start : start + width // 2] = 1
            row[start + width // 2 : start + width] = -1
            rows.append(row[:n_bins])
        levels.append(np.array(rows))
        width //= 2
    return levels


def noise_coefficients(rows, variances, queries):
    """Coefficients of the noise of each row in the weighted least-squares answer to each query."""
    weighted = rows / np.asarray(variances)[:, None]
    return queries @ np.linalg.solve(rows.T @ weighted, weighted.T)


def moments(rows, variances, cumulants, queries):
    """Variance and fourth cumulant of each query's weighted least-squares answer."""
    coefficients = noise_coefficients(rows, variances, queries)
    return (coefficients**2) @ np.asarray(variances), (coefficients**4) @ np.asarray(cumulants)


def fewest_blocks(n_bins, widths, first, last):
    """The fewest blocks, as (level, number), whose union is the range: by dynamic programming over
    ends.
    """
    best = {first: []}
    for end in range(first, last + 1):
        if end not in best:
            continue
        for level, width in enumerate(widths):
            if end % width == 0:
                stop = min(end + width, n_bins)
                found = [*best[end], (level, end // width)]
                if stop <= last and (stop not in best or len(found) < len(best[stop])):
                    best[stop] = found
    return best[last]

"""The hybrid view's estimate for one region, group by group."""

import math

import numpy as np

from tallytree.group_sizes.estimate.hybrid import laplace_scale
from tests.reference import isotonic


def estimate_region(
    cumulative: list[int], tail: list[int], n_groups: int, noise_variance: float
) -> list[int]:
    """Estimated sizes, one per group, in rising order."""
    threshold = len(cumulative)
    h_c = [min(max(x, 0), n_groups) for x in isotonic.isotonic_l1(cumulative)]
    bar = threshold + laplace_scale(noise_variance) * (math.log(max(len(tail), 1)) + 3)
    clear = sum(value > bar for value in tail)
    n_below = min(h_c[-1] if h_c else 0, n_groups - clear)
    # Group number i (from 0) is below the threshold when some cell counts it; its size is the first
    # such cell.
    small = [next(s for s in range(threshold) if h_c[s] > i) for i in range(n_below)]
    fitted = (
        [max(math.floor(x + 0.5), threshold) for x in isotonic.isotonic_l2(tail)] if tail else []
    )
    n_large = n_groups - n_below
    missing = max(n_large - len(fitted), 0)
    return small + [threshold] * missing + fitted[len(fitted) - (n_large - missing) :]


def view_of(sizes: list[int], threshold: int, n_tail: int) -> tuple[list[int], list[int]]:
    """The two parts of the view without noise."""
    cumulative = [sum(size <= s for size in sizes) for s in range(threshold)]
    tail = sorted(np.maximum(sizes, threshold).tolist()) if sizes else []
    return cumulative, tail[len(tail) - n_tail :]

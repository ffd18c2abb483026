"""Where the hybrid view changes from cumulative counts to sorted sizes, from public facts alone."""

from __future__ import annotations

import math

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.model.limits import MOST_LISTED

# Under a huge budget the noise is 0 in floating point; a threshold that grows further serves
# nobody.
_LEAST_STD = 1e-3


def hybrid_thresholds(n_groups: IntArray, noise_std: float) -> IntArray:
    """Threshold T per region: sizes below T are measured as cumulative counts, larger ones as a
    sorted list.

    T is best where about as many groups remain above it as the noise hides. Household sizes fall by
    a factor of about
    0.63 per person, so that G · 0.63^T groups exceed T; setting this to 1/ε ≈ std/√2 gives T = 5
      log10(G ε). The rule is public: it uses the number of groups and the noise scale, no sizes. It
      yields 38, 29 and 20 where tuning by hand on housing-like data gave 40, 30 and 20.
    """
    epsilon = math.sqrt(2) / max(noise_std, _LEAST_STD)
    return np.maximum(1, np.ceil(5 * np.log10(1 + epsilon * n_groups))).astype(np.int64)


def tail_lengths(
    n_groups: IntArray, noisy_cumulative_below: IntArray, noise_std: float, *, n_regions: int
) -> IntArray:
    """How many of the largest groups to list: those that the noisy count puts at or above T, and (6
    + ln #regions)/ε more.

    The margin covers the noise of that count; a group left off the list would be taken for one just
    below T. With the logarithm, some group is left off in 1 of 800 levels, however many regions the
    level has: ``n_regions``, of which some may be given here.
    """
    margin = math.ceil((6 + math.log(max(n_regions, 1))) * noise_std / math.sqrt(2))
    return np.clip(n_groups - noisy_cumulative_below + margin, 0, n_groups)


def most_listed(n_groups: IntArray, n_level_groups: int) -> IntArray:
    """How many groups of each region are listed at most, in proportion to its groups:
    ``MOST_LISTED`` on the whole level.

    However many groups the data have above the thresholds, the lists then fit in the memory that
    was promised before anything was paid for. Groups beyond the list are taken for ones of size T.
    """
    return n_groups if n_level_groups <= MOST_LISTED else n_groups * MOST_LISTED // n_level_groups

"""What every estimate of one level looks like: the groups of each region as runs, with a variance
per run.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.errors import InputError
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.count_of_counts import CountsBySize


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated group sizes of the regions of one level.

    Region ``r`` has ``count[i]`` groups of ``size[i]`` for ``i`` in ``offsets[r]:offsets[r + 1]``,
    laid out as in :class:`CountsBySize`; ``variance[i]`` estimates the variance of the size of each
    of them (kuo2018 §5.1).
    """

    offsets: IntArray
    size: IntArray
    count: IntArray
    variance: FloatArray

    def __post_init__(self) -> None:
        if len(self.variance) != len(self.size) or not (self.variance >= 0).all():
            raise InputError("An estimate needs one variance of at least 0 per run.")
        read_only(self.variance)
        # Its own construction checks the runs.
        self.counts()

    @property
    def n_regions(self) -> int:
        """Number of regions."""
        return len(self.offsets) - 1

    def counts(self) -> CountsBySize:
        """The estimated counts by size without their variances."""
        return CountsBySize(self.offsets, self.size, self.count)

    def n_groups(self) -> IntArray:
        """Number of groups per region."""
        return self.counts().n_groups()


def check_noisy(
    offsets: IntArray, n_values: int, n_groups: IntArray, noise_variance: float
) -> None:
    """Refuse noisy values, group totals and variances that do not fit together."""
    if (
        len(offsets) != len(n_groups) + 1
        or offsets[0] != 0
        or offsets[-1] != n_values
        or (np.diff(offsets) < 0).any()
    ):
        raise InputError(
            "Noisy values need one group total per region and offsets from 0 to the number of "
            "values."
        )
    if (n_groups < 0).any() or not 0 <= noise_variance < np.inf:
        raise InputError("Group totals and the noise variance must be finite and at least 0.")

"""The Haar wavelet over any number of bins, in whole numbers: answers, estimates, and how uncertain
ranges are.

Bins are padded with zeros to a power of two P. Level 0 is the total, level 1 the difference between
the halves of all P bins, the last level the differences between neighbouring bins; blocks that are
padding alone are left out. A block's estimate is halved, half of the difference added on the left
and subtracted on the right. That inverts the transform, so every bin is unbiased; the estimates of
padded bins are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray


def haar_levels(n_bins: int) -> int:
    """Number of levels, the total included: 1 + ⌈log2 N⌉."""
    return 1 + (n_bins - 1).bit_length()


def haar_widths(n_bins: int) -> list[int]:
    """Width of the blocks whose halves are compared, from all bins to two; the total, level 0, has
    none.
    """
    return [1 << level for level in range(haar_levels(n_bins) - 1, 0, -1)]


def haar_answers(counts: IntArray) -> list[IntArray]:
    """The total, then left minus right half of every block, level by level."""
    n_bins = len(counts)
    before = np.zeros(n_bins + 1, dtype=np.int64)
    np.cumsum(counts, out=before[1:])
    answers = [before[-1:].copy()]
    for width in haar_widths(n_bins):
        start = np.arange(0, n_bins, width)
        middle, end = np.minimum(start + width // 2, n_bins), np.minimum(start + width, n_bins)
        answers.append(2 * before[middle] - before[start] - before[end])
    return answers


def haar_estimates(noisy: list[IntArray], n_bins: int) -> FloatArray:
    """Unbiased estimate of each bin from noisy answers."""
    estimates = noisy[0].astype(np.float64)
    for width, differences in zip(haar_widths(n_bins), noisy[1:]):
        halves = np.empty((len(differences), 2))
        halves[:, 0] = (estimates + differences) / 2
        halves[:, 1] = (estimates - differences) / 2
        estimates = halves.ravel()[: -(-n_bins // (width // 2))]
    return estimates


@dataclass(frozen=True, eq=False)
class WaveletErrors:
    """Variances of ranges from the variance and fourth cumulant of the noise of each level."""

    n_bins: int
    variance: FloatArray
    cumulant: FloatArray

    def moments(
        self, first: IntArray, last: IntArray, share: float = 0.0
    ) -> tuple[FloatArray, FloatArray]:
        """Variance and fourth cumulant of the estimate of bins first … last − 1, less ``share``
        times that of all bins.

        Only the blocks cut by an end of the range are involved, since in a block that is held fully
        both halves' errors cancel. Hence at most three coefficients per level: those cut by the two
        ends, and by the end of the bins.
        """
        ends = [np.asarray(first), np.asarray(last), np.full_like(np.asarray(first), self.n_bins)]
        weights = [-1.0, 1.0, -share]
        parts = [
            np.zeros(len(ends[0])) for _ in ends
        ]  # coefficient of the prefix on the block that its end cuts
        variance, cumulant = np.zeros(len(ends[0])), np.zeros(len(ends[0]))
        for level, width in reversed(list(enumerate(haar_widths(self.n_bins), start=1))):
            right = [end // (width // 2) % 2 == 1 for end in ends]
            noise = [np.where(r, 1.0 - part, part) / 2 for r, part in zip(right, parts)]
            parts = [np.where(r, 1.0 + part, part) / 2 for r, part in zip(right, parts)]
            self._add(
                level,
                [w * c for w, c in zip(weights, noise)],
                [end // width for end in ends],
                variance,
                cumulant,
            )
        # An end at the padded end of all bins cuts nothing: it holds the total itself.
        whole = [end == (1 << haar_levels(self.n_bins) - 1) for end in ends]
        on_total = sum(
            w * np.where(all_bins, 1.0, part) for w, all_bins, part in zip(weights, whole, parts)
        )
        variance += on_total**2 * self.variance[0]
        cumulant += on_total**4 * self.cumulant[0]
        return variance, cumulant

    def _add(
        self,
        level: int,
        noise: list[FloatArray],
        blocks: list[IntArray],
        variance: FloatArray,
        cumulant: FloatArray,
    ) -> None:
        """Add one level's part: coefficients on the same block are added before they are squared."""
        a, b, c = noise
        same_ab, same_bc, same_ac = (
            blocks[0] == blocks[1],
            blocks[1] == blocks[2],
            blocks[0] == blocks[2],
        )
        a, b = np.where(same_ab, 0.0, a), np.where(same_ab, a + b, b)
        c = c + np.where(same_bc, b, 0.0) + np.where(same_ac & ~same_ab, a, 0.0)
        b, a = np.where(same_bc, 0.0, b), np.where(same_ac, 0.0, a)
        variance += (a**2 + b**2 + c**2) * self.variance[level]
        cumulant += (a**4 + b**4 + c**4) * self.cumulant[level]


def haar_matrix(n_bins: int) -> FloatArray:
    """The answers of :func:`haar_answers` as a matrix, one row per answer and one column per bin."""
    return np.stack(
        [np.concatenate(haar_answers(unit)) for unit in np.eye(n_bins, dtype=np.int64)], axis=1
    ).astype(float)

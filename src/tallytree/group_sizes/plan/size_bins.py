"""Which sizes are counted together where whole groups are protected, from public facts and a first
look alone.

A group lies in one bin of sizes, so counts of bins cost their budget once, however many there are.
What many bins cost is accuracy: the number of groups above a size adds up the noise of all bins
above it. So sizes are told apart one by one where that noise is small beside what it tells, in
wider bins further out, and in octaves up to the bound where nothing was seen: a bound far above all
sizes adds a few bins, not a noisy count per size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallytree.model.arrays import BoolArray, FloatArray, IntArray, read_only
from tallytree.model.count_of_counts import CountsBySize
from tallytree.privacy.sensitivity import BLOCK_WEIGHTS

# With a public bound up to this, every size is a bin of its own and nothing has to be looked at
# first.
MOST_SINGLE_SIZES = 64
# Larger groups are counted at the bound; without a bound, at this one.
LARGEST_SIZE = 1 << 24
# Relative widths of bins that are compared, and that of the look's own.
_WIDTHS = (0.0, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)
_LOOK_WIDTH = 0.2
# Tables of regions × bins never grow beyond half a GiB each.
_MOST_CELLS = 1 << 26
# What is missed inside a bin of c groups and width w: a smooth curve through the bins' ends is off
# by this part of c·w, and single groups scatter around it by this part of √c·w. Both measured on
# taxis and flights.
CURVE_MISS, SCATTER = 0.005, 0.3
MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
# A bin beyond the last certain one (in noise scales) counts as seen where noise alone would look
# like it this rarely just beyond, and a quarter as often at each doubling of the size: false
# entities stay few wherever the bound is.
_CERTAIN = 8.0
_FALSE = 0.05
# As many standard deviations are all groups but those below worth, where some are certain beyond.
REACHES = 3.0
# Blocks are asked about only where they clearly lower the predicted noise: nothing negative is
# released, which helps bins more.
_CLEARLY = 0.95
# Blocks of up to so many bins are all tried, longer ones a twentieth apart; and the noise of more
# bins than _MOST_PLACES is read at so many places, which stand for the bins around them. Planning
# thus takes time linear in the number of bins.
_ALL_BLOCKS, _APART, _MOST_PLACES = 512, 1.05, 4096
_RUNS = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class SizeBins:
    """Sizes in bins, bins in blocks.

    Attributes
    ----------
    edges
        Bin ``b`` holds the sizes ``edges[b]`` … ``edges[b + 1] - 1``; the last one larger sizes
        too.
    block
        Bins per block that are also counted together, 0 where they are not.
    """

    edges: IntArray
    block: int = 0

    def __post_init__(self) -> None:
        read_only(self.edges)

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    @property
    def weights(self) -> tuple[int, int]:
        """By what the counts of bins and of blocks are multiplied before noise is added to them."""
        return BLOCK_WEIGHTS if self.block else (1, 0)

    @property
    def block_starts(self) -> IntArray:
        """First bin of each block; one block where nothing is counted in blocks."""
        return np.arange(0, self.n_bins, self.block or self.n_bins)

    @property
    def block_sizes(self) -> IntArray:
        """Bins of each block."""
        return np.diff(np.append(self.block_starts, self.n_bins))

    def bin_of(self, size: IntArray) -> IntArray:
        """The bin of each size."""
        return np.clip(np.searchsorted(self.edges, size, side="right") - 1, 0, self.n_bins - 1)

    def table_of(self, counts: CountsBySize) -> IntArray:
        """Groups per region and bin."""
        table = np.zeros((counts.n_regions, self.n_bins), dtype=np.int64)
        np.add.at(table, (counts.region_of_run(), self.bin_of(counts.size)), counts.count)
        return table


def looks_first(max_size: int | None) -> bool:
    """Whether a first look decides about the bins: not where a bound is so low that every size is
    one.
    """
    return max_size is None or max_size > MOST_SINGLE_SIZES


def single_sizes(max_size: int, *, least_size: int, gaussian: bool) -> SizeBins:
    """Every size up to a public bound on its own."""
    edges = np.arange(min(least_size, max_size), max_size + 2)
    return SizeBins(edges, best_block(np.ones(len(edges) - 1), gaussian=gaussian))


def look_edges(max_size: int | None, *, least_size: int) -> IntArray:
    """Bins of the first look: single sizes up to 9, then a fifth as wide as the size they begin at."""
    return _edges(least_size, LARGEST_SIZE if max_size is None else max_size, _LOOK_WIDTH)


def bins_after_look(
    answers: IntArray,
    look_std: float,
    regions: Sequence[int],
    stds: Sequence[float],
    edges: IntArray,
    *,
    gaussian: bool,
    n_groups: int | None = None,
) -> SizeBins:
    """The bins with the least predicted error, as the product over levels of it.

    Parameters
    ----------
    answers, look_std, edges
        Noisy counts of the look's bins, the standard deviation of their noise, and the bins.
    regions, stds
        Of each level: regions, and standard deviation of the noise that a count of bins alone would
        have.
    n_groups
        Groups of the root, where their number is public.
    """
    curve = curve_of_look(answers, look_std, edges, n_groups)
    seen = len(curve) - 1
    upto, bound = int(edges[seen]), int(edges[-1]) - 1
    candidates = [_edges(int(edges[0]), upto - 1, width) for width in _WIDTHS]
    fitting = [
        inner for inner in candidates if len(inner) * sum(regions) <= _MOST_CELLS
    ] or candidates[-1:]
    found: list[tuple[float, SizeBins]] = []
    for inner in fitting:
        widths = np.diff(inner).astype(np.float64)
        groups = -np.diff(np.interp(inner, edges[: seen + 1], curve))
        block = best_block(widths, gaussian=gaussian)
        noise = suffix_deviations(len(widths), block, gaussian=gaussian)
        error = sum(
            math.log(_predicted(widths, groups / n, std * noise)) for n, std in zip(regions, stds)
        )
        found.append((error, SizeBins(_with_octaves(inner, bound), block)))
    return min(found, key=lambda pair: pair[0])[1]


def curve_of_look(
    answers: IntArray,
    look_std: float,
    edges: IntArray,
    n_groups: int | None,
    *,
    reaches: float = REACHES,
) -> FloatArray:
    """Groups from each of the look's bins on, falling, up to the last bin in which groups are seen.

    Where the number of groups is public, those from a bin on are counted from above and, as what is
    left of all groups, from below: noise of S − j bins and of j bins, weighed by inverse variance.
    """
    counts = answers.astype(np.float64)
    shown = np.flatnonzero(seen_bins(counts, look_std, edges, n_groups, reaches))
    seen = max(int(shown[-1]) + 1 if len(shown) else 0, min(8, len(edges) - 1))
    above = np.append(np.cumsum(counts[:seen][::-1])[::-1], 0.0)
    if n_groups is not None:
        # The sum of all bins is off by its noise, of which those from j on take their part.
        above += (n_groups - above[0]) * (1 - np.arange(seen + 1) / seen)
        above = np.minimum(above, n_groups)
    curve: FloatArray = np.minimum.accumulate(np.maximum(above, 0.0))
    return curve


def _edges(first: int, last: int, width: float) -> IntArray:
    """From ``first`` to ``last``: single sizes, then bins as wide as ``width`` times the size they
    begin at.
    """
    start = min(first, last)
    single = last + 1 if width == 0 else min(max(int(1 / width), start), last + 1)
    edges = [single]
    while edges[-1] <= last:
        edges.append(edges[-1] + max(1, int(width * edges[-1])))
    wide = np.array([*edges[:-1], last + 1], dtype=np.int64)
    return np.concatenate([np.arange(start, single), wide])


def _with_octaves(edges: IntArray, bound: int) -> IntArray:
    """Further bins up to the bound, each reaching to twice the size it begins at."""
    more = []
    end = int(edges[-1])
    while end <= bound:
        end = min(2 * max(end, 1), bound + 1)
        more.append(end)
    return np.concatenate([edges, np.array(more, dtype=np.int64)])


def _predicted(widths: FloatArray, groups: FloatArray, noise: FloatArray) -> float:
    """Expected earth mover's distance: noise of the groups above each size, and what bins of
    several sizes do not tell.
    """
    missed = np.where(widths > 1, CURVE_MISS * groups + SCATTER * np.sqrt(groups), 0.0)
    return float((widths * (MEAN_OF_NORMAL * noise + missed)).sum())


def suffix_deviations(
    n_bins: int, block: int, *, gaussian: bool, bins: IntArray | None = None
) -> FloatArray:
    """Standard deviation of the number of groups from each bin on (or from some ``bins`` on), in
    units of the noise that bins alone would have.

    With weights a of bins and b of blocks the least squares estimate of a block of g bins has the
    covariance (I − b²/(a² + g b²) 11ᵀ)/a²; blocks are independent. From a bin on there are the last
    k bins of its block, and whole blocks, the last of which may be shorter.
    """
    places = np.arange(n_bins) if bins is None else bins
    if not block:
        return np.sqrt(n_bins - places.astype(np.float64))
    a, b = BLOCK_WEIGHTS

    def variance(of_block: FloatArray | int) -> FloatArray:
        sums: FloatArray = of_block / (a**2 + np.asarray(of_block) * b**2)
        return sums

    start = places - places % block
    length = np.minimum(block, n_bins - start).astype(np.float64)
    k = length - places % block
    inside = k / a**2 - k**2 * b**2 / (a**2 * (a**2 + length * b**2))
    whole, rest = np.divmod(n_bins - start - length.astype(np.int64), block)
    beyond = whole * variance(block) + variance(rest.astype(np.float64))
    unit = math.sqrt(a * a + b * b) if gaussian else a + b
    deviations: FloatArray = unit * np.sqrt(inside + beyond)
    return deviations


def best_block(widths: FloatArray, *, gaussian: bool) -> int:
    """Bins per block with the least noise in the groups above a size, summed over sizes; 0 where
    bins alone have less.
    """
    n_bins = len(widths)
    cuts = np.unique(np.linspace(0, n_bins, min(n_bins, _MOST_PLACES) + 1).astype(np.int64))
    places = (cuts[:-1] + cuts[1:] - 1) // 2
    sizes = np.diff(np.concatenate(([0.0], np.cumsum(widths)))[cuts])
    candidates = [0, *_blocks(n_bins)]
    noise = [
        float((sizes * suffix_deviations(n_bins, block, gaussian=gaussian, bins=places)).sum())
        for block in candidates
    ]
    best = int(np.argmin(noise))
    return candidates[best] if noise[best] < _CLEARLY * noise[0] else 0


def _blocks(n_bins: int) -> list[int]:
    """The numbers of bins per block that are tried."""
    blocks = list(range(2, min(n_bins, _ALL_BLOCKS) + 1))
    while blocks and blocks[-1] * _APART < n_bins:
        blocks.append(int(blocks[-1] * _APART))
    return blocks


def _rarely(edges: IntArray, last: int, end: IntArray | int) -> FloatArray:
    """How many scales Laplace noise exceeds as rarely as a bin may be seen by mistake that ends so
    far beyond the last.
    """
    ratio = np.maximum(edges[end], 1) / max(int(edges[last]), 1)
    rarely: FloatArray = math.log(1 / (2 * _FALSE)) + 2 * np.log(ratio)
    return rarely


def seen_bins(
    counts: FloatArray,
    std: float,
    edges: IntArray,
    n_groups: int | None = None,
    reaches: float = REACHES,
) -> BoolArray:
    """Bins in which noisy counts show groups: all up to the last certain one, and further ones,
    alone or with neighbours.

    Where the number of groups is public, those that the bins below do not hold lie beyond: sizes
    reach as far as they are ``reaches`` standard deviations.
    """
    scale = std / math.sqrt(2)
    seen = np.zeros(len(counts), dtype=bool)
    last = 0
    if n_groups is not None:
        beyond = n_groups - np.cumsum(counts)
        certain = np.flatnonzero(beyond > reaches * std * np.sqrt(np.arange(len(counts)) + 1))
        last = min(int(certain[-1]) + 2, len(counts)) if len(certain) else 0
    for place in (last + np.flatnonzero(counts[last:] > _CERTAIN * scale)).tolist():
        if counts[place] > scale * _rarely(edges, last, place + 1):
            last = place + 1
    seen[:last] = True
    partial = np.concatenate(([0.0], np.cumsum(counts)))
    for length in _RUNS:
        starts = np.arange(last, len(counts) - length + 1)
        threshold = (
            scale * (_rarely(edges, last, starts + length) + math.log(length)) * math.sqrt(length)
        )
        for start in starts[partial[starts + length] - partial[starts] > threshold].tolist():
            seen[start : start + length] = True
    return seen

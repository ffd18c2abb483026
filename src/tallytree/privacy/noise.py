"""Exact integer noise: discrete Laplace for pure differential privacy, discrete Gaussian for
zero-concentrated.

Both are sampled exactly for every rational parameter (see :mod:`tallytree.privacy.inversion`): no
floating point between random bits and noise, nor between the true value and the noisy one. Enters:
integers and a keyed stream; leaves: integers.

64-bit integers. Draws are cut off at ±2**62 and noisy values at ±2**61, and true values beyond
±2**61 are taken as that limit. The last is a contraction, so sensitivities hold; the first two
together give exactly the cut-off of the unlimited sum, since a draw beyond 2**62 pushes any value
beyond 2**61. Hence nothing fails or wraps around, whatever the confidential values are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tallytree.errors import RequestError
from tallytree.kernels.jit import run_in_chunks
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Fact
from tallytree.privacy.kernels import add_in_place
from tallytree.privacy.randomness import BLOCK_WORDS, BitSource, Places, answer_once
from tallytree.privacy.samplers import gaussian_sampler, laplace_sampler

VALUE_LIMIT = 1 << 61
LARGEST_SCALE = Fraction(1 << 40)
LARGEST_SIGMA2 = Fraction(1 << 62)

# Smallest number of draws worth a thread of its own.
_THREAD_SHARE = 1 << 17


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(X = x) proportional to exp(-|x| / scale): the double-geometric distribution of kuo2018 Def.
    3.

    Added to a query of L1 sensitivity Δ with scale Δ/ε it is ε-differentially private.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.scale, Fraction):
            raise TypeError("The scale of noise is a Fraction; see tallytree.privacy.budget.exact.")
        if not 0 < self.scale <= LARGEST_SCALE:
            raise RequestError(
                "Discrete Laplace noise needs a scale above 0 and of at most 2**40, got "
                f"{float(self.scale):.6g}. "
                "Raise the budget, or lower the bounds on what one unit contributes."
            )

    @cached_property
    def variance(self) -> float:
        """2p / (1 - p)**2 with p = exp(-1/scale); never 0, so that it can be divided by: at least
        that of scale 1/500.
        """
        inverse = float(min(1 / self.scale, Fraction(500)))
        return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2

    @cached_property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(X = x) proportional to exp(-x**2 / (2 sigma2)).

    Added to a query of L2 sensitivity Δ with sigma2 = Δ**2/(2ρ) it satisfies ρ-zCDP.
    """

    sigma2: Fraction

    def __post_init__(self) -> None:
        if not isinstance(self.sigma2, Fraction):
            raise TypeError(
                "The parameter sigma2 of noise is a Fraction; see tallytree.privacy.budget.exact."
            )
        if not 0 < self.sigma2 < LARGEST_SIGMA2:
            raise RequestError(
                "Discrete Gaussian noise needs sigma2 above 0 and below 2**62, got "
                f"{float(self.sigma2):.6g}. "
                "Raise the budget, or lower the bounds on what one unit contributes."
            )

    @cached_property
    def variance(self) -> float:
        """The variance: sigma2 in all digits above 10, noticeably less where sigma2 is small; at
        least that of 1/1000.
        """
        sigma2 = float(max(self.sigma2, Fraction(1, 1000)))
        if sigma2 > 10:
            return sigma2
        squares = np.arange(1, 64, dtype=np.float64) ** 2
        weights = np.exp(-squares / (2 * sigma2))
        return float(2 * (squares * weights).sum() / (1 + 2 * weights.sum()))

    @cached_property
    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.variance)


Noise = DiscreteLaplace | DiscreteGaussian


def draw_noise(
    noise: Noise,
    stream: BitSource,
    *,
    level: int,
    query: str,
    offsets: IntArray,
    first_region: int = 0,
    first_draw: int = 0,
) -> IntArray:
    """Independent draws: region ``first_region + i`` gets ``offsets[i + 1] - offsets[i]`` of them,
    from its own place.

    The result depends on the key, the level, the query's name and the numbers of region and draw
    alone: drawing regions in other parts, or a large region piece by piece with ``first_draw``,
    gives the same numbers. Cost is linear in draws.

    Examples
    --------
    >>> from tallytree.privacy.randomness import KeyStream
    >>> here, there = KeyStream.from_insecure_seed(1), KeyStream.from_insecure_seed(1)
    >>> laplace = DiscreteLaplace(Fraction(3, 2))
    >>> both = draw_noise(laplace, here, level=0, query="cumulative", offsets=np.array([0, 3, 5]))
    >>> second = draw_noise(laplace, there, level=0, query="cumulative", offsets=np.array([0, 2]), first_region=1)
    >>> bool((both[3:] == second).all())
    True
    """
    places = _places(level, query, offsets, first_region, first_draw)
    stream.claim(places)
    return draws_at(noise, stream, places)


def draws_at(noise: Noise, stream: BitSource, places: Places) -> IntArray:
    """The draws of places that were claimed for them."""
    sampler = (
        laplace_sampler(noise.scale)
        if isinstance(noise, DiscreteLaplace)
        else gaussian_sampler(noise.sigma2)
    )
    draws = np.empty(places.n_draws, dtype=np.int64)
    block = BLOCK_WORDS // sampler.words_per_draw

    def work(start: int, stop: int) -> None:
        for begin in range(start, stop, block):
            sampler.draw(stream, places, begin, draws[begin : min(begin + block, stop)])

    run_in_chunks(work, len(draws), smallest=_THREAD_SHARE)
    return draws


@dataclass(eq=False)
class DrawsAhead:
    """Draws of the regions that follow, one each, made many at a time: a stream that asks step by
    step would pay twenty times as much for each alone. As confidential as the key.
    """

    n_regions: int = 256
    _first: Places | None = None
    _noise: Noise | None = None
    _draws: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def take(self, noise: Noise, stream: BitSource, places: Places) -> IntArray:
        """The draws of places that were claimed for them: those of one region from here."""
        if places.n_draws != 1 or places.first_draw != 0 or len(places.offsets) != 2:
            return draws_at(noise, stream, places)
        first, region = self._first, places.first_region
        if (
            first is None
            or (first.level, first.query) != (places.level, places.query)
            or noise is not self._noise
            or not first.first_region <= region < first.first_region + len(self._draws)
        ):
            ends = np.arange(self.n_regions + 1, dtype=np.int64)
            first = Places(places.level, places.query, ends, region)
            self._first, self._noise = first, noise
            self._draws = draws_at(noise, stream, first)
        place = region - first.first_region
        return self._draws[place : place + 1].copy()


def add_noise(
    values: npt.NDArray[np.integer[Any]],
    noise: Noise,
    stream: BitSource,
    *,
    level: int,
    query: str,
    offsets: IntArray | None = None,
    first_region: int = 0,
    first_draw: int = 0,
    question: Iterable[Fact] = (),
    ahead: DrawsAhead | None = None,
) -> IntArray:
    """Values plus independent noise, in the shape of ``values``; see :func:`draw_noise` for the
    rest.

    Without ``offsets`` all values belong to region ``first_region``. Never fails because of what
    the values are. ``question`` are the public numbers that say what the values count (ends of
    blocks, boxes …), where ``query`` and the offsets leave that open: a run that goes on after
    another one has died is refused where it would ask for something else. ``ahead`` keeps draws of
    regions that will be asked for later.
    """
    if not np.can_cast(values.dtype, np.int64):
        raise TypeError(f"Noise is added to integers of at most 64 bits, not to {values.dtype}.")
    flat = np.ascontiguousarray(values, dtype=np.int64).reshape(-1)
    if offsets is None:
        offsets = np.array([0, len(flat)], dtype=np.int64)
    if len(flat) != offsets[-1] - offsets[0]:
        raise RequestError(
            f"Offsets describe {offsets[-1] - offsets[0]} draws, but there are {len(flat)} values."
        )

    places = _places(level, query, offsets, first_region, first_draw)

    def noisy() -> IntArray:
        take = draws_at if ahead is None else ahead.take
        draws = take(noise, stream, places)
        add_in_place(draws, flat, VALUE_LIMIT)
        return draws

    return answer_once(stream, places, len(flat), noisy, [repr(noise), *question]).reshape(
        values.shape
    )


def _places(
    level: int, query: str, offsets: IntArray, first_region: int, first_draw: int
) -> Places:
    whole = np.ascontiguousarray(offsets.astype(np.int64, casting="safe", copy=False))
    return Places(level, query, whole, first_region, first_draw)

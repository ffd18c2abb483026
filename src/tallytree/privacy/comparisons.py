"""Decisions by noisy comparison, of which the outcome alone leaves this room: the noisy values
behind it are never kept.

Whoever saw the noisy values would learn more than the outcome tells, and more than is paid for: one
entity changes the counts of all boxes around it, and the costs of all parts that hold it. So these
values are neither returned nor written to a journal.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tallytree.kernels.partitions import cheapest_cut
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Fact
from tallytree.privacy.noise import DiscreteLaplace, draws_at
from tallytree.privacy.randomness import BitSource, Places, answer_once

# Noisy costs are cut off here, and sums of as many as there are nodes fit 64 bits.
LARGEST_SUM = 1 << 62


def exceed_zero(
    values: IntArray,
    noise: DiscreteLaplace,
    source: BitSource,
    *,
    level: int,
    query: str,
    question: Iterable[Fact] = (),
) -> IntArray:
    """1 where a value plus noise of its own is above 0, else 0; ``question`` as of
    :func:`tallytree.privacy.noise.add_noise`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tallytree.privacy.randomness import KeyStream
    >>> stream = KeyStream.from_insecure_seed(1)
    >>> exceed_zero(np.array([-90, 90]), DiscreteLaplace(Fraction(2)), stream, level=0, query="split").tolist()
    [0, 1]
    """
    places = Places(level, query, np.array([0, len(values)]))

    def decide() -> IntArray:
        drawn = draws_at(noise, source, places)
        # x + z > 0, written so that nothing wraps around.
        return (drawn > -values).astype(np.int64)

    return answer_once(source, places, len(values), decide, [repr(noise), *question])


def cheapest_parts(
    costs: IntArray,
    price: int,
    child_starts: IntArray,
    noise: DiscreteLaplace,
    source: BitSource,
    *,
    level: int,
    query: str,
    question: Iterable[Fact] = (),
) -> IntArray:
    """1 for the nodes of a tree that tile its root most cheaply, else 0; a node costs ``costs``
    plus noise plus ``price``.

    Every node has noise, leaves too. Why the outcome costs ε for noise of scale s/ε, where s bounds
    the change between neighbours of the difference of two tilings: see
    :func:`tallytree.privacy.sensitivity.tiling_sensitivity`.
    """
    places = Places(level, query, np.array([0, len(costs)]))

    def choose() -> IntArray:
        drawn = draws_at(noise, source, places)
        most = LARGEST_SUM // (2 * len(costs)) - price
        noisy = np.clip(np.clip(costs, -most, most) + np.clip(drawn, -most, most), -most, most)
        return cheapest_cut(noisy + price, child_starts)

    asked = [repr((noise, price)), child_starts, *question]
    return answer_once(source, places, len(costs), choose, asked)

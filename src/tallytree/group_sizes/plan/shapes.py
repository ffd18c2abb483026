"""Assumed distributions of group sizes, for planning before anything confidential is read.

A shape is a list of probabilities: entry s is the share of groups with s entities. It comes from a
name, or from a public table of sizes and counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.confidential import AssumedCounts
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs, sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.people import NO_PEOPLE, People

# Shares of households with 1 … 6 people (United States 2010); larger ones, 2 % in all, fall by the
# factor 0.43 per person.
_HOUSEHOLDS = (0.0, 0.267, 0.328, 0.161, 0.134, 0.065, 0.026)
_HOUSEHOLD_RATIO = 0.43
# Sizes beyond this probability are cut off: fewer than one group in a billion.
_SMALLEST_TAIL = 1e-9
_LONGEST = 1_000_000
# Means below this are not scattered: their laws leave the range of floating-point numbers.
_LEAST_MEAN = 1e-6


def named_shape(name: str) -> FloatArray:
    """A shape by name: ``households``, ``geometric:MEAN``, ``poisson:MEAN`` or ``zipf:EXPONENT``.

    Examples
    --------
    >>> named_shape("geometric:2")[:3].round(3).tolist()
    [0.0, 0.5, 0.25]
    """
    kind, _, text = name.partition(":")
    if kind == "households":
        n_tail = math.ceil(math.log(_SMALLEST_TAIL) / math.log(_HOUSEHOLD_RATIO))
        tail = _HOUSEHOLDS[-1] * _HOUSEHOLD_RATIO ** np.arange(1, n_tail)
        return _normal(np.concatenate([_HOUSEHOLDS, tail]))
    parameter = _parameter(name, text)
    match kind:
        case "geometric" if parameter >= 1:
            p = 1 / parameter
            length = (
                2
                if p == 1
                else min(_LONGEST, 2 + math.ceil(math.log(_SMALLEST_TAIL) / math.log1p(-p)))
            )
            return _normal(np.concatenate([[0.0], p * (1 - p) ** np.arange(length - 1)]))
        case "poisson":
            sizes = np.arange(math.ceil(parameter + 8 * math.sqrt(parameter) + 20))
            logs = sizes * math.log(parameter) - np.array([math.lgamma(s + 1) for s in sizes])
            return _normal(np.exp(logs - logs.max()))
        case "zipf" if parameter > 1:
            length = min(_LONGEST, math.ceil(_SMALLEST_TAIL ** (-1 / parameter)))
            return _normal(np.concatenate([[0.0], np.arange(1.0, length) ** -parameter]))
    raise RequestError(
        f"The shape {name!r} is not known. Say households, geometric:MEAN (from 1), poisson:MEAN "
        "or zipf:EXPONENT (above 1)."
    )


def _parameter(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < _LONGEST:
        raise RequestError(
            f"The shape {name!r} needs a number above 0 after the colon, for example geometric:2.5."
        )
    return value


def _normal(weights: FloatArray) -> FloatArray:
    return np.asarray(weights / weights.sum())


def assumed_counts(
    hierarchy: Hierarchy,
    n_groups: IntArray,
    shape: FloatArray,
    *,
    attributes: Attributes = NO_ATTRIBUTES,
    people: People = NO_PEOPLE,
    largest: int | None = None,
    seed: int = 0,
) -> AssumedCounts:
    """Made-up data with given group totals per leaf, sizes drawn from a shape. Nothing confidential
    goes in.

    With ``attributes`` totals are those of every combination of values of every leaf. ``people``
    are spread evenly over their classes; no group has more than ``largest`` entities.
    """
    cells = _drawn_sizes(n_groups, shape, seed)
    cells = cells if largest is None else cells.clip(largest)
    leaf = np.arange(cells.n_regions) // attributes.n_cells
    leaf_counts = sum_over_regions(cells, leaf, hierarchy.n_leaves) if attributes else cells
    n_classes = people.classes.n_cells
    turn = n_classes - 1 - np.arange(n_classes)
    return AssumedCounts(
        PublicFacts(
            hierarchy,
            groups_note="assumed data, for planning",
            attributes=attributes,
            people=people,
        ),
        leaf_counts,
        leaf_counts.n_groups(),
        cell_counts=cells if attributes else None,
        entity_counts=(cells.n_entities()[:, None] + turn) // n_classes if people else None,
    )


def _drawn_sizes(n_groups: IntArray, shape: FloatArray, seed: int) -> CountsBySize:
    """Sizes of so many groups per row, drawn from a shape."""
    # An ordinary generator, here and below: what is drawn is public and hides nothing.
    rng = np.random.default_rng(seed)
    possible = np.flatnonzero(shape)
    left, rest = np.asarray(n_groups, dtype=np.int64).copy(), 1.0
    regions, sizes, counts = [], [], []
    for size in possible:
        share = 1.0 if size == possible[-1] else min(1.0, shape[size] / rest)
        here = rng.binomial(left, share)
        filled = np.flatnonzero(here)
        regions.append(filled)
        sizes.append(np.full(len(filled), size))
        counts.append(here[filled])
        left, rest = left - here, max(rest - shape[size], 1e-300)
        if not left.any():
            break
    return counts_from_runs(
        np.concatenate(regions), np.concatenate(sizes), np.concatenate(counts), len(n_groups)
    )


def scattered_totals(n_groups: IntArray, std: FloatArray, *, seed: int) -> IntArray:
    """Whole numbers scattered around public ones with these standard deviations, below 0 too."""
    # Another stream than the one that draws sizes from the same seed.
    rng = np.random.default_rng([seed, 1])
    return np.rint(rng.normal(n_groups, std)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Doubts:
    """How far the truth may be from released counts of bins, given the region above.

    Attributes
    ----------
    own
        Variance of every count apart from the others of its region: one row per region.
    shared
        Variances in units of the region's groups: of its number of groups first, then of each way
        in which groups move between sizes; one row each.
    along
        How far each count moves with each of them, in units of itself; one table each.
    """

    own: FloatArray
    shared: FloatArray
    along: FloatArray


def scattered_tables(
    hierarchy: Hierarchy, table: IntArray, doubts: Doubts, *, seed: int
) -> IntArray:
    """Whole counts of the leaves scattered around a public table, never below 0, with about the
    means that it has.

    Region by region under the one above: the table's mean, moved as the region above was, with
    another number of groups (a gamma law) and groups moved between sizes (which keeps their
    number); then each count by a gamma law of its own. What siblings add up to is the region above
    again, and each count is rounded up or down at random.

    Parameters
    ----------
    table
        One row per region, children adding up to their parent.
    """
    rng = np.random.default_rng([seed, 2])
    drawn = np.zeros(table.shape)
    drawn[0] = _gamma(rng, table[0].astype(np.float64), doubts.own[0])
    for level in range(1, hierarchy.n_levels):
        here, above = hierarchy.level_slice(level), hierarchy.level_slice(level - 1)
        parent = hierarchy.parent[here] - above.start
        mean = table[here] * (drawn[above] / np.maximum(table[above], 1))[parent]
        own = _gamma(rng, _moved(rng, mean, doubts, here), doubts.own[here])
        sums = np.add.reduceat(own, hierarchy.child_starts[above] - here.start, axis=0)
        fitted = np.divide(drawn[above], sums, out=np.zeros_like(sums), where=sums > _LEAST_MEAN)
        drawn[here] = own * fitted[parent]
    leaves = drawn[hierarchy.level_slice(hierarchy.n_levels - 1)]
    return np.floor(leaves + rng.random(leaves.shape)).astype(np.int64)


def _moved(rng: np.random.Generator, mean: FloatArray, doubts: Doubts, here: slice) -> FloatArray:
    """Counts of some regions with other numbers of groups and with groups moved between sizes."""
    shared, along = doubts.shared[:, here], doubts.along[:, here]
    factor = _gamma(rng, np.ones(len(mean)), shared[0])
    counts = mean * (1 + (factor - 1)[:, None] * np.clip(along[0], 0.0, 1.0))
    amounts = np.sqrt(shared[1:]) * rng.standard_normal(shared[1:].shape)
    # No count falls below 0 by them, and none is moved away in full.
    moved = counts * np.maximum(
        1 + np.einsum("kr,krb->rb", amounts, along[1:], optimize=True), _LEAST_MEAN
    )
    before, after = counts.sum(axis=1), moved.sum(axis=1)
    return np.asarray(
        moved * np.divide(before, after, out=np.zeros_like(after), where=after > 0)[:, None]
    )


def _gamma(rng: np.random.Generator, mean: FloatArray, variance: FloatArray) -> FloatArray:
    certain = (mean < _LEAST_MEAN) | (variance <= 0)
    law = np.where(certain, 1.0, mean**2 / np.where(certain, 1.0, variance))
    return np.where(certain, mean, rng.gamma(law) * np.where(certain, 1.0, mean / law))


def redrawn_classes(table: IntArray, totals: IntArray, *, seed: int) -> IntArray:
    """Classes of each row's entities drawn anew, with the shares of a public table, for so many
    entities per row.

    Rows without any have the shares of all rows together.
    """
    rng = np.random.default_rng([seed, 3])
    everywhere = np.maximum(table.sum(axis=0), 1e-9)
    weight = np.where(table.sum(axis=1, keepdims=True) > 0, table, everywhere).astype(np.float64)
    drawn: IntArray = rng.multinomial(totals, weight / weight.sum(axis=1, keepdims=True))
    return drawn


def redrawn(leaf_counts: CountsBySize, n_groups: IntArray, *, seed: int) -> CountsBySize:
    """Sizes of each leaf's groups drawn anew, with the shares of a public table, for so many groups
    per leaf.

    A multinomial draw, as binomials one after the other: the k-th run of every leaf at once.
    """
    rng = np.random.default_rng(seed)
    starts, lengths = leaf_counts.offsets[:-1], np.diff(leaf_counts.offsets)
    left = n_groups.copy()
    weight_left = leaf_counts.n_groups().copy()
    drawn = np.zeros_like(leaf_counts.count)
    order = np.argsort(-lengths, kind="stable")
    for k in range(int(lengths.max(initial=0))):
        here = order[: np.searchsorted(-lengths[order], -k)]  # leaves with more than k runs
        runs = starts[here] + k
        share = leaf_counts.count[runs] / weight_left[here]
        drawn[runs] = rng.binomial(left[here], np.minimum(share, 1.0))
        left[here] -= drawn[runs]
        weight_left[here] -= leaf_counts.count[runs]
    kept = drawn > 0
    regions = leaf_counts.region_of_run()[kept]
    return counts_from_runs(regions, leaf_counts.size[kept], drawn[kept], len(lengths))

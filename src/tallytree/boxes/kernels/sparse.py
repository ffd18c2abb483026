"""Nonnegative estimates on a tree whose counts may sit in few places; how few is read off the noisy
counts themselves.

Ours; empirical Bayes. From parents to children, a child of a parent with total T holds nothing,
holds everything, or holds some amount about which nothing is known, taken as even on 0 … T. How
often each of the three happens differs from depth to depth (a city is empty land at one scale and
streets at another), and is the maximum-likelihood mixture of that depth's noisy counts. A child's
estimate is then its expected count given its noisy one, and what the children lack of T is divided
among them by how uncertain they still are.

The even middle part has no centre that counts could be drawn to. A learned prior with one has
smaller errors per box, but the same sign in all boxes along a street, and these add up in a query.
"""

from __future__ import annotations

import numpy as np

from tallytree.errors import RequestError
from tallytree.kernels.jit import as_input, serial
from tallytree.kernels.trees.least_squares import check_tree
from tallytree.kernels.trees.nonnegative import share_out
from tallytree.model.arrays import FloatArray, IntArray

# Nodes of a depth that its mixture is fitted to, evenly spaced, and steps of expectation and
# maximisation.
MOST_FITTED = 16384
STEPS = 30
# Below this fraction of the noise's scale the formulas would cancel to nothing, and their first
# terms do.
TINY = 1e-3
# Keeps the order of noise among children that are all certain.
LEAST_SPREAD = 1e-9


@serial
def _evidence(noisy, total, scale):
    """Likelihood of a noisy count if the child holds nothing, something, everything, each up to one
    common factor.

    The noise has density ∝ exp(−|noise| / scale). Beyond 0 … total that falls at the same rate for
    all three, so that a noisy count below 0 says what one of 0 says: ``noisy`` lies between 0 and
    total.
    """
    above = total - noisy
    nothing, everything = np.exp(-noisy / scale), np.exp(-above / scale)
    if total < TINY * scale:
        return nothing, 1.0 - (noisy * noisy + above * above) / (2 * total * scale), everything
    return nothing, scale * (2.0 - nothing - everything) / total, everything


@serial
def _expectation(noisy, total, scale, kinds):
    """Mean and variance of what a child holds, given its noisy count and how often each kind
    happens.

    With a = noisy and c = total − noisy, the even part needs ∫ (x − noisy)^k exp(−|x − noisy| /
    scale) dx / total over 0 … total: for k = 1, s ((a + s) e^(−a/s) − (c + s) e^(−c/s)) / total,
    and likewise for k = 2.
    """
    nothing, something, everything = _evidence(noisy, total, scale)
    above = total - noisy
    if total < TINY * scale:
        first, second = total / 2 - noisy, (noisy**3 + above**3) / (3 * total)
    else:
        first = scale * ((noisy + scale) * nothing - (above + scale) * everything) / total
        left = (noisy * noisy + 2 * scale * noisy + 2 * scale * scale) * nothing
        right = (above * above + 2 * scale * above + 2 * scale * scale) * everything
        second = scale * (4 * scale * scale - left - right) / total
    p, q, r = kinds[0] * nothing, kinds[1], kinds[2] * everything
    weight = p + q * something + r
    shift = (-p * noisy + q * first + r * above) / weight
    square = (p * noisy * noisy + q * second + r * above * above) / weight
    return noisy + shift, max(square - shift * shift, 0.0)


@serial
def _fit_kinds(evidence, n_fitted, kinds):
    """How often each kind happens, by expectation and maximisation, with one made-up child of each
    kind.
    """
    kinds[:] = 1.0 / 3.0
    for _ in range(STEPS):
        p, q, r = 1.0, 1.0, 1.0
        for i in range(n_fitted):
            a, b, c = (
                evidence[0, i] * kinds[0],
                evidence[1, i] * kinds[1],
                evidence[2, i] * kinds[2],
            )
            p += a / (a + b + c)
            q += b / (a + b + c)
            r += c / (a + b + c)
        kinds[0], kinds[1], kinds[2] = p / (p + q + r), q / (p + q + r), r / (p + q + r)


@serial
def _collect(child_starts, combined, variances, result, parents, evidence):
    """Evidence of evenly spaced children of the parents first … last − 1 that hold anything;
    returns how many.
    """
    first, last = parents
    step = 1 + (child_starts[last] - child_starts[first]) // MOST_FITTED
    n_fitted, seen = 0, 0
    for node in range(first, last):
        if result[node] <= 0:
            continue
        for child in range(child_starts[node], child_starts[node + 1]):
            if seen % step == 0 and variances[child] > 0:
                noisy = min(max(combined[child], 0.0), result[node])
                a, b, c = _evidence(noisy, result[node], np.sqrt(variances[child] / 2))
                evidence[0, n_fitted], evidence[1, n_fitted], evidence[2, n_fitted] = a, b, c
                n_fitted += 1
            seen += 1
    return n_fitted


@serial
def _split_sparsely(child_starts, layer_starts, combined, variances, most_children, result):
    targets, weights = np.zeros_like(result), np.zeros_like(result)
    evidence, kinds = np.empty((3, MOST_FITTED + 1)), np.empty(3)
    order, ranks = np.empty(most_children), np.empty(most_children, dtype=np.int64)
    for layer in range(len(layer_starts) - 1):
        first, last = layer_starts[layer], layer_starts[layer + 1]
        _fit_kinds(
            evidence,
            _collect(child_starts, combined, variances, result, (first, last), evidence),
            kinds,
        )
        for node in range(first, last):
            begin, end = child_starts[node], child_starts[node + 1]
            total = result[node]
            if begin == end:
                continue
            if total <= 0:
                result[begin:end] = 0.0
                continue
            for child in range(begin, end):
                noisy = min(max(combined[child], 0.0), total)
                targets[child], weights[child] = noisy, 0.0
                if variances[child] > 0:
                    scale = np.sqrt(variances[child] / 2)
                    targets[child], spread = _expectation(noisy, total, scale, kinds)
                    weights[child] = spread + LEAST_SPREAD * variances[child]
            share_out(targets, weights, begin, end, total, order, ranks, result)


def split_sparsely(
    total: float,
    combined: FloatArray,
    variances: FloatArray,
    child_starts: IntArray,
    layer_starts: IntArray,
) -> FloatArray:
    """Nonnegative estimates that add up to ``total``, divided from parents to children as sparsely
    as the counts suggest.

    Parameters
    ----------
    total
        The root's estimate; raised to 0 where negative.
    combined, variances
        Best estimate of each node from the noisy counts at and below it, and its variance
        (:func:`~tallytree.kernels.trees.least_squares.combined_from_below`).
    child_starts
        Children of node ``v`` are ``child_starts[v]:child_starts[v + 1]``.
    layer_starts
        Nodes of depth ``l`` are ``layer_starts[l]:layer_starts[l + 1]``.

    Returns
    -------
    FloatArray
        One estimate per node. O(nodes · log children).
    """
    starts = as_input(child_starts, np.int64)
    check_tree(starts, len(combined))
    if len(variances) != len(combined) or layer_starts[0] != 0 or layer_starts[-1] != len(combined):
        raise RequestError(
            "A tree needs one variance per noisy count, and the nodes of its depths one after the "
            "other."
        )
    result = np.zeros(len(combined))
    result[0] = max(total, 0.0)
    _split_sparsely(
        starts,
        as_input(layer_starts, np.int64),
        as_input(combined, np.float64),
        as_input(variances, np.float64),
        int(np.diff(starts).max(initial=1)),
        result,
    )
    return result

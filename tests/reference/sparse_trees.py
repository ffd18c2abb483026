"""Sparse nonnegative estimates by numerical integration and the brute-force split of every family."""

from itertools import pairwise

import numpy as np

from tests.reference.trees import share_out

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def moments(noisy, total, scale):
    """∫ x^k exp(−|x − noisy| / scale) dx / total over 0 … total for k = 0, 1, 2, up to a common
    factor.
    """
    nearest = np.clip(noisy, 0, total)
    reach = scale * np.array([-60, -20, -6, -2, -0.5, 0, 0.5, 2, 6, 20, 60])
    edges = np.unique(np.clip(np.concatenate([[0, total], nearest + reach]), 0, total))
    found = np.zeros(3)
    for low, high in pairwise(edges):
        x = (low + high) / 2 + (high - low) / 2 * NODES
        density = (high - low) / 2 * WEIGHTS * likelihood(x, noisy, nearest, scale)
        found += [np.sum(density * (x - nearest) ** k) for k in range(3)]
    return found / total


def likelihood(x, noisy, nearest, scale):
    """Of a true count x, relative to the likeliest one."""
    return np.exp((np.abs(noisy - nearest) - np.abs(x - noisy)) / scale)


def kinds_of(children, steps=30):
    """How often children hold nothing, something, everything; ``children`` are (noisy, total,
    scale).
    """
    evidence = []
    for noisy, total, scale in children:
        nearest = np.clip(noisy, 0, total)
        ends = [likelihood(end, noisy, nearest, scale) for end in (0.0, total)]
        evidence.append([ends[0], moments(noisy, total, scale)[0], ends[1]])
    kinds = np.full(3, 1 / 3)
    for _ in range(steps):
        counts = np.ones(3)
        for one in evidence:
            counts += kinds * one / np.sum(kinds * one)
        kinds = counts / counts.sum()
    return kinds


def expectation(noisy, total, scale, kinds):
    """Posterior mean and variance of one child."""
    nearest = np.clip(noisy, 0, total)
    middle = moments(noisy, total, scale)
    sums = kinds[1] * middle
    for end, share in ((0.0, kinds[0]), (total, kinds[2])):
        sums = sums + share * likelihood(end, noisy, nearest, scale) * (end - nearest) ** np.arange(
            3
        )
    shift = sums[1] / sums[0]
    return nearest + shift, max(sums[2] / sums[0] - shift**2, 0.0)


def split_sparsely(total, combined, variances, child_starts, layer_starts):
    """All nodes, depth by depth."""
    result = np.zeros(len(combined))
    result[0] = max(total, 0)
    for first, last in pairwise(layer_starts):
        parents = [
            v for v in range(first, last) if result[v] > 0 and child_starts[v + 1] > child_starts[v]
        ]
        family = {v: range(child_starts[v], child_starts[v + 1]) for v in parents}
        facts = {
            c: (combined[c], result[v], np.sqrt(variances[c] / 2))
            for v in parents
            for c in family[v]
        }
        kinds = kinds_of(facts.values())
        for v in parents:
            found = [expectation(*facts[c], kinds) for c in family[v]]
            targets = np.array([mean for mean, _ in found])
            weights = np.array([spread for _, spread in found]) + 1e-9 * variances[list(family[v])]
            result[list(family[v])] = share_out(targets, weights, result[v])
    return result

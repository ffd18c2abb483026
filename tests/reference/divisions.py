"""How counts divide, one division at a time, with integrals done numerically."""

import math

from scipy.integrate import quad
from scipy.stats import norm

SPREADS = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3)


def likelihoods(noisy, variance, total, share):
    """Of the noisy first side, for every kind of division."""
    scale = math.sqrt(variance)
    chance = total * share * (1 - share)
    found = [
        norm.pdf(noisy, share * total, math.sqrt(variance + chance + (spread * total) ** 2))
        for spread in SPREADS
    ]
    near = [noisy + k * scale for k in (-8, -2, 0, 2, 8) if 0 < noisy + k * scale < total]
    even = (
        quad(lambda x: norm.pdf(noisy, x, scale), 0, total, points=near or None, epsabs=0)[0]
        / total
    )
    return [
        max(one, 1e-300)
        for one in (*found, even, norm.pdf(noisy, 0, scale), norm.pdf(noisy, total, scale))
    ]


def fit(divisions, prior, steps=40, made_up=3.0):
    """The mixture of greatest likelihood; ``divisions`` are (noisy, variance, total, share)."""
    rows = [likelihoods(*one) for one in divisions]
    weights = list(prior)
    for _ in range(steps):
        found = [made_up * one for one in prior]
        for row in rows:
            whole = sum(a * b for a, b in zip(row, weights))
            found = [sum_ + a * b / whole for sum_, a, b in zip(found, row, weights)]
        weights = [one / sum(found) for one in found]
    return weights


def expected(noisy, variance, total, share, weights, agreeing):
    """What the first side holds, given its noisy count and the mixture."""
    scale, centre = math.sqrt(variance), share * total
    means = []
    for spread in SPREADS:
        own = total * share * (1 - share) + (spread * total) ** 2
        noise = variance if spread == 0 else variance / agreeing
        means.append(min(max((noise * centre + own * noisy) / (own + noise), 0), total))
    near = [noisy + k * scale for k in (-8, -2, 0, 2, 8) if 0 < noisy + k * scale < total]
    inside = quad(lambda x: norm.pdf(noisy, x, scale), 0, total, points=near or None, epsabs=0)[0]
    moment = quad(lambda x: x * norm.pdf(noisy, x, scale), 0, total, points=near or None, epsabs=0)[
        0
    ]
    means += [moment / inside, 0.0, total]
    chances = [a * b for a, b in zip(likelihoods(noisy, variance, total, share), weights)]
    return sum(a * b for a, b in zip(chances, means)) / sum(chances)

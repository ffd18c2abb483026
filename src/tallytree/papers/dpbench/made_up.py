"""Made-up shapes for the protocol of DPBench: half of them were looked at while constants were
chosen, half never.

Each function yields a name and the expected share of every cell, up to a factor. Names end in
``(synthetic)``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tallytree.model.arrays import FloatArray

Shapes = Iterator[tuple[str, FloatArray]]


def tuned_lines(n_bins: int = 4096) -> Shapes:
    """Lines: even, smooth, in steps, in few places, with a long tail, rounded to every eighth bin."""
    rng = np.random.default_rng(1)
    place = (np.arange(n_bins) + 0.5) / n_bins
    yield "even (synthetic)", np.ones(n_bins)
    yield "waves (synthetic)", 1.2 + np.sin(np.arange(n_bins) / n_bins * 9)
    yield "steps (synthetic)", np.repeat(rng.gamma(0.5, size=16), n_bins // 16)
    yield "few places (synthetic)", (rng.random(n_bins) < 0.01) * rng.pareto(1.0, n_bins)
    yield "long tail (synthetic)", np.exp(-0.5 * (np.log(place / 0.08) / 0.7) ** 2) / place
    yield "rounded (synthetic)", np.exp(-4 * place) * np.where(np.arange(n_bins) % 8 == 0, 8.0, 0.3)


def untouched_lines(n_bins: int = 4096) -> Shapes:
    """Lines: by rank, two narrow bells, weeks, a random walk, patches between empty stretches, a
    sharp peak on a slope.
    """
    rng = np.random.default_rng(3)
    place, number = (np.arange(n_bins) + 0.5) / n_bins, np.arange(n_bins)
    bells = [
        np.exp(-(((place - centre) / width) ** 2))
        for centre, width in ((0.21, 0.01), (0.77, 0.004))
    ]
    walk = np.cumsum(rng.normal(0, 0.06, n_bins))
    patches = np.repeat((rng.random(64) < 0.25) * rng.gamma(1.0, size=64), n_bins // 64)
    yield "by rank (synthetic)", 1 / (number + 3.0) ** 1.1
    yield "two bells (synthetic)", bells[0] + 0.4 * bells[1] + 0.003
    yield "weeks (synthetic)", np.where(number // 8 % 7 < 5, 1.0, 0.25) * (1 + place)
    yield "random walk (synthetic)", np.exp(walk - walk.max())
    yield "patches (synthetic)", patches
    yield "peak on a slope (synthetic)", 1 - 0.9 * place + 2 / (1 + ((place - 0.6) / 0.002) ** 2)


def tuned_maps(side: int = 256) -> Shapes:
    """Maps: even, two towns, few places, roads, a coast, cells by rank."""
    rng = np.random.default_rng(2)
    across = (np.arange(side)[:, None] + 0.5) / side
    down = across.T
    bell = [
        np.exp(-(((across - c) / w) ** 2) - ((down - c) / w) ** 2)
        for c, w in ((0.3, 0.04), (0.7, 0.1))
    ]
    roads = np.full((side, side), 0.01)
    for number in rng.integers(0, side, 9):
        roads[number, :] += 1.0
    for number in rng.integers(0, side, 9):
        roads[:, number] += 1.0
    shore = 0.5 + 0.1 * np.sin(down * 9) + 0.04 * np.sin(down * 31)
    yield "even (synthetic)", np.ones((side, side))
    yield "two towns (synthetic)", 0.02 + bell[0] + bell[1]
    yield (
        "few places (synthetic)",
        (rng.random((side, side)) < 0.01) * rng.pareto(1.0, (side, side)),
    )
    yield "roads (synthetic)", roads
    yield "coast (synthetic)", np.where(across < shore, np.exp(-(shore - across) * 6), 0.0)
    yield (
        "cells by rank (synthetic)",
        (1 / (np.arange(side * side) + 1.0))[rng.permutation(side * side)].reshape(side, side),
    )


def untouched_maps(side: int = 256) -> Shapes:
    """Maps: city blocks, a slope with a lake, a ring, rounded values, clusters of clusters, strips."""
    rng = np.random.default_rng(4)
    across = (np.arange(side)[:, None] + 0.5) / side
    down, number = across.T, np.arange(side)
    streets = (number[:, None] % 16 < 2) | (number[None, :] % 16 < 2)
    blocks = np.kron(rng.gamma(0.6, size=(side // 16, side // 16)), np.ones((16, 16)))
    away = np.hypot(across - 0.55, down - 0.45)
    lattice = (number[:, None] % 8 == 0) * 1.0 + (number[None, :] % 16 == 0) * 1.0
    clusters = np.zeros((side, side))
    for centre in rng.random((12, 2)):
        near = np.clip(centre + rng.normal(0, 0.05, (60, 2)), 0, 0.999)
        np.add.at(clusters, tuple((near * side).astype(np.int64).T), rng.gamma(0.5, size=60))
    yield "city blocks (synthetic)", np.where(streets, 0.0, blocks)
    yield (
        "slope with a lake (synthetic)",
        np.where(np.hypot(across - 0.4, down - 0.6) < 0.2, 0.0, across + 0.3 * down),
    )
    yield "ring (synthetic)", 0.01 + np.exp(-(((away - 0.3) / 0.02) ** 2))
    yield "rounded to lines (synthetic)", (0.05 + lattice) * np.exp(-3 * across - 2 * down)
    yield "clusters of clusters (synthetic)", clusters + 1e-4
    yield (
        "strips (synthetic)",
        np.repeat(rng.gamma(0.7, size=(side // 8, 1)), 8, axis=0) * (0.3 + down),
    )


def made_up_lines(n_bins: int = 4096) -> Shapes:
    """All lines."""
    yield from tuned_lines(n_bins)
    yield from untouched_lines(n_bins)


def made_up_maps(side: int = 256) -> Shapes:
    """All maps."""
    yield from tuned_maps(side)
    yield from untouched_maps(side)

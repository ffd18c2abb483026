"""Slow twins of the estimators for bins of sizes: dense matrices instead of formulas."""

from typing import Any

import numpy as np

from tallytree.group_sizes.plan.size_bins import SizeBins


def questions(bins: SizeBins) -> Any:
    """One row per answer: the bins, weighted, then the blocks, weighted."""
    fine, coarse = bins.weights
    rows = fine * np.eye(bins.n_bins)
    if not bins.block:
        return rows
    block = np.arange(bins.n_bins) // bins.block
    return np.vstack([rows, coarse * (block == np.arange(block[-1] + 1)[:, None])])


def suffix_deviations(bins: SizeBins, *, gaussian: bool) -> Any:
    """Deviation of the groups from each bin on, by inverting the normal equations."""
    asked = questions(bins)
    covariance = np.linalg.inv(asked.T @ asked)
    columns = np.abs(asked).sum(axis=0).max() ** 2 if not gaussian else (asked**2).sum(axis=0).max()
    above = np.triu(np.ones((bins.n_bins, bins.n_bins)))
    return np.sqrt(columns * np.einsum("ij,jk,ik->i", above, covariance, above))


def generalised_least_squares(parents: Any, answers: Any, variances: Any, bins: SizeBins) -> Any:
    """All regions' counts that add up and fit all answers best, by one dense solve over the leaves.

    ``parents`` is −1 for the root; leaves are the regions without children.
    """
    n_regions = len(parents)
    leaves = [region for region in range(n_regions) if region not in set(parents.tolist())]
    below = np.zeros((n_regions, len(leaves)))
    for place, leaf in enumerate(leaves):
        region = leaf
        while region >= 0:
            below[region, place] = 1
            region = int(parents[region])
    asked = questions(bins)
    design = np.kron(below, asked)
    weights = np.repeat(1 / np.asarray(variances), len(asked))
    normal = design.T @ (weights[:, None] * design)
    solved = np.linalg.solve(normal, design.T @ (weights * np.asarray(answers).ravel()))
    return below @ solved.reshape(len(leaves), bins.n_bins)


def believed(deviation: Any, room: Any, noise: float, bins: SizeBins) -> Any:
    """K (K + noise Q⁻¹)⁻¹ deviation, K = diag room."""
    asked = questions(bins)
    covariance = noise * np.linalg.inv(asked.T @ asked)
    return np.diag(room) @ np.linalg.solve(np.diag(room) + covariance, deviation)


def moves(shape: Any, degrees: int) -> Any:
    """π times orthonormal polynomials of the rank under π: the triangular factor of the weighted
    powers, by QR.
    """
    rank = np.cumsum(shape) - shape / 2
    powers = np.sqrt(shape)[:, None] * rank[:, None] ** np.arange(degrees + 1)
    orthonormal, triangular = np.linalg.qr(powers)
    return (np.sqrt(shape)[:, None] * orthonormal * np.sign(np.diag(triangular)))[:, 1:].T


def _before(room: Any, directions: Any, variances: Any) -> Any:
    """Covariance of counts before they are asked about: their own, and that of each direction."""
    return np.diag(room) + sum(var * np.outer(way, way) for way, var in zip(directions, variances))


def guess(
    estimate: Any,
    mean: Any,
    room: Any,
    noise: float,
    directions: Any,
    variances: Any,
    bins: SizeBins,
) -> Any:
    """Posterior mean of counts given their noisy estimate."""
    asked = questions(bins)
    covariance = noise * np.linalg.inv(asked.T @ asked)
    before = _before(room, directions, variances)
    return mean + before @ np.linalg.solve(before + covariance, estimate - mean)


def doubt(room: Any, noise: float, directions: Any, variances: Any, bins: SizeBins) -> Any:
    """Variances of counts given noisy answers."""
    asked = questions(bins)
    covariance = noise * np.linalg.inv(asked.T @ asked)
    before = _before(room, directions, variances)
    return np.diag(before - before @ np.linalg.solve(before + covariance, before))

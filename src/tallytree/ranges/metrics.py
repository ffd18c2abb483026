"""Errors of answers against the truth, as the slides define them. For experiments and the owner of the data: not
private."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray


def mean_absolute_error(answers: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """MAE: the mean of |answer − truth|."""
    return float(np.mean(np.abs(_differences(answers, truth))))


def mean_squared_error(answers: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """MSE: the mean of (answer − truth)²; the variance of the noise, where answers are unbiased."""
    return float(np.mean(np.square(_differences(answers, truth))))


def mean_relative_error(answers: npt.ArrayLike, truth: npt.ArrayLike, threshold: float) -> float:
    """MRE: the mean of |answer − truth| / max(θ, truth), with a threshold θ > 0 that keeps small true answers from
    dominating.

    Examples
    --------
    >>> mean_relative_error([12, 3], [10, 0], threshold=5)
    0.4
    """
    if not threshold > 0:
        raise RequestError(f"The threshold of relative errors must be greater than 0, got {threshold!r}.")
    differences = np.abs(_differences(answers, truth))
    return float(np.mean(differences / np.maximum(threshold, np.asarray(truth, dtype=np.float64))))


def _differences(answers: npt.ArrayLike, truth: npt.ArrayLike) -> FloatArray:
    ours, theirs = np.asarray(answers, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if ours.shape != theirs.shape or ours.size == 0:
        raise RequestError(
            f"Errors need as many answers as true values, at least one; got {ours.shape} and {theirs.shape}."
        )
    return ours - theirs

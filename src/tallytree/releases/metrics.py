"""Errors of answers against the truth, as the slides ("Utility Metrics") and DPBench define them.

For experiments and the owner of the data: not private.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray

# θ of relative errors as a part of all entities, where none is given (Qardaji, Yang, Li 2013)
RELATIVE_THRESHOLD = 0.001


@dataclass(frozen=True)
class QueryErrors:
    """Errors of the answers to queries of one class, such as ranges of about one length.

    Attributes
    ----------
    name, queries
        The class, and how many queries were compared.
    mean_count
        Mean of the true answers.
    mean_error, mean_squared_error
        MAE and MSE: means of |answer − truth| and of its square.
    mean_relative_error
        MRE(θ): mean of |answer − truth| / max(θ, truth).
    scaled_error
        The mean error as a part of all entities (DPBench's scaled error).
    median_error, error_90, error_99
        Percentiles of |answer − truth|.
    std_error
        Mean of the standard errors that the release states; None where it states none.
    within_two
        Share of queries whose true answer lies within two of those of the published one.
    """

    name: str
    queries: int
    mean_count: float
    mean_error: float
    mean_squared_error: float
    mean_relative_error: float
    scaled_error: float
    median_error: float
    error_90: float
    error_99: float
    std_error: float | None
    within_two: float | None

    @property
    def root_mean_square(self) -> float:
        """The root of the mean squared error, to be compared with standard errors."""
        return float(np.sqrt(self.mean_squared_error))


HEAD = (
    "queries", "number", "mean count", "MAE", "MSE", "MRE", "scaled error", "median", "90 %", "99 %", "std error",
    "within 2",
)  # fmt: skip
"""Heads of the columns of a table of :class:`QueryErrors`, in the order of its fields."""


def query_errors(
    name: str,
    answers: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    total: float,
    threshold: float | None = None,
    std_errors: npt.ArrayLike | None = None,
) -> QueryErrors:
    """All measures at once.

    Parameters
    ----------
    total
        Number of all entities, by which errors are scaled.
    threshold
        θ of relative errors; a thousandth of the total, and at least 1, where none is given.
    std_errors
        What the release states, one per answer.
    """
    difference = np.abs(_differences(answers, truth))
    median, ninety, ninety_nine = np.percentile(difference, [50, 90, 99]).tolist()
    theta = max(1.0, RELATIVE_THRESHOLD * total) if threshold is None else threshold
    stated = None if std_errors is None else np.asarray(std_errors, dtype=np.float64)
    mean_error = mean_absolute_error(answers, truth)
    return QueryErrors(
        name,
        difference.size,
        float(np.mean(np.asarray(truth, dtype=np.float64))),
        mean_error,
        mean_squared_error(answers, truth),
        mean_relative_error(answers, truth, theta),
        mean_error / max(1.0, total),
        median,
        ninety,
        ninety_nine,
        None if stated is None else float(stated.mean()),
        None if stated is None else float((difference <= 2 * stated).mean()),
    )


def mean_absolute_error(answers: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """MAE: the mean of |answer − truth|."""
    return float(np.mean(np.abs(_differences(answers, truth))))


def mean_squared_error(answers: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """MSE: the mean of (answer − truth)²; the variance of the noise, where answers are unbiased."""
    return float(np.mean(np.square(_differences(answers, truth))))


def mean_relative_error(answers: npt.ArrayLike, truth: npt.ArrayLike, threshold: float) -> float:
    """MRE: the mean of |answer − truth| / max(θ, truth), with a threshold θ > 0 that keeps small
    true answers from dominating.

    Examples
    --------
    >>> mean_relative_error([12, 3], [10, 0], threshold=5)
    0.4
    """
    if not threshold > 0:
        raise RequestError(
            f"The threshold of relative errors must be greater than 0, got {threshold!r}."
        )
    differences = np.abs(_differences(answers, truth))
    return float(np.mean(differences / np.maximum(threshold, np.asarray(truth, dtype=np.float64))))


def _differences(answers: npt.ArrayLike, truth: npt.ArrayLike) -> FloatArray:
    ours, theirs = np.asarray(answers, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if ours.shape != theirs.shape or ours.size == 0:
        raise RequestError(
            f"Errors need as many answers as true values, at least one; got {ours.shape} and "
            f"{theirs.shape}."
        )
    return ours - theirs

"""Unattributed histograms: from noisy sorted counts to counts that are sorted, whole and not
negative (hay2010 §3).
"""

from __future__ import annotations

from typing import get_args

import numpy as np

from tallytree.degree_sequences.kernels import nearest_graphical
from tallytree.errors import RequestError
from tallytree.kernels.isotonic import isotonic_l2
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.options.choices import DegreeMethod


def check_method(method: str) -> DegreeMethod:
    """The method itself, if there is such a method."""
    for known in get_args(DegreeMethod):
        if method == known:
            return known
    raise RequestError(f"method is one of {', '.join(get_args(DegreeMethod))}; got {method!r}.")


def estimate_sorted_counts(noisy: IntArray, method: DegreeMethod) -> FloatArray:
    """Counts in rising order from noisy counts that were sorted before the noise was added.

    The isotonic fit is cut off at 0, which for bounded values is again the least-squares fit;
    rounding it to whole numbers gives the best whole fit. ``noisy`` leaves the values as they are.
    """
    match method:
        case "isotonic":
            return isotonic_l2(noisy, lower=0)
        case "sorted":
            return np.maximum(np.sort(noisy), 0).astype(np.float64)
        case "noisy":
            return noisy.astype(np.float64)


def publishable_degrees(noisy: IntArray, method: DegreeMethod, *, graphical: bool) -> IntArray:
    """Whole counts to publish; with ``graphical`` the nearest sequence that is the degrees of some
    simple graph.
    """
    if graphical and method == "noisy":
        raise RequestError("A graphical sequence needs method 'isotonic' or 'sorted'.")
    whole = np.rint(estimate_sorted_counts(noisy, method)).astype(np.int64)
    return nearest_graphical(whole) if graphical else whole

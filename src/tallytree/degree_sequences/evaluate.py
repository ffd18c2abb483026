"""Errors of a degree sequence against the true degrees: for the owner of the data, and as
confidential as the data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.degree_sequences.measure import confidential_sizes
from tallytree.degree_sequences.publish import read_source
from tallytree.degree_sequences.release import DegreeSequence
from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.options.degrees import DegreesOptions
from tallytree.releases.metrics import query_errors
from tallytree.releases.query_evaluation import QueryEvaluation


def evaluate_degrees(
    release: DegreeSequence, truth: IntArray, *, threshold: float | None = None
) -> QueryEvaluation:
    """Compare a sequence with the true one, place by place in rising order, and how many nodes have
    each degree.

    hay2010 §5.1 states the sum of squared errors, which is the mean squared error times the number
    of nodes. The result is NOT private.
    """
    published, exact = np.sort(release.degrees), np.sort(truth)
    if len(published) != len(exact):
        if release.manifest["public"]["groups"] is not None:
            raise RequestError(
                f"The release has {len(published):,} degrees, the data {len(exact):,}; they must "
                "be equally many."
            )
        # Their number is noisy: nodes that one side lacks count like nodes without edges.
        n_nodes = max(len(published), len(exact))
        published, exact = (np.pad(side, (n_nodes - len(side), 0)) for side in (published, exact))
    spread = np.full(len(exact), np.sqrt(release.noise.variance))
    degrees = np.union1d(published, exact)
    counts = [
        np.searchsorted(side, degrees, "right") - np.searchsorted(side, degrees)
        for side in (published, exact)
    ]
    return QueryEvaluation(
        (
            query_errors(
                "degrees in order",
                published,
                exact,
                total=float(exact.sum()),
                threshold=1.0 if threshold is None else threshold,
                std_errors=spread,
            ),
            query_errors(
                "nodes of each degree",
                *counts,
                total=len(exact),
                threshold=1.0 if threshold is None else threshold,
            ),
        )
    )


def true_degrees(source: Any, options: DegreesOptions | None) -> IntArray:
    """The exact sorted degrees, for the owner who compares a release with them: confidential."""
    private = options is not None and options.public == "none"
    sizes = confidential_sizes(
        source if options is None else read_source(source, options), 1, private=private
    )
    return np.repeat(sizes.counts.size, sizes.counts.count)

"""Noisy views of the regions of one level to an estimate of their group sizes, with variances."""

from tallytree.group_sizes.estimate.hybrid import estimate_hybrid
from tallytree.group_sizes.estimate.runs import Estimate
from tallytree.group_sizes.estimate.single_view import (
    estimate_cumulative,
    estimate_naive,
    estimate_sizes,
)

__all__ = ["Estimate", "estimate_cumulative", "estimate_hybrid", "estimate_naive", "estimate_sizes"]

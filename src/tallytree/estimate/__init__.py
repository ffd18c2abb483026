"""Noisy views of one region to an estimate of its group sizes, with variances."""

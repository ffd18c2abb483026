"""Kernels on tables with given sums: projections and the steps between them."""

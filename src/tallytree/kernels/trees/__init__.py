"""Kernels on trees of counts: least squares, nonnegative and whole numbers that add up, exact
optima.
"""

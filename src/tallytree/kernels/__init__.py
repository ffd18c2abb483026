"""Numba kernels: arrays in, arrays out; no strings, no randomness, no files."""

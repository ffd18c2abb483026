"""Benchmarks: one script per question, each with a ``main`` that measures ratios in one run and returns them."""

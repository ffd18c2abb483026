"""Benchmarks: one script per question, each with a ``main`` that measures ratios in one run and returns them."""

# Whether to take the full sizes (``python -m benchmarks --full``), for which a quiet machine needs about an hour.
FULL = False

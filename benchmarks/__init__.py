"""Benchmarks: one script per question, each with a ``main`` that measures ratios in one run and returns them."""

# Whether to take the full sizes (``python -m benchmarks --full``), for which a quiet machine needs about an hour.
FULL = False
# The mechanism that scripts take where they ask for the default one; None for what the package takes by itself.
MECHANISM: str | None = None


def default_options() -> dict[str, str]:
    """Options of a release by the default mechanism, or by the one that was named with ``--mechanism``."""
    return {} if MECHANISM is None else {"mechanism": MECHANISM}

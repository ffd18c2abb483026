"""How long steps report that they are getting on, without showing anything confidential."""

from __future__ import annotations

from collections.abc import Callable

# Called with the number of finished steps, the number of all steps, and the name of the step that begins.
Progress = Callable[[int, int, str], None]


def silent(done: int, total: int, step: str) -> None:
    """Report nothing."""

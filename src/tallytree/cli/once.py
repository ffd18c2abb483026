"""Options that are given once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from typer.core import TyperOption

from tallytree.errors import RequestError


def refuse_repeats(order: Sequence[Any]) -> None:
    """Refuse an option that is given twice, where the last one would win.

    Parameters
    ----------
    order
        The parameters of a command as they were given, each as often as it was.
    """
    for parameter, times in Counter(order).items():
        once = isinstance(parameter, TyperOption) and not (
            parameter.multiple or parameter.is_flag or parameter.count
        )
        if once and times > 1:
            raise RequestError(
                f"{parameter.opts[0]} is given {times} times, and one answer would go unseen; give "
                "it once."
            )

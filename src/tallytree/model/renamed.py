"""Names that public things had before: they still work for one version, and warn."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def renamed(now: str, before: str) -> Any:
    """A property under its old name that gives what the new name gives, with a warning."""

    def get(owner: Any) -> Any:
        warn_renamed(before, now)
        return getattr(owner, now)

    return property(get, doc=f"Old name of ``{now}``.")


def keyword_renamed(before: str, now: str) -> Callable[[Function], Function]:
    """Let a function take a keyword under its old name too, with a warning."""

    def accept(function: Function) -> Function:
        @wraps(function)
        def call(*given: Any, **keywords: Any) -> Any:
            if before in keywords:
                if now in keywords:
                    raise TypeError(f"{function.__name__}() got {now} twice, as {before} too.")
                warn_renamed(before, now)
                keywords[now] = keywords.pop(before)
            return function(*given, **keywords)

        return call  # type: ignore[return-value]

    return accept


def warn_renamed(before: str, now: str) -> None:
    """Say that a name is an old one, where the code outside this package uses it."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tallytree."):
        depth, frame = depth + 1, frame.f_back
    message = f"{before} is now {now}; the old name goes with the next version."
    warnings.warn(message, FutureWarning, stacklevel=depth)

"""Whether a value is what the type of an option says. Numbers that are taken exactly are checked
where they are read.
"""

from __future__ import annotations

import math
import types
from collections.abc import Sequence
from fractions import Fraction
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from tallytree.options.choices import did_you_mean
from tallytree.options.late import Array, ArrayBool

_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    Path: "a path",
    type(None): "nothing",
}


def problem_with(name: str, value: Any, kind: Any, least: float | None = None) -> str | None:
    """In words what is wrong with the value of an option; None where it fits its type."""
    # No machine counts beyond 64 bits, and a float cannot even hold some of what a config may say.
    most = 2**63 if isinstance(value, Integral) else math.inf
    number: Any = value if isinstance(value, Real) else least
    outside = least is not None and not least <= number < most
    if not _is_writable(value):
        return f"{name} holds bytes that are no text in UTF-8. Write it in UTF-8."
    if fits(value, kind) and not outside:
        return None
    if least is not None and set(alternatives(kind)) <= {int, float}:
        whole = "whole " if int in alternatives(kind) else ""
        return f"{name} is a {whole}number of at least {least:g}, got {value!r}."
    return _misfit(name, value, kind)


def _is_writable(value: Any) -> bool:
    """Whether texts can be written into a manifest; a command line may hold any bytes, which arrive
    as lone surrogates.
    """
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, dict):
        return all(map(_is_writable, (*value, *value.values())))
    return not isinstance(value, list | tuple) or all(map(_is_writable, value))


def fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type; NumPy's numbers count as numbers, and any sized collection but
    text as a sequence.
    """
    if kind is Any or kind is object or _is_exact(kind):
        return True
    if _is_union(kind):
        return any(fits(value, part) for part in get_args(kind))
    origin = get_origin(kind)
    if origin is Literal:
        return any(type(value) is type(name) and value == name for name in get_args(kind))
    if origin in (Sequence, tuple):
        return _is_sequence(value) and _entries_fit(value, get_args(kind)[0])
    if kind is bool or kind is type(None):
        return isinstance(value, bool | ArrayBool) if kind is bool else value is None
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, origin if isinstance(origin, type) else kind)


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The types that a union offers, the type itself where it is none; without None."""
    offered = get_args(kind) if _is_union(kind) else (kind,)
    return tuple(part for part in offered if part is not type(None))


def _misfit(name: str, value: Any, kind: Any) -> str:
    known = [
        str(choice)
        for part in alternatives(kind)
        if get_origin(part) is Literal
        for choice in get_args(part)
    ]
    others = list(
        dict.fromkeys(
            _words(part) for part in alternatives(kind) if get_origin(part) is not Literal
        )
    )
    strings = _wrong_names(value, kind) if known else []
    if strings:
        also = f", or {' or '.join(others)}" if others else ""
        return (
            f"{name} {strings[0]!r} is not known. Choose one of: {', '.join(known)}{also}."
            + did_you_mean(strings[0], known)
        )
    accepted = [*([f"one of {', '.join(known)}"] if known else []), *others]
    return f"{name} takes {' or '.join(accepted)}; got {value!r}."


def _wrong_names(value: Any, kind: Any) -> list[Any]:
    """The single value, or the entries of a list of names, that are no known name."""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return [value]
    lists = [part for part in alternatives(kind) if get_origin(part) in (Sequence, tuple)]
    if not lists or not _is_sequence(value):
        return []
    return [
        entry
        for entry in value
        if isinstance(entry, str) and not fits(entry, get_args(lists[0])[0])
    ]


def _words(kind: Any) -> str:
    if get_origin(kind) in (Sequence, tuple):
        inner = get_args(kind)[0]
        return (
            "a list"
            if inner is Any or _is_union(inner)
            else f"a list of {_words(inner).split()[-1]}s"
        )
    if kind is Array:
        return "an array"
    return _WORDS.get(kind, f"a {getattr(kind, '__name__', 'value')}")


def _entries_fit(value: Any, kind: Any) -> bool:
    return isinstance(value, Array) or all(fits(entry, kind) for entry in value)


def _is_sequence(value: Any) -> bool:
    return (
        hasattr(value, "__iter__")
        and hasattr(value, "__len__")
        and not isinstance(value, str | bytes | dict)
    )


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _is_exact(kind: Any) -> bool:
    """Whether a type takes numbers exactly, however they are written:
    ``tallytree.privacy.budget.exact`` then checks them.
    """
    return _is_union(kind) and Fraction in get_args(kind)

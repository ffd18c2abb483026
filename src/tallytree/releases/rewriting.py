"""A manifest written again from the little that nothing else vouches for, and compared with the one
that is there.

Most of what a manifest says follows from the rest of it and from the tables: what was measured from
the request, noise from the budget, numbers of regions from the table of regions. Whoever changes
such a value by hand is found, by whoever looks. What remains is told and believed: names, words
about the data, versions of libraries. For that a ledger or a signature vouches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from tallytree.releases.checks import Check
from tallytree.storage.folder import Folder, Manifest

FOLLOWS = "the manifest follows from what it asks for"
# Told and believed, in manifests of all kinds. The words of the promise follow from its figures,
# which is checked by itself.
_TOLD = (
    ("versions",),
    ("estimated_from",),
    ("intervals",),
    ("privacy", "ledger"),
    ("privacy", "adds"),
    ("privacy", "alone"),
    ("privacy", "statement"),
)


def check_written(folder: Folder, again: Callable[[Folder], Manifest]) -> tuple[Check, ...]:
    """Whether a manifest is the one that is written again."""
    stated = folder.manifest
    expected = json.loads(json.dumps(_with_told(again(folder), stated)))
    differ = sorted(differences(expected, stated))
    shown = ", ".join(differ[:5]) + (" …" if len(differ) > 5 else "")
    return (Check(FOLLOWS, not differ, f"{shown} differ." if differ else ""),)


def told_once(checks: Collection[Check]) -> tuple[Check, ...]:
    """Checks without the one of the whole manifest where another one failed, which tells more about
    the same.
    """
    others = [check for check in checks if check.name != FOLLOWS]
    return tuple(checks if all(check.passed for check in others) else others)


def differences(expected: Any, stated: Any, where: str = "") -> Iterator[str]:
    """The ways to all values in which two JSON values differ."""
    if type(expected) is not type(stated):
        yield where
    elif isinstance(expected, dict):
        for name in expected.keys() | stated.keys():
            way = f"{where}.{name}" if where else str(name)
            if name in expected and name in stated:
                yield from differences(expected[name], stated[name], way)
            else:
                yield way
    elif isinstance(expected, list) and len(expected) == len(stated):
        for number, (one, other) in enumerate(zip(expected, stated)):
            yield from differences(one, other, f"{where}.{number}")
    elif expected != stated:
        yield where


def _with_told(expected: Manifest, stated: Manifest) -> Manifest:
    """What is told put into a manifest that was written again."""
    made = {**expected, **{name: dict(expected[name]) for name in ("privacy", "public")}}
    for *above, name in _TOLD:
        to, source = (made[above[0]], stated[above[0]]) if above else (made, stated)
        to.pop(name, None)
        if name in source:
            to[name] = source[name]
    return made


def whole_numbers(folder: Folder, column: str) -> bool:
    """Whether the counts of a folder are of a type of whole numbers."""
    return bool(np.issubdtype(folder.table("counts.parquet")[column].to_numpy().dtype, np.integer))

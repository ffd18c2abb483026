"""Mechanisms that another room adds to a kind's table.

The kinds import no papers. The package's door says which module adds mechanisms to which table; the
module is imported when a mechanism that the table does not have itself is asked for by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

MODULES: dict[str, str] = {}
"""Table by table the module whose ``MECHANISMS`` belong to it too."""


def extension(table: str) -> Mapping[str, Any]:
    """The further mechanisms of a table, by name; none where no module adds any."""
    if table not in MODULES:
        return {}
    mechanisms: Mapping[str, Any] = import_module(MODULES[table]).MECHANISMS
    return mechanisms

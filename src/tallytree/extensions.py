"""What a room further down adds to one above that must not import it.

The kinds import no papers, and what every release can do knows no kind. The package's door says
which module adds what; the module is imported when it is first needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

MODULES: dict[str, str] = {}
"""By what is added: table by table the module whose ``MECHANISMS`` belong to it too, and under
``showing`` the one that shows releases."""


def added_module(what: str) -> ModuleType:
    """The module that adds something, which the door has named."""
    return import_module(MODULES[what])


def extension(table: str) -> Mapping[str, Any]:
    """The further mechanisms of a table, by name; none where no module adds any."""
    if table not in MODULES:
        return {}
    mechanisms: Mapping[str, Any] = added_module(table).MECHANISMS
    return mechanisms

"""The confidential data that a release is compared with, as the request that released it names them."""

from __future__ import annotations

from dataclasses import Field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tallytree.cli.commands import SOURCE, option_groups, read_config
from tallytree.cli.lazy import COMMANDS
from tallytree.errors import RequestError
from tallytree.options.base import fields_of, read_value

if TYPE_CHECKING:
    from tallytree.releases.kind import Kind


def truth_of(config: str, kind: Kind) -> tuple[str, dict[str, Any]]:
    """The source that a request for a kind of release names, and how it is read.

    What else the request says, such as its privacy loss, is left aside.
    """
    if not config.endswith(".toml"):
        raise RequestError(
            f"The truth is named by a CONFIG.toml, such as the release was requested by; got "
            f"{config}."
        )
    fields = _fields_of_requests(kind.command)
    facts = read_config(config, fields)
    source = facts.pop(SOURCE)
    return source, {
        name: read_value(fields[name], value)
        for name, value in facts.items()
        if name in kind.evaluates_with
    }


def _fields_of_requests(name: str) -> dict[str, Field[Any]]:
    """The options of the command that makes a kind of release."""
    if name not in COMMANDS:
        return {}
    handler = getattr(import_module(f"tallytree.cli.{COMMANDS[name][0]}"), name)
    groups = option_groups(handler).values()
    return {field.name: field for group in groups for field in fields_of(group)}

"""Write the command line reference, ``docs/reference/cli.md``, from the application itself.

Run with: python -m docs.cli_reference
"""

from __future__ import annotations

import inspect
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

from tallytree.cli import load_commands

PAGE = Path(__file__).parent / "reference" / "cli.md"
KINDS = {str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}
HEAD = """# Command line

This page is written from the application by `make docs`; `tallytree COMMAND --help` shows the same by the same
questions, and where it would show more than 25 options, leaves the rare ones to `tallytree COMMAND --help-all`.

Exit codes: 0 done; 1 a check failed; 2 the request or the data is wrong; 3 the ledger refused the budget; 4 paid for and
kept, but not finished (`resume` goes on). With `--json`, one
JSON object and nothing else goes to standard output; messages go to standard error. Tables are drawn on a terminal and
tab-separated when piped. `tallytree --install-completion` installs completion for your shell.
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for name, command in sorted(load_commands().items()):
        for sub, inner in sorted(getattr(command, "commands", {"": command}).items()):
            parts.append(_section(f"tallytree {name} {sub}".strip(), inner))
    return "\n".join(parts)


def _section(name: str, command: Any) -> str:
    prose, examples = _split(inspect.cleandoc(command.help or ""))
    kinds = get_type_hints(inspect.unwrap(command.callback))
    arguments = [
        parameter for parameter in command.params if parameter.param_type_name == "argument"
    ]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join([name, *(_metavar(argument, kinds) for argument in arguments), "[OPTIONS]"])
    lines = [f"## {name}", "", prose, "", "```text", usage, "```", ""]
    lines += ["For example:", "", "```text", *examples, "```", ""] if examples else []
    lines += [
        f"- `{_metavar(argument, kinds)}`: {_text(argument.help)}" for argument in arguments
    ] + [""]
    lines += ["| option | meaning | default |", "| --- | --- | --- |"]
    panel = None
    for option in options:
        if option.name in kinds and option.name != "help_all":
            lines += (
                [] if option.rich_help_panel == panel else [f"| **{option.rich_help_panel}** | | |"]
            )
            panel = option.rich_help_panel
            lines.append(_row(option, kinds))
    return "\n".join([*lines, ""])


def _split(help_text: str) -> tuple[str, list[str]]:
    """Prose, and the commands of the lines that start with ``Example:``."""
    lines = help_text.splitlines()
    examples = [
        line.removeprefix("Example:").strip() for line in lines if line.startswith("Example:")
    ]
    prose = "\n".join(line for line in lines if not line.startswith("Example:"))
    return prose.strip(), examples


def _row(option: Any, kinds: dict[str, Any]) -> str:
    flags = ", ".join(f"`{flag}`" for flag in [*option.opts, *option.secondary_opts])
    if not option.is_flag:
        flags += f" `{_metavar(option, kinds)}`".replace("|", "\\|")
    default = "required" if option.required else _default(option)
    return f"| {flags} | {_text(option.help)} | {default} |"


def _default(option: Any) -> str:
    value = option.default
    if value is None or value is False or value in ((), []):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _metavar(parameter: Any, kinds: dict[str, Any]) -> str:
    """What stands for the value: as the command says, or the choices, or the kind of value."""
    if parameter.metavar:
        return str(parameter.metavar)
    possible = get_args(kinds[parameter.name]) or (kinds[parameter.name],)
    kind = next(kind for kind in possible if kind is not type(None))
    kind = next(iter(get_args(kind)), kind)  # an option that may be repeated is a list
    if issubclass(kind, Enum):
        return "|".join(str(choice.value) for choice in kind)
    return str(parameter.name).upper() if parameter.param_type_name == "argument" else KINDS[kind]


def _text(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")

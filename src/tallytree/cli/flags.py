"""Options as flags: what Typer sees of each, in which order, and which ones a short help leaves out."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import Field, dataclass
from typing import Annotated, Any

import typer

from tallytree.options.base import Spelling, spelling_of
from tallytree.options.checks import alternatives
from tallytree.options.panels import EXPERTS, PANELS

MOST_SHOWN = 25
"""Options in a short help, those of the help itself counted."""


@dataclass(frozen=True)
class Flag:
    """An option of a command: its field, its type, and the question that it answers."""

    field: Field[Any]
    kind: Any
    panel: str | None

    @property
    def spelling(self) -> Spelling:
        """How it is written."""
        return spelling_of(self.field)

    @property
    def name(self) -> str:
        """The flag's name, as a Python name."""
        return self.spelling.flag or self.field.name

    def mark(self, needs: Sequence[str]) -> str | None:
        """When it must be given; None where it may be left out."""
        return "" if self.field.name in needs else self.spelling.needed

    def parameter(self, needs: Sequence[str]) -> inspect.Parameter:
        """What Typer sees of it. Text is read, and everything checked, by the group of options
        itself.
        """
        default = None if self.field.default == () else self.field.default
        shown: Any = _shown_type(self.kind, self.spelling)
        if shown is bool:
            default = default is True and not self.spelling.flips
        elif default is None:
            shown = shown | None
        annotation = Annotated[shown, self._option(self.mark(needs))]
        return inspect.Parameter(
            self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )

    def _option(self, mark: str | None) -> Any:
        spelling = self.spelling
        flags = [f"--{self.name.replace('_', '-')}"]
        flags += [spelling.alias] if spelling.alias else []
        needed = "" if mark is None else f" ({f'needed {mark}'.strip()})"
        return typer.Option(
            *flags,
            help=spelling.help + needed,
            metavar=spelling.metavar,
            envvar=spelling.envvar,
            rich_help_panel=self.panel,
        )


def in_order(flags: Sequence[Flag], needs: Sequence[str]) -> list[Flag]:
    """Flags by name once each, panel by panel, those that are needed first and rare ones last."""

    def place(flag: Flag) -> tuple[int, bool, bool]:
        return PANELS.index(str(flag.panel)), flag.mark(needs) is None, flag.spelling.rare

    return sorted({flag.field.name: flag for flag in flags}.values(), key=place)


def left_out(flags: Sequence[Flag]) -> frozenset[str]:
    """The flags that a short help leaves out; none where all of them make a short one."""
    if len({flag.name for flag in flags}) < MOST_SHOWN:  # --help is one more
        return frozenset()
    return frozenset(flag.name for flag in flags if flag.spelling.rare or flag.panel == EXPERTS)


def _shown_type(kind: Any, spelling: Spelling) -> Any:
    if spelling.repeats:
        return list[str]
    if spelling.text is not None:
        return str
    offered = alternatives(kind)
    if offered == (tuple[int, int],):
        return offered[0]
    return offered[0] if len(offered) == 1 and offered[0] in (bool, int, float) else str

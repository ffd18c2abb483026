"""Commands whose help shows options by the question that they answer, the rare ones only when all
are asked for, and that take no option twice.
"""

from __future__ import annotations

import inspect
from copy import copy
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tallytree.cli.once import refuse_repeats

HELP = "Help"
_ALL = "the whole help"


class PanelCommand(TyperCommand):
    """A command with a short help and a whole one, each of whose options is given once.

    Attributes
    ----------
    left_out
        Names of the options that the short help leaves out.
    """

    left_out: frozenset[str] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does, after a look at which options there are how often."""
        if not ctx.resilient_parsing:
            *_, order = self.make_parser(ctx).parse_args(list(args))
            refuse_repeats(order)
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Any) -> Any:
        """The option of the short help, in the panel of both."""
        found = super().get_help_option(ctx)
        if found is not None:
            found.rich_help_panel = HELP
        return found

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: the whole one if it was asked for by its own option."""
        shown = copy(self)
        if not ctx.meta.get(_ALL):
            shown.params = [one for one in self.params if one.name not in self.left_out]
        super(PanelCommand, shown).format_help(ctx, formatter)


def help_all(name: str) -> inspect.Parameter:
    """The option of the whole help, as a parameter of a command."""
    flag = typer.Option(
        f"--{name.replace('_', '-')}",
        help="Show all options, those for experts too.",
        is_eager=True,
        callback=_show_all,
        rich_help_panel=HELP,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, flag]
    )


def _show_all(context: typer.Context, asked: bool) -> None:
    if asked:
        context.meta[_ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit

"""Commands by name: a command's module is imported when the command is asked for, not to list it in
the help.

Together the modules load everything that any command needs, over a second; the help needs names and
one line each.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

# Commands by task, in the order of the help: each with the module of this folder that registers it,
# and the first line of its help.
TASKS = {
    "Begin": {
        "demo": (
            "demo",
            "Make a US-like housing data set, release it, verify it, measure its error and write its report.",
        ),
        "doctor": (
            "doctor",
            "Show versions and whether engines, noise, folders, Spark, PostgreSQL and solvers work here.",
        ),
    },
    "Plan and release": {
        "plan": (
            "plan",
            "Predict the error of a release from public facts alone, or find the ε that a target needs.",
        ),
        "release": ("release", "Release how many groups have each size, at every level."),
        "values": (
            "values",
            "Release sums, means, medians and the whole distribution of a value, at every level.",
        ),
        "table": (
            "table",
            "Release how many rows every region has by attributes: people by age and sex, jobs by "
            "industry.",
        ),
        "histogram": (
            "histogram",
            "Release a histogram of one column that answers any range, with error bars.",
        ),
        "spatial": ("spatial", "Release a map of points that answers how many lie in any box."),
        "degrees": (
            "degrees",
            "Release how large groups are, or the degrees of a graph, without saying which is which.",
        ),
        "stream": (
            "stream",
            "Release how many rows came so far, after every step; run it again, with a later --until, to go on.",
        ),
    },
    "Check and ask": {
        "verify": (
            "inspect",
            "Check a release: checksums, integers, nonnegativity, group totals, and that children add up to parents.",
        ),
        "query": (
            "inspect",
            "Answer questions about a release: one region, ranges, boxes, degrees; without a question, show its counts.",
        ),
        "compare": (
            "compare",
            "Compare two releases, or a release and a published table: differences with "
            "intervals, and which are clear of noise.",
        ),
        "evaluate": (
            "inspect",
            "Errors against the truth, NOT private: of groups by level and size, of ranges and boxes by length and area.",
        ),
    },
    "Publish": {
        "report": (
            "report",
            "Write one self-contained HTML file that opens offline: regions to click through, charts, budget, checks.",
        ),
        "export": (
            "export",
            "Write a release for other programs: CSV, Excel, Parquet, JSON-stat, SDMX, Frictionless, GeoJSON, GeoParquet.",
        ),
        "microdata": (
            "export",
            "Write synthetic groups and entities whose tables are exactly those of a release.",
        ),
        "card": (
            "card",
            "Write card.json and card.md into a release folder: what it is and promises, as "
            "registries of deployments ask for it.",
        ),
        "sign": (
            "finish",
            "Sign a release that verifies, so that whoever has your public key can check that it is yours and unchanged.",
        ),
    },
    "Go on with a paid release": {
        "resume": (
            "finish",
            "Finish a release that is paid for and was left unfinished; nothing is paid or drawn again.",
        ),
        "re-estimate": (
            "finish",
            "Estimate a saved release again from its raw measurements, at no privacy cost.",
        ),
        "clean": (
            "finish",
            "Drop what an unfinished release has left. What was paid for it stays paid, and its answers are lost.",
        ),
    },
    "Budgets": {
        "ledger": ("ledger", "Budget accounts of data sets."),
    },
    "Papers": {
        "reproduce": ("reproduce", "Print a paper's figures beside ours."),
    },
}
COMMANDS = {name: listed for commands in TASKS.values() for name, listed in commands.items()}


class LazyGroup(TyperGroup):
    """All commands; those whose module is not imported yet stand there with their line of help
    only.
    """

    def __init__(self, *, commands: dict[str, Any] | None = None, **options: Any) -> None:
        registered = dict(commands or {})
        listed = {name: registered.pop(name, None) or _listed(name) for name in COMMANDS}
        for task, names in TASKS.items():
            for name in names:
                listed[name].rich_help_panel = task
        super().__init__(commands=listed | registered, **options)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, with its module imported."""
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = load_command(args[0])
        return super().resolve_command(ctx, args)


def load_command(name: str) -> Any:
    """The command of this name, as its module registers it."""
    from tallytree.cli.app import app

    import_module(f"tallytree.cli.{COMMANDS[name][0]}")
    return typer.main.get_group(app).commands[name]


def load_commands() -> dict[str, Any]:
    """All commands by name."""
    return {name: load_command(name) for name in COMMANDS}


def _listed(name: str) -> TyperCommand:
    return TyperCommand(name, help=COMMANDS[name][1])

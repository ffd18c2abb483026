"""The application object, how errors become exit codes, and how results are printed."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from tallytree.cli.lazy import LazyGroup
from tallytree.errors import BudgetError, PaidNotFinishedError, TallytreeError, VerificationError
from tallytree.model.notebook import plain
from tallytree.version import __version__

DONE, CHECK_FAILED, BAD_REQUEST, BUDGET_REFUSED, NOT_FINISHED = 0, 1, 2, 3, 4

WHAT_IT_IS = (
    "Publish tables of counts that add up, with a differential privacy guarantee. "
    "Begin with: tallytree demo\n\n"
    "Then, for a table of your own: tallytree release --help"
)

app = typer.Typer(
    name="tallytree",
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
output = Console()
messages = Console(stderr=True)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tallytree {__version__}")
        raise typer.Exit


@app.callback(help=WHAT_IT_IS)
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that belong to no command."""


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; every error raised on purpose becomes one message and an exit code."""
    if sys.stdout is None:  # the next file that is opened would take its place, the ledger perhaps
        say(
            "tallytree: Standard output is closed; nothing was done. Send it to a file or /dev/null."
        )
        sys.exit(BAD_REQUEST)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console may lack a letter
    warnings.showwarning = lambda message, *origin, **more: say(f"tallytree: {message}")
    try:
        app(
            args=list(arguments) if arguments is not None else None,
            prog_name="tallytree",
            standalone_mode=True,
        )
        code: Any = DONE
    except SystemExit as end:
        code = end.code
    except TallytreeError as error:
        say(f"tallytree: {error}")
        code = exit_code(error)
    except OSError as error:
        code = _output_failed(error)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _output_failed(error)
    sys.exit(code)


def _output_failed(error: OSError) -> int:
    """Say that nothing more can be printed, and keep Python from trying again at its end."""
    say(f"tallytree: Cannot write the output: {error.strerror or error}.")
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BAD_REQUEST


def exit_code(error: TallytreeError) -> int:
    """1 a check failed, 3 the ledger refused, 4 paid and not finished, 2 the request or the data is
    wrong.
    """
    if isinstance(error, PaidNotFinishedError):
        return NOT_FINISHED
    if isinstance(error, VerificationError):
        return CHECK_FAILED
    return BUDGET_REFUSED if isinstance(error, BudgetError) else BAD_REQUEST


def say(message: str) -> None:
    """Print a message for people to standard error, never wrapped or coloured by its content."""
    messages.print(message, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON object and nothing else to standard output."""
    readable = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=not readable, allow_nan=False) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A Rich table on a terminal, tab-separated text when piped."""
    if not output.is_terminal:
        for row in [columns, *rows]:
            sys.stdout.write("\t".join(plain(value) for value in row) + "\n")
        return
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    numeric = [
        bool(rows) and all(isinstance(row[i], (int, float)) for row in rows)
        for i in range(len(columns))
    ]
    for name, right in zip(columns, numeric):
        table.add_column(name, justify="right" if right else "left")
    for row in rows:
        table.add_row(*(plain(value) for value in row))
    output.print(table)


@contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on a terminal; silence otherwise. Yields what :func:`tallytree.release` takes
    as ``progress``.
    """
    if not messages.is_terminal:
        yield lambda done, total, step: None
        return
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from tallytree.kernels.jit import telling

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages, transient=True) as bar:
        task = bar.add_task("reading", total=None)
        step_under_way = "reading"

        def update(done: int, total: int, step: str) -> None:
            nonlocal step_under_way
            step_under_way = step
            bar.update(task, completed=done, total=total, description=step)

        def compiling() -> None:
            bar.update(
                task, description=f"{step_under_way} (compiling, once per machine)", refresh=True
            )

        with telling(compiling):
            yield update

"""The command line: each command parses, calls one function, prints."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

__all__ = ["load_commands", "main"]

STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line.

    A request to stop (SIGTERM, SIGHUP) ends a run as Ctrl-C does: what was paid for is kept, and how to go on is said. That
    holds from the first line on: loading the program takes longest of all that a short command does.
    """
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
            signal.signal(getattr(signal, name), _stop)
    try:
        from tallytree.cli.app import run

        run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("tallytree: stopped; nothing is left unfinished.\n")
        sys.exit(STOPPED)


def _stop(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def load_commands() -> dict[str, Any]:
    """All commands by name."""
    from tallytree.cli.lazy import load_commands as load

    return load()

"""The command line: each command parses, calls one function, prints."""

from __future__ import annotations

import _thread
import atexit
import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from tallytree.cli.quick_start import leave_pandas_out, reads_releases_only

__all__ = ["load_commands", "main", "program"]

STOPPED = 130
# After a request to stop was lost it is made again; seconds.
_MOMENT = 0.02


def program() -> NoReturn:
    """Run the command line as a program of its own, which is gone when the command is done."""
    codes: list[int] = []
    atexit.register(_leave_at_once, codes)
    if reads_releases_only(sys.argv[1:]):
        leave_pandas_out()
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            codes.append(end.code or 0)
        raise


def _leave_at_once(codes: list[int]) -> None:
    """End the process with the code of its command, the last thing that Python was asked to do at
    its end.

    Python would look through all objects and free each of them first, a fifth of the time of a
    short command. Files are closed by then; where something cannot be printed, or the command broke
    off, Python's own way tells about it.
    """
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    if codes:
        os._exit(codes[-1])


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line.

    A request to stop (SIGTERM, SIGHUP) ends a run as Ctrl-C does: what was paid for is kept, and
    how to go on is said. That holds from the first line on: loading the program takes longest of
    all that a short command does.
    """
    # Libraries make some 10⁵ objects that all stay. Looking for garbage at every 700th takes a
    # tenth of a start.
    gc.set_threshold(500_000)
    with _stopping() as asked:
        try:
            from tallytree.cli.app import run

            run(arguments)
        except SystemExit as end:
            if end.code == STOPPED:
                _say_stopped()
            raise
        except (KeyboardInterrupt, Exception):
            # Libraries make other errors of a request to stop: a query was interrupted, a module
            # came only half.
            if not asked.is_set():
                raise
            _say_stopped()
            sys.exit(STOPPED)


def _say_stopped() -> None:
    """What is told where nothing was paid, or everything was finished; a run that has paid tells
    how to go on.
    """
    sys.stderr.write("tallytree: stopped; nothing is left unfinished.\n")


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Have every request to stop raise KeyboardInterrupt, and tell whether there was one.

    Where raising would do harm, or would be lost, the request is made again a moment later. Outside
    the block signals do what they did before.
    """
    asked, over, before = threading.Event(), threading.Event(), sys.unraisablehook
    pressing = threading.Lock()  # so that no request is made again after the block
    noticing = threading.Event()  # the request is being made again where it cannot be raised

    def stop(number: int, frame: FrameType | None) -> None:
        asked.set()
        if over.is_set() or noticing.is_set():
            return
        if _is_compiling(frame):
            ask_again()
            return
        raise KeyboardInterrupt

    def ask_again() -> None:
        again = threading.Timer(_MOMENT, press)
        again.daemon = True
        again.start()

    def press() -> None:
        with pressing:
            if not over.is_set():
                _interrupt()

    def notice(lost: Any) -> None:
        """Where the request hit a finaliser or a callback, Python would show a traceback and go on
        as if nobody had asked.
        """
        if issubclass(lost.exc_type, KeyboardInterrupt):
            noticing.set()
            ask_again()
            noticing.clear()
        else:
            before(lost)

    handlers = {}
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
            handlers[name] = signal.signal(getattr(signal, name), stop)
    sys.unraisablehook = notice
    try:
        yield asked
    finally:
        with pressing:
            over.set()
        sys.unraisablehook = before
        for name, handler in handlers.items():
            signal.signal(getattr(signal, name), handler)


def _is_compiling(frame: FrameType | None) -> bool:
    """Whether the compiler is at work: stopped midway it leaves half-made objects, which end the
    process when freed.
    """
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in ("numba", "llvmlite"):
            return True
        frame = frame.f_back
    return False


def _interrupt() -> None:
    """Press Ctrl-C; as a true signal where there are some, which also ends a wait."""
    main_thread = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main_thread is not None:
        signal.pthread_kill(main_thread, signal.SIGINT)
    else:
        _thread.interrupt_main()


def load_commands() -> dict[str, Any]:
    """All commands by name."""
    from tallytree.cli.lazy import load_commands as load

    return load()

"""What all fuzzers share: how much they try, how long a case may take, and what counts as wrong."""

import os
import random
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tallytree.cli import main
from tallytree.errors import TallytreeError

# How many times as much as in the ordinary run, and other cases than its own: TALLYTREE_FUZZ=50
# TALLYTREE_FUZZ_SEED=1 pytest tests/fuzz.
TIMES = int(os.environ.get("TALLYTREE_FUZZ", "1"))
OTHER = int(os.environ.get("TALLYTREE_FUZZ_SEED", "0"))
SECONDS = 20
SECRET = "Zq7secret"
"""Stands in confidential cells alone; no message may show it."""


def seeded(number: int) -> random.Random:
    """The dice of one fuzzer."""
    return random.Random(number + 1000 * OTHER)


@contextmanager
def at_most(seconds: int = SECONDS) -> Iterator[None]:
    """An error where something takes longer: a number that cannot be worked out hangs, and a test
    that hangs says nothing.
    """

    def late(*_: object) -> None:
        raise AssertionError(f"still at it after {seconds} s")

    before = signal.signal(signal.SIGPROF, late)  # by the time of this process, not of the machine
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def complaint(use: Callable[[], Any]) -> str | None:
    """Nothing, or what went wrong other than by an error with one line."""
    try:
        with at_most():
            use()
    except TallytreeError as error:
        said = str(error)
        if SECRET in shown_by(error):
            return f"a confidential value was shown: {said!r}"
        return None if said and "\n" not in said else f"no one line: {said!r}"
    except Exception:
        return traceback.format_exc(limit=-3)
    return None


def shown_by(error: BaseException | None) -> str:
    """All that an error, its causes and their arguments say."""
    found = []
    while error is not None:
        found.append(f"{error} {error.args}")
        error = error.__cause__ or error.__context__
    return " ".join(found)


def command_complaint(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """Nothing, or what went wrong other than by an exit code from 0 to 4 and messages."""
    capsys.readouterr()
    try:
        with at_most():
            main(arguments)
    except SystemExit as end:
        code = end.code or 0
    except Exception:
        return traceback.format_exc(limit=-3)
    err = capsys.readouterr().err
    if code not in range(5):
        return f"exit code {code}: {err}"
    if SECRET in err:
        return f"a confidential value was shown: {err}"
    return f"a traceback was shown: {err}" if "Traceback" in err else None


def ended(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> int:
    """The exit code of a command that must say something where it fails, in lines and without a
    traceback.
    """
    capsys.readouterr()
    with at_most(), pytest.raises(SystemExit) as end:
        main(arguments)
    return int(end.value.code or 0)

"""Runs a command and is killed at a named step of it: ``python -m tests.releases.crash_driver STEP
ARGUMENTS …``.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import tallytree.group_sizes.measure.adaptive
import tallytree.group_sizes.measure.staircases
import tallytree.group_sizes.publish
import tallytree.ledger.accounts
import tallytree.privacy.journal
import tallytree.releases.keeping
import tallytree.storage.folder
import tallytree.storage.work
from tallytree.cli import main

# Step: module, function, and which call of it is the last.
STEPS: dict[str, tuple[Any, str, int]] = {
    "reserve": (tallytree.ledger.accounts, "reserve", 1),
    "look": (tallytree.group_sizes.measure.adaptive, "measure_first_look", 1),
    "measure": (tallytree.releases.keeping.PaidNoise, "measured", 1),
    "first-answer": (tallytree.privacy.journal.Journal, "_keep", 1),
    "half-measure": (tallytree.group_sizes.measure.staircases, "add_noise", 2),
    "write": (tallytree.group_sizes.publish.Release, "save", 1),
    "half-write": (tallytree.storage.folder, "_write_table", 1),
    "move": (tallytree.storage.work.Work, "put_into_place", 1),
    "note": (tallytree.ledger.accounts, "note_measured", 1),
    "report": (tallytree.ledger.accounts, "complete", 1),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill_at(step: str) -> None:
    moment, _, name = step.partition(" ")
    owner, function, last_call = STEPS[name]
    original: Callable[..., Any] = getattr(owner, function)
    calls = 0

    def deadly(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        call = calls  # files are written side by side
        if call == last_call and moment == "before":
            die()
        result = original(*arguments, **options)
        if call == last_call and moment == "after":
            die()
        return result

    setattr(owner, function, deadly)


if __name__ == "__main__":
    kill_at(sys.argv[1])
    main(sys.argv[2:])

"""Releases one kind to a folder by its function of Python, and is killed at a named step:
``python -m tests.releases.library_driver STEP KIND OUT LEDGER``.
"""

import sys

from tests.fuzz.small import MADE
from tests.releases.crash_driver import kill_at

if __name__ == "__main__":
    step, kind, out, ledger = sys.argv[1:]
    kill_at(step)
    MADE[kind](out=out, ledger=ledger, dataset="census", idempotency_key="monday")

"""Many processes that reserve from one account while some of them are killed at random.

Runs in a process of its own, so that forking is safe. Each worker writes a receipt to its own file
as soon as a reservation is acknowledged; the test then compares receipts and ledger.
"""

import json
import os
import random
import signal
import sys
import time
from fractions import Fraction
from pathlib import Path

from tallytree.errors import BudgetError, DuplicateReleaseError
from tallytree.ledger.accounts import Purpose, reserve
from tallytree.privacy.budget import Budget

DATASET = "stampede"
AMOUNTS = [Fraction(1, 10), Fraction(1, 11), Fraction(2, 21)]
# Reservations between two kills, at least: on a busy machine the workers must still get further
# than they are thrown back.
RESERVATIONS_PER_KILL = 10


def work(ledger: str, folder: Path, worker: int, seed: int) -> None:
    """Reserve until the account is empty; a restarted worker first repeats the reservation it may
    have died in.
    """
    own = folder / f"worker-{worker}"
    done = own.read_text().count("\n") if own.exists() else 0
    dice = random.Random(seed)
    receipts = os.open(own, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    supervisor = os.getppid()
    while os.getppid() == supervisor:
        # The amount depends on the key alone, so that a repeated request is the same request.
        amount = AMOUNTS[(worker + done) % len(AMOUNTS)]
        line: dict[str, object]
        try:
            entry = reserve(
                ledger,
                DATASET,
                Budget("pure", amount),
                secure=True,
                purpose=Purpose(key=f"{worker}-{done}"),
            )
            line = {**entry.receipt(), "repeated": False}
            if dice.random() < 0.01:
                os.kill(os.getpid(), signal.SIGKILL)  # the worst moment: paid, and nobody was told
        except DuplicateReleaseError as error:
            line = {**error.receipt, "repeated": True}
        except BudgetError as error:
            if (
                error.requested is None
                or error.remaining is None
                or error.requested <= error.remaining
            ):
                raise
            return
        os.write(receipts, (json.dumps(line) + "\n").encode())
        done += 1
        if dice.random() < 0.1:
            time.sleep(dice.random() * 0.01)


def acknowledged(folder: Path) -> int:
    """Number of receipts so far."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("worker-*"))


def main(ledger: str, folder: Path, n_workers: int, pause: float) -> None:
    dice = random.Random(5)
    # Once here, so that the workers inherit compiled statements instead of each making its own.
    reserve(ledger, DATASET, Budget("pure", AMOUNTS[0]), secure=True)
    running: dict[int, int] = {}

    def start(worker: int) -> None:
        seed = dice.getrandbits(32)
        process = os.fork()
        if process == 0:
            try:
                work(ledger, folder, worker, seed)
                os._exit(0)
            except BaseException as error:
                (folder / f"failure-{worker}-{os.getpid()}").write_text(repr(error))
                os._exit(1)
        running[process] = worker

    for worker in range(n_workers):
        start(worker)
    kills = next_kill = 0
    emptied = False
    while running:
        process, status = os.waitpid(-1, os.WNOHANG)
        if process:
            worker = running.pop(process)
            if os.WIFSIGNALED(status):
                kills += 1
                start(worker)
            else:
                emptied = True
        else:
            time.sleep(dice.random() * 2 * pause)
            if not emptied and (done := acknowledged(folder)) > next_kill:
                next_kill = done + RESERVATIONS_PER_KILL
                os.kill(dice.choice(list(running)), signal.SIGKILL)
    sys.stdout.write(json.dumps({"kills": kills}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))

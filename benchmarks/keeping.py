"""Runs that are killed or stopped at random moments, and runs that want one folder: every payment
ends in one release.

Each run is hit once, by SIGKILL, SIGINT, SIGTERM or SIGHUP, at a moment drawn from the whole time
that it takes, and then finished as its message says. A tenth of the runs start as fresh processes,
so that the start of the program is hit too.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.ledger.postgres_server import postgres_server, server_programs

import benchmarks
from benchmarks import forked

SIGNALS = {
    "SIGKILL": signal.SIGKILL,
    "SIGINT": signal.SIGINT,
    "SIGTERM": signal.SIGTERM,
    "SIGHUP": signal.SIGHUP,
}
N_RUNS = 200


def main() -> dict[str, Any]:
    forked.import_everything()
    n_runs = N_RUNS if benchmarks.FULL else N_RUNS // 10
    figures: dict[str, Any] = {}
    for name in ("SQLite", "PostgreSQL") if server_programs() else ("SQLite",):
        server = postgres_server() if name == "PostgreSQL" else nullcontext("ledger.db")
        with server as address, tempfile.TemporaryDirectory() as home:
            ledger = address.format(database="postgres")
            figures[f"{name}: signals"] = interrupt(Path(home), ledger, n_runs, random.Random(19))
            figures[f"{name}: runs to one folder"] = stampede(Path(home), ledger)
        for what in (f"{name}: signals", f"{name}: runs to one folder"):
            print(f"   {what}: {figures[what]}", flush=True)
    return figures


def interrupt(home: Path, ledger: str, n_runs: int, dice: random.Random) -> dict[str, Any]:
    """Hit runs by signals, finish them, and look."""
    took = {}
    for name, command in forked.RELEASES.items():
        for attempt in range(2):  # the first one on a machine compiles
            case = f"{home.name}-{name}-{attempt}"
            forked.in_child(lambda case=case: forked.new_case(home / case, ledger, case))
            took[name] = forked.time_of([*command, *forked.paid(ledger, case)], home / case)
    states, wrong, again = Counter[str](), [], 0
    for number in range(n_runs):
        name, case = dice.choice(list(forked.RELEASES)), f"{home.name}-{number}"
        folder = home / case
        forked.in_child(lambda folder=folder, case=case: forked.new_case(folder, ledger, case))
        key = ["--idempotency-key", "monday"] if number % 2 else []
        command = [*forked.RELEASES[name], *forked.paid(ledger, case), *key]
        told = list(SIGNALS)[number % len(SIGNALS)]
        fresh = number % 10 == 9
        code = hit(
            command,
            folder,
            SIGNALS[told],
            dice.uniform(0, took[name] * (3 if fresh else 1)),
            fresh=fresh,
        )
        before = forked.in_child(
            lambda folder=folder, case=case: forked.paid_before(folder, ledger, case)
        )
        come = [state for state in ("complete", "measured", "reserved") if before[state]]
        states[come[0] if come else "not paid"] += 1
        if before["reserved"] and not before["complete"] and told != "SIGKILL" and code != 4:
            wrong.append(f"{case} ({name}, {told}): exit code {code} though it had paid")
        runs, code = forked.finish(folder, command, ledger)
        again += runs
        after = forked.in_child(
            lambda folder=folder, case=case: forked.state_of(folder, ledger, case)
        )
        if after.get("error") or after["wrong"] or code:
            log = (folder / "log.txt").read_text(errors="replace")
            wrong.append(
                f"{case} ({name}, {told}, {before}): {after}, exit code {code}; {shown(log)}"
            )
        forked.drop(folder)
    return {
        "runs": n_runs,
        "when hit": dict(states),
        "finished by one more run": again,
        "wrong": wrong,
    }


def shown(log: str) -> str:
    """The part of a log that says what went wrong: from the first traceback on, or its end."""
    return log[log.find("Traceback") :][:1500] if "Traceback" in log else log[-600:]


def hit(command: list[str], folder: Path, number: int, after: float, *, fresh: bool) -> int:
    """Start a run, hit it after so many seconds of its own time, and wait for its end; its exit
    code.
    """
    if fresh:
        with (folder / "log.txt").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "tallytree", *command], cwd=folder, stdout=log, stderr=log
            ).pid
    else:
        process = forked.start(command, folder, "log.txt")
    while forked.used(process) < after:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    os.kill(process, number)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def stampede(home: Path, ledger: str) -> dict[str, Any]:
    """20 runs to one folder at once, of which one may pay; 12 that may overwrite, of which each
    pays what it releases.
    """
    facts: dict[str, Any] = {}
    for n_runs, more in ((20, []), (12, ["--overwrite"])):
        case = f"{home.name}-runs-{n_runs}"
        folder = home / case
        forked.in_child(lambda folder=folder, case=case: forked.new_case(folder, ledger, case))
        command = [*forked.RELEASES["histogram"], *forked.paid(ledger, case), *more]
        processes = [forked.start(command, folder, "log.txt") for _ in range(n_runs)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        seen = forked.in_child(
            lambda folder=folder, case=case: forked.paid_before(folder, ledger, case)
        )
        facts[f"{n_runs} runs{' with --overwrite' if more else ''}"] = {
            "exit codes": dict(Counter(codes)),
            **seen,
            "release is whole and the ledger vouches for it": vouched(folder, ledger, case),
        }
    return facts


def vouched(folder: Path, ledger: str, case: str) -> bool:
    checks = (
        ["verify", "out"],
        ["ledger", "verify", "--ledger", ledger, "--dataset", case, "--release", "out"],
    )
    return all(forked.run(check, folder) == 0 for check in checks)


if __name__ == "__main__":
    benchmarks.FULL = "--full" in sys.argv
    main()

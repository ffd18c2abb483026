"""Commands in processes of their own that start at once: a process that has imported everything
forks one for each.

The parent only imports: it opens no table, ledger or thread, so that nothing half done is copied.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import tallytree as tt
from tallytree.cli import load_commands, main
from tallytree.ledger.accounts import create_account, read_history
from tallytree.ledger.chain import summarise
from tallytree.ledger.checks import check_history
from tallytree.privacy.budget import Budget

PEOPLE = {"household": [1, 1, 2, 3, 3, 3, 4, 5, 5], "state": ["GA"] * 6 + ["NY"] * 3}
READ = ["--public", "groups", "--group", "household", "--levels", "state"]
BINS = ["--column", "household", "--bounds", "0,8", "--bins", "8"]
RELEASES = {
    "adaptive": ["release", "people.parquet", *READ, "--epsilon", "1"],
    "histogram": ["histogram", "people.parquet", *BINS, "--epsilon", "1"],
    "matching": ["release", "people.parquet", *READ, "--epsilon", "1", "--mechanism", "matching"],
}
OUT, WORK = Path("out"), Path(".out.tallytree")
TOTAL = 10**6


def import_everything() -> None:
    """What a release imports when it gets there, so that children need not."""
    load_commands()
    for name in (
        "ibis",
        "ibis.backends.duckdb",
        "pandas",
        "psycopg",
        "numba",
        "numba.core.compiler",
        "numba.np.ufunc",
    ):
        import_module(name)


def in_child(action: Callable[[], Any]) -> Any:
    """What an action returns, computed in a child; ``{"error": …}`` where it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = action()
        except BaseException as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        os.write(writer, json.dumps(said).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return json.loads(said) if said else {"error": "it died"}


def start(
    arguments: list[str], folder: Path, log: str, first: Callable[[], None] | None = None
) -> int:
    """Start a command in a folder; its process. ``first`` is what it does before anything else."""
    child = os.fork()
    if child:
        return child
    if first is not None:
        first()
    os.chdir(folder)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        main(arguments)
    except SystemExit as end:
        os._exit(int(end.code or 0))
    except BaseException as error:
        os.write(2, f"TRACEBACK {type(error).__name__}: {error}\n".encode())
        os._exit(99)
    os._exit(0)


def run(arguments: list[str], folder: Path, log: str = "log.txt") -> int:
    """Run a command to its end; its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(start(arguments, folder, log), 0)[1])


def new_case(folder: Path, ledger: str, dataset: str) -> None:
    """A folder with data, and an account of its own."""
    folder.mkdir(parents=True)
    pq.write_table(pa.table(PEOPLE), folder / "people.parquet")
    here = Path.cwd()
    os.chdir(folder)
    create_account(ledger, dataset, Budget("pure", Fraction(TOTAL)))
    os.chdir(here)


def paid(ledger: str, dataset: str) -> list[str]:
    return ["--ledger", ledger, "--dataset", dataset, "--out", str(OUT)]


def finish(
    folder: Path, command: list[str], ledger: str, before: bytes | None = None
) -> tuple[int, int]:
    """What a user does who finds that a run died: resume, or where that needs the data, the same
    command again.

    How often one of them released something, and the exit code of the last. ``before`` is the
    manifest of a release that was to be replaced.
    """
    if (folder / WORK).exists():
        code = run(["resume", str(OUT), "--ledger", ledger], folder)
        if code == 0:
            return 1, 0
    if (folder / OUT).exists() and (folder / OUT / "manifest.json").read_bytes() != before:
        return 0, 0
    return 1, run(command, folder)


def state_of(folder: Path, ledger: str, dataset: str, n_paid: int = 1) -> dict[str, Any]:
    """What is wrong after a run was finished: nothing, if every payment ended in one complete
    release.
    """
    os.chdir(folder)
    history = read_history(ledger, dataset)
    wrong = list(check_history(history))
    kinds = [entry.kind for entry in history]
    if kinds != ["create", *["reserve", "measured", "complete"] * n_paid]:
        wrong.append(f"the ledger holds {kinds}")
    if summarise(history).spent != n_paid:
        wrong.append(f"{summarise(history).spent} was spent")
    if not OUT.exists() or not tt.verify(OUT):
        wrong.append("there is no whole release")
    if WORK.exists():
        wrong.append("the work folder was left")
    if "traceback" in Path("log.txt").read_text(errors="replace").lower():
        wrong.append("a traceback was shown")
    return {"wrong": wrong, "paid": kinds.count("reserve")}


def paid_before(folder: Path, ledger: str, dataset: str) -> dict[str, int]:
    """How far a run had come when it died, by the ledger."""
    os.chdir(folder)
    kinds = [entry.kind for entry in read_history(ledger, dataset)]
    return {
        "reserved": kinds.count("reserve"),
        "measured": kinds.count("measured"),
        "complete": kinds.count("complete"),
    }


def time_of(arguments: list[str], folder: Path) -> float:
    """Seconds that the main thread of a run takes."""
    process, last = start(arguments, folder, "log.txt"), 0.0
    while True:
        last = max(last, used(process))
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            if status:
                sys.exit((folder / "log.txt").read_text())
            return last
        time.sleep(0.001)


def used(process: int) -> float:
    """Seconds that the main thread of a process has run: moments do not depend on what else the
    machine does.
    """
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def drop(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)

"""Run in a process of its own: a local release and Spark releases on two executor processes; prints
what was seen as JSON.

Usage: python spark_driver.py FOLDER
"""

import hashlib
import json
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# Not by PYTHONPATH, which the executors would inherit: they must find the package by themselves.
sys.path.insert(0, str(Path(__file__).parents[2] / "src"))

import tallytree as tt
from tallytree.ingest import counting
from tallytree.ledger.accounts import create_account, read_history
from tallytree.privacy.budget import Budget
from tallytree.privacy.journal import Journal
from tallytree.privacy.randomness import KeyStream
from tallytree.spark import running
from tallytree.spark.session import spark_session

MASTER = "local-cluster[2,1,1024]"
READING: dict[str, Any] = {
    "group": "household",
    "levels": ["state", "county"],
    "root": "US",
    "public": "groups",
}
PRIVATE: dict[str, Any] = {**READING, "public": "regions"}
BOUNDED: dict[str, Any] = {**PRIVATE, "unit": "owner", "contributions": 2}
HOW: dict[str, Any] = {"epsilon": 1}


def people(n_households: int = 6_000) -> pa.Table:
    rng = np.random.default_rng(0)
    size = rng.geometric(0.4, n_households)
    size[0] = 900
    county = np.repeat(rng.integers(0, 60, n_households), size)
    household = np.repeat(np.arange(n_households), size)
    owner = rng.integers(0, len(household) // 4, len(household))
    labels = {"state": [f"s{c // 10}" for c in county], "county": [f"c{c:02d}" for c in county]}
    # Which rows of an owner count follows from how numbers are written, and engines write some
    # small ones differently.
    measures = {
        "age": rng.integers(0, 10**6, len(household)) / 8192,
        "far": rng.integers(-300, 300, len(household)) / 64,
    }
    tenure = np.array(["owned", "rented", "lent"])[household % 7 // 3]
    sex = np.array(["f", "m"])[rng.integers(0, 2, len(household))]
    return pa.table(
        {"household": household, "owner": owner, "tenure": tenure, "sex": sex, **measures, **labels}
    )


BOUND: dict[str, Any] = {"epsilon": 1, "unit": "owner", "contributions": 2}
GRID: dict[str, Any] = {
    "columns": ["age", "far"],
    "box": [(0, 100), (-3, 3)],
    "resolution": 16,
    "outside": "drop",
}
# A histogram of numbers and of names, a map, and degrees: what each publishes about one table.
KINDS: dict[str, Callable[[Any], Any]] = {
    "histogram": lambda t: tt.histogram(
        t, column="age", edges=[0, 0.5, 1, 20, 65, 110], outside="clip", **BOUND
    ),
    "categories": lambda t: tt.histogram(
        t, column="state", categories=["s0", "s3"], outside="drop", epsilon=1
    ),
    "map": lambda t: tt.spatial(t, **GRID, **BOUND),
    "table": lambda t: tt.table(t, levels=["state"], by=["sex=f,m", "age=0-17,18-64"], **BOUND),
    "degrees": lambda t: tt.degrees(t, column="owner", public="groups", epsilon=1),
    "graph": lambda t: tt.degrees(t, edges=["household", "owner"], public="nodes", epsilon=1),
}


# What is counted on the executors and estimated here: tables by attributes and of people, whole
# groups, and classes.
COUNTIES = range(60)
TOTALS = pa.table(
    {
        "state": [f"s{c // 10}" for c in COUNTIES],
        "county": [f"c{c:02d}" for c in COUNTIES],
        "groups": [200] * 60,
    }
)
TENURE: dict[str, Any] = {"by": {"tenure": ["owned", "rented"]}}
COUNTED_HERE: dict[str, dict[str, Any]] = {
    "attributes": {**TENURE, "public": "cells", "people": ["sex=f,m"], "people_by": ["tenure"]},
    "whole groups": {
        **TENURE,
        "public": "regions",
        "unit": "group",
        "people": ["sex=f,m"],
        "contributions": 9,
    },
    "classes": {"classes": ["1", "2", "3-9", "10+"]},
    "totals": {"group_totals": TOTALS, "public": None},
}


def digests(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


def executors() -> list[int]:
    """Process ids of the executors that this process has started, by way of its JVM."""
    parents, commands = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                )
                commands[int(entry.name)] = (entry / "cmdline").read_bytes()
            except (OSError, IndexError):
                continue

    def is_ours(pid: int) -> bool:
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    return [
        pid
        for pid, command in commands.items()
        if b"CoarseGrainedExecutorBackend" in command and is_ours(pid)
    ]


def kill_one_in_mid_run(context: Any, killed: list[int]) -> None:
    tracker = context.statusTracker()
    while not any(
        (facts := tracker.getStageInfo(stage)) and facts.numActiveTasks
        for stage in tracker.getActiveStageIds()
    ):
        time.sleep(0.02)
    pid = executors()[0]
    os.kill(pid, signal.SIGKILL)
    killed.append(pid)


def watch_what_reaches_the_driver(frame: Any, n_rows: list[int]) -> list[list[str]]:
    """Columns of every table that is collected, fetched or turned into something local, and the
    rows of Arrow tables.
    """
    seen: list[list[str]] = []
    for name in (
        "collect",
        "toArrow",
        "toPandas",
        "toLocalIterator",
        "take",
        "head",
        "first",
        "tail",
        "show",
    ):
        original = getattr(type(frame), name)

        def watched(self: Any, *arguments: Any, original: Any = original, **options: Any) -> Any:
            seen.append(list(self.columns))
            found = original(self, *arguments, **options)
            n_rows.append(len(found) if isinstance(found, pa.Table) else 0)
            return found

        setattr(type(frame), name, watched)
    return seen


class FailsTwice:
    """Pickles as what raises an error in the first two attempts of a task, and as a job in the
    third.
    """

    def __init__(self, job: Any) -> None:
        self.job = pickle.dumps(job)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        lost = "(_ for _ in ()).throw(OSError('lost'))"
        early = "__import__('pyspark').TaskContext.get().attemptNumber() < 2"
        return eval, (f"{lost} if {early} else __import__('pickle').loads({self.job!r})",)


@contextmanager
def tasks_failing_twice() -> Iterator[None]:
    running.pickle = SimpleNamespace(dumps=lambda job: pickle.dumps(FailsTwice(job)))  # type: ignore[assignment]
    try:
        yield
    finally:
        running.pickle = pickle


def n_cached(context: Any) -> int:
    """Tables that the executors keep."""
    return int(context._jsc.getPersistentRDDs().size())


def always_the_same_key(cls: type[KeyStream], journal: Journal | None = None) -> KeyStream:
    return cls(bytearray(range(32)), secure=True, journal=journal)


def main(folder: Path) -> dict[str, Any]:
    KeyStream.from_system = classmethod(always_the_same_key)  # type: ignore[method-assign, assignment]
    pq.write_table(people(), folder / "people.parquet")
    here = tt.read(str(folder / "people.parquet"), **READING)
    options = {
        "adaptive": {},
        "matching": {"view": ["sizes", "cumulative", "hybrid"]},
        "bottom-up": {"mechanism": "bottom-up"},
    }
    for name, how in options.items():
        tt.release(here, **HOW, **how).save(folder / f"{name} local")
    tt.release(
        tt.read(str(folder / "people.parquet"), **BOUNDED), **HOW, mechanism="matching"
    ).save(folder / "unit local")
    tt.release(tt.read(str(folder / "people.parquet"), **PRIVATE), **HOW).save(
        folder / "private local"
    )
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.speculation": "true",
    }
    session = spark_session(MASTER, settings)
    context = session.sparkContext
    context.setLogLevel("OFF")
    table = session.read.parquet(str(folder / "people.parquet"))
    n_rows: list[int] = []
    seen = watch_what_reaches_the_driver(table, n_rows)
    there = tt.read(table, **READING)
    cached = {"read": n_cached(context)}
    for name, how in options.items():
        tt.release(there, **HOW, **how).save(folder / f"{name} spark")
    with_code, running.MOST_BYTES_WITH_CODE = (
        running.MOST_BYTES_WITH_CODE,
        0,
    )  # as if pieces had much to be told
    tt.release(tt.read(table, **BOUNDED), **HOW, mechanism="matching").save(folder / "unit spark")
    running.MOST_BYTES_WITH_CODE = with_code
    n_seen = len(seen)
    tt.release(tt.read(table, **PRIVATE), **HOW).save(folder / "private spark")
    collected_privately = seen[n_seen:]
    cached["released"] = n_cached(context)
    refused_reading = {
        **READING,
        "group": "state",
        "levels": ["county", "household"],
    }  # a group in many regions
    for name, refused in (
        (
            "refused release",
            lambda: tt.release(
                tt.read(table, **READING), epsilon=1, mechanism="tree-dp", max_size=5
            ),
        ),
        ("refused table", lambda: tt.read(table, **refused_reading)),
    ):
        try:
            refused()
        except tt.errors.TallytreeError:
            cached[name] = n_cached(context)

    ledger = str(folder / "ledger.db")
    create_account(ledger, "people", Budget("pure", Fraction(1)))
    killed: list[int] = []

    def killing(step_of_kill: str) -> Callable[[int, int, str], None]:
        def progress(done: int, total: int, step: str) -> None:
            if step.startswith(step_of_kill):
                threading.Thread(
                    target=kill_one_in_mid_run, args=(context, killed), daemon=True
                ).start()

        return progress

    n_executors = len(executors())
    paid = {"ledger": ledger, "dataset": "people", "progress": killing("releasing")}
    after_kill = {
        "matching": tt.release(there, **HOW, **options["matching"], **paid),
        "adaptive": tt.release(there, **HOW, progress=killing("measuring county")),
    }
    with tasks_failing_twice():
        after_failures = tt.release(there, **HOW)
    # Part files that executors write, once undisturbed, once with an executor killed, once with
    # tasks that fail.
    there.release_to(folder / "parts", **HOW)
    there.release_to(folder / "parts after a kill", **HOW, progress=killing("measuring county"))
    with tasks_failing_twice():
        there.release_to(folder / "parts after failures", **HOW)
    collected = list(seen)
    for name, reading in COUNTED_HERE.items():
        for engine, source in (("local", str(folder / "people.parquet")), ("spark", table)):
            tt.release(tt.read(source, **READING | reading), **HOW).save(
                folder / f"{name} {engine}"
            )
    facts = {
        "executors": n_executors,
        "killed": len(killed),
        "same after a kill": {
            name: made.table().equals(tt.load(folder / f"{name} local").table())
            for name, made in after_kill.items()
        },
        "same after failures": after_failures.table().equals(
            tt.load(folder / "adaptive local").table()
        ),
        "parts": [
            digests(folder / f"parts{when}") for when in ("", " after a kill", " after failures")
        ],
        "parts equal local": tt.load(folder / "parts")
        .table()
        .equals(tt.load(folder / "adaptive local").table()),
        "parts verify": bool(tt.verify(folder / "parts")),
        "collected privately": collected_privately,
        "ledger": [[entry.kind, str(entry.amount)] for entry in read_history(ledger, "people")],
        "digests": {
            name: [digests(folder / f"{name} {engine}") for engine in ("local", "spark")]
            for name in (*options, "unit", "private", *COUNTED_HERE)
        },
        "cached": cached,
        "repr": repr(there),
        "collected": collected,
    }
    counting.all_different = lambda values: False  # type: ignore[assignment]
    by_labels = tt.read(table, **READING)
    by_labels.forget()
    facts["same by labels"] = by_labels.n_groups.tolist() == there.n_groups.tolist()
    facts["kinds"], facts["fetched"] = {}, {}
    for name, make in KINDS.items():
        n_rows.clear()
        spark, local = make(table), make(pq.read_table(folder / "people.parquet"))
        facts["kinds"][name], facts["fetched"][name] = (
            spark.table().equals(local.table()),
            max(n_rows),
        )
    session.stop()
    return facts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))

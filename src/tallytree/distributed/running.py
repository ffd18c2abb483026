"""Running tasks on executors: on rows that they hold, or on what is public; and whether they share a folder with the driver."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from tallytree.distributed.pieces import Arrays, unpack
from tallytree.distributed.session import PACKAGE_PARENT, cached


def run_on_rows(rows: Any, public: list[bytes], job: object, task: str) -> list[Arrays]:
    """Run a task of :mod:`tallytree.distributed.tasks` on every piece, where its rows are; results in order of the pieces.

    The job travels with the code of the task, in the memory of driver and executors; the public side of a piece as a row.
    """
    import_from, pickled_job = PACKAGE_PARENT, pickle.dumps(job)

    def work(confidential: pa.Table, described: pa.Table) -> pa.Table:
        # Pickled by value, the job as bytes: a worker without the package installed finds it where the driver did.
        import pickle
        import sys

        if import_from not in sys.path:
            sys.path.append(import_from)
        from tallytree.distributed import tasks

        columns = [confidential[name].to_numpy().astype("int64") for name in ("region", "size", "n")]
        made = getattr(tasks, task)(pickle.loads(pickled_job), columns, described["public"][0].as_py())
        return pa.table({"piece": described["piece"], "made": pa.array([made], pa.binary())})

    table = pa.table({"piece": pa.array(range(len(public)), pa.int64()), "public": pa.array(public, pa.binary())})
    described = rows.sparkSession.createDataFrame(table).groupBy("piece")
    with cached(rows.groupBy("piece").cogroup(described).applyInArrow(work, "piece long, made binary")) as made:
        made.count()  # all pieces side by side, before they are fetched one after the other
        found = {row["piece"]: bytes(row["made"]) for row in made.toLocalIterator()}
    return [unpack(found[piece]) for piece in range(len(public))]


@contextmanager
def run_alone(session: Any, public: Sequence[bytes], job: object, task: str) -> Iterator[Iterator[Arrays]]:
    """Run a task of :mod:`tallytree.distributed.leaf_tasks` on the public side of every piece, each in a task of its own.

    Inside the block results are fetched one after the other, in the order of the pieces.
    """
    import_from, pickled_job = PACKAGE_PARENT, pickle.dumps(job)

    def work(described: bytes) -> bytes:
        import pickle
        import sys

        if import_from not in sys.path:
            sys.path.append(import_from)
        from tallytree.distributed import leaf_tasks

        made: bytes = getattr(leaf_tasks, task)(pickle.loads(pickled_job), described)
        return made

    with cached(session.sparkContext.parallelize(public, len(public)).map(work)) as made:
        made.count()
        yield (unpack(found) for found in made.toLocalIterator())


def share_folder(frame: Any, folder: Path) -> bool:
    """Whether executors read in a folder what the driver writes there, and the other way round."""
    context, place = frame.sparkSession.sparkContext, str(folder)
    asked = uuid4().hex
    (folder / asked).touch()

    def answer(number: int) -> bool:
        from pathlib import Path

        try:
            (Path(place) / f"{asked}-{number}").touch()
        except OSError:
            return False
        return (Path(place) / asked).exists()

    n_tasks = context.defaultParallelism
    answers = context.parallelize(range(n_tasks), n_tasks).map(answer).collect()
    written = [folder / f"{asked}-{number}" for number in range(n_tasks)]
    shared = all(answers) and all(file.exists() for file in written)
    for file in (folder / asked, *written):
        file.unlink(missing_ok=True)
    return shared

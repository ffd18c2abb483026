"""Running tasks on executors: on rows that they hold, or on what is public; and whether they share
a folder with the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

from tallytree.spark.pieces import Arrays, unpack
from tallytree.spark.session import PACKAGE_PARENT, cached

# Of the public side of all pieces; every worker loads what travels with code.
MOST_BYTES_WITH_CODE = 1 << 23


def run_on_rows(
    rows: Any, public: Sequence[bytes], job: object, task: str, *, one_by_one: bool = False
) -> list[Arrays]:
    """Run a task of :mod:`tallytree.spark.tasks` on every piece, where its rows are; results in
    order of the pieces.

    The job travels with the code of the task, in the memory of driver and executors, and so does
    the public side of the pieces where it is small; else each piece gets its own as a row. Results
    that are large together are fetched one by one: that takes a job of Spark for each, and less
    memory of its driver.
    """
    import_from, pickled_job = PACKAGE_PARENT, pickle.dumps(job)

    def work(piece: int, confidential: pa.Table, described: bytes) -> pa.Table:
        # Pickled by value, the job as bytes: a worker without the package installed finds it where
        # the driver did.
        import pickle
        import sys

        if import_from not in sys.path:
            sys.path.append(import_from)
        from tallytree.spark import tasks

        columns = [
            confidential[name].to_numpy().astype("int64") for name in ("region", "size", "n")
        ]
        there = columns[0] >= 0
        made = getattr(tasks, task)(
            pickle.loads(pickled_job), [column[there] for column in columns], described
        )
        return pa.table({"piece": [piece], "made": pa.array([made], pa.binary())})

    made = _on_every_piece(rows, public, work)
    with _fetched(made, one_by_one=one_by_one) as fetched:
        found = {row["piece"]: unpack(bytes(row["made"])) for row in fetched}
    return [found[piece] for piece in range(len(public))]


def _on_every_piece(
    rows: Any, public: Sequence[bytes], work: Callable[[int, pa.Table, bytes], pa.Table]
) -> Any:
    """The table that some work makes of the rows and the public side of every piece, those without
    rows included.
    """
    made = "piece long, made binary"
    if sum(map(len, public)) > MOST_BYTES_WITH_CODE:
        table = pa.table(
            {
                "piece": pa.array(range(len(public)), pa.int64()),
                "public": pa.array(public, pa.binary()),
            }
        )
        described = rows.sparkSession.createDataFrame(table).groupBy("piece")

        def with_row(own: pa.Table, told: pa.Table) -> pa.Table:
            return work(told["piece"][0].as_py(), own, told["public"][0].as_py())

        return rows.groupBy("piece").cogroup(described).applyInArrow(with_row, made)

    def with_code(own: pa.Table) -> pa.Table:
        piece = own["piece"][0].as_py()
        return work(piece, own, public[piece])

    no_region = rows.sparkSession.range(len(public)).selectExpr(
        "id as piece", "-1L as region", "0L as size", "0L as n"
    )
    return rows.unionByName(no_region).groupBy("piece").applyInArrow(with_code, made)


@contextmanager
def _fetched(made: Any, *, one_by_one: bool) -> Iterator[Iterable[Any]]:
    """The rows of a table or the values of an RDD, in order, all at once or partition by partition."""
    if not one_by_one:
        yield made.collect()
        return
    with cached(made):
        made.count()  # all pieces side by side, before they are fetched one after the other
        yield made.toLocalIterator()


@contextmanager
def run_alone(
    session: Any, public: Sequence[bytes], job: object, task: str, *, one_by_one: bool = False
) -> Iterator[Iterator[Arrays]]:
    """Run a task of :mod:`tallytree.spark.leaf_tasks` on the public side of every piece, each in a
    task of its own.

    Inside the block there are the results, in the order of the pieces; fetched one by one where
    they are large together.
    """
    import_from, pickled_job = PACKAGE_PARENT, pickle.dumps(job)

    def work(described: bytes) -> bytes:
        import pickle
        import sys

        if import_from not in sys.path:
            sys.path.append(import_from)
        from tallytree.spark import leaf_tasks

        made: bytes = getattr(leaf_tasks, task)(pickle.loads(pickled_job), described)
        return made

    made = session.sparkContext.parallelize(public, len(public)).map(work)
    with _fetched(made, one_by_one=one_by_one) as fetched:
        yield map(unpack, fetched)


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

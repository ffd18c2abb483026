"""Bins of values found on the executors of a Spark cluster, so that no more numbers leave it than
there are bins.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tallytree.ingest.engine import guarded
from tallytree.model.arrays import FloatArray
from tallytree.model.limits import MOST_ENTITIES

PLACED = "place long, outside boolean, n long, problem long"


def counted_between(engine: Any, rows: Any, edges: FloatArray, source: str) -> pa.Table:
    """How many entities lie between edges: rows (``place``, ``outside``, ``n``, ``problem``), at
    most two per bin.

    ``rows`` is a query of Spark with the numbers ``x``, how many entities each stands for, ``n``,
    and its ``problem``.
    """

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Pickled by value: a worker needs NumPy and Arrow, not this package.
        import numpy as np

        for batch in batches:
            table = pa.table(batch)
            number = table["x"].cast(pa.float64(), safe=False).to_numpy()  # null becomes NaN
            missing = np.isnan(number)
            found = np.clip(np.searchsorted(edges, number, side="right") - 1, 0, len(edges) - 2)
            outside = ~missing & ((number < edges[0]) | (number > edges[-1]))
            columns = [np.where(missing, -1, found).astype(np.int64), outside]
            yield from pa.table(
                [
                    *map(pa.array, columns),
                    table["n"].cast(pa.int64()),
                    table["problem"].cast(pa.int64()),
                ],
                names=["place", "outside", "n", "problem"],
            ).to_batches()

    return guarded(lambda: _summed(_frame(engine, rows).mapInArrow(place, PLACED)), source)


def counted_by_name(engine: Any, rows: Any, categories: list[str], source: str) -> pa.Table:
    """The same for texts ``x`` that are one of the categories each: place -1 for missing ones, -2
    for others.
    """

    def place(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import numpy as np
        import pyarrow.compute as pc

        for batch in batches:
            table = pa.table(batch)
            text = table["x"].cast(pa.string())
            found = pc.fill_null(pc.index_in(text, value_set=pa.array(categories)), -2).to_numpy()
            missing = text.is_null().to_numpy()
            columns = [
                np.where(missing, -1, found).astype(np.int64),
                np.zeros(len(table), dtype=bool),
            ]
            yield from pa.table(
                [
                    *map(pa.array, columns),
                    table["n"].cast(pa.int64()),
                    table["problem"].cast(pa.int64()),
                ],
                names=["place", "outside", "n", "problem"],
            ).to_batches()

    return guarded(lambda: _summed(_frame(engine, rows).mapInArrow(place, PLACED)), source)


def use_this_python(session: Any) -> None:
    """Let the workers run the interpreter of the driver, unless the user names another one.

    Spark takes ``python3`` from the path otherwise, which in a virtual environment is the wrong
    one.
    """
    context = session.sparkContext
    named = os.environ.get("PYSPARK_PYTHON") or context.getConf().get("spark.pyspark.python", None)
    if named is None:
        context.pythonExec = sys.executable


def _frame(engine: Any, rows: Any) -> Any:
    use_this_python(engine._session)
    return engine._session.sql(engine.compile(rows))


def _summed(placed: Any) -> pa.Table:
    """Entities per place; sums saturate, as everywhere, so that none fails because of what it adds
    up.
    """
    from pyspark.sql import functions as f

    together = f.least(
        f.sum(f.col("n").cast("decimal(38,0)")), f.lit(MOST_ENTITIES).cast("decimal(38,0)")
    ).cast("long")
    problem = f.min("problem").alias("problem")
    return placed.groupBy("place", "outside").agg(together.alias("n"), problem).toArrow()

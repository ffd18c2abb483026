"""Reading Spark tables: rows are counted on the executors, and the counts stay there."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.distributed.counts import SparkCounts
from tallytree.distributed.pieces import choose_cut, cut_bounds
from tallytree.distributed.session import spark_session, use_this_python
from tallytree.errors import InputError, RequestError
from tallytree.ingest.read import read as read_here
from tallytree.ingest.shapes import RowShape
from tallytree.model.hierarchy import Hierarchy

CSV = (".csv", ".tsv", ".txt", ".csv.gz")


@wraps(read_here)
def read(source: Any, **options: Any) -> Any:
    """As :func:`tallytree.ingest.read.read`; a Spark table is counted on the executors, and its counts stay there."""
    return read_here(source, counter=_count_on_spark if is_spark(source) else None, **options)


def is_spark(source: Any) -> bool:
    """Whether a source is a Spark table."""
    return type(source).__module__.split(".")[0] == "pyspark" and type(source).__name__ == "DataFrame"


def read_with_spark(source: str, *, master: str | None = None, **options: Any) -> SparkCounts:
    """Read Parquet or CSV files with Spark, on a master such as ``spark://host:7077`` or ``local[4]``."""
    session = spark_session(master)
    opened = {
        name: _open(session, str(where))
        for name, where in (("source", source), *options.items())
        if name in FILES and where
    }
    return read(opened.pop("source"), **{**options, **opened})


FILES = ("source", "groups")


def _open(session: Any, path: str) -> Any:
    if "://" not in path:
        if "*" not in path and not Path(path).exists():
            raise InputError(f"There is no file {path}; check the path or the pattern.")
        path = str(Path(path).absolute())  # the folder that Spark was started in may be another one
    if path.lower().endswith(CSV):
        separator = "\t" if path.lower().endswith(".tsv") else ","
        return session.read.csv(path, header=True, inferSchema=False, sep=separator, escape='"')
    return session.read.parquet(path)


def _count_on_spark(
    inputs: Any, shape: RowShape, *, root: str, groups_private: bool, entity: str | None
) -> SparkCounts:
    from tallytree.ingest.counting import description, find_regions, open_inputs, refuse_problem
    from tallytree.ingest.engine import guarded, open_session
    from tallytree.ingest.group_sizes import counts_of

    if shape.whole_groups:
        raise RequestError("The Spark engine protects entities; read the table without Spark for unit='group'.")
    if groups_private:
        raise RequestError(
            "The Spark engine takes public numbers of groups; leave out groups_private, or read the table without Spark."
        )
    session = inputs.source.sparkSession
    use_this_python(session)
    with open_session() as own:
        opened, rows = open_inputs(own, inputs, shape, groups_private=False)
        rows, regions = find_regions(own, rows, opened, shape, root)
        query = own.engine_of(rows.table).compile(counts_of(rows))
        counted = session.sql(query).persist()
        worst = guarded(lambda: counted.agg({"problem": "min"}).toArrow(), opened.source.name)
        refuse_problem(worst[0][0].as_py(), opened, shape)
    parallelism = session.sparkContext.defaultParallelism
    hierarchy = regions.hierarchy
    cut = choose_cut(hierarchy, parallelism)
    bounds = cut_bounds(hierarchy, cut, parallelism)
    frame = _in_pieces(counted, _places(regions.leaf_of_key, hierarchy, cut, bounds)).persist()
    n_groups = _groups_per_leaf(frame, hierarchy.n_leaves)
    counted.unpersist()
    return SparkCounts(
        frame=frame,
        hierarchy=hierarchy,
        n_groups=n_groups,
        cut=cut,
        bounds=bounds,
        remarks=regions.remarks,
        **description(opened, shape, groups_private=groups_private, entity=entity),
    )


def _places(leaf_of_key: pa.Table, hierarchy: Hierarchy, cut: int, bounds: Any) -> pa.Table:
    """The public table of leaves: key, number, region at the cut, piece."""
    leaf = leaf_of_key["leaf"].to_numpy()
    top = np.searchsorted(hierarchy.leaf_ends[hierarchy.level_slice(cut)], leaf, side="right")
    piece = np.searchsorted(bounds, top, side="right") - 1
    return leaf_of_key.append_column("top", pa.array(top)).append_column("piece", pa.array(piece))


def _in_pieces(counted: Any, places: pa.Table) -> Any:
    """Counts with the number, region at the cut and piece of their leaf instead of its labels."""
    keys = [name for name in places.column_names if name not in ("leaf", "top", "piece")]
    if keys:
        counted = counted.join(counted.sparkSession.createDataFrame(places), keys)
    else:
        counted = counted.selectExpr("*", "0L as leaf", "0L as top", "0L as piece")
    return counted.selectExpr("piece", "top", "leaf", "cast(size as long) as size", "cast(n as long) as n")


def _groups_per_leaf(frame: Any, n_leaves: int) -> Any:
    """Public: number of groups of every leaf."""
    found = frame.groupBy("leaf").sum("n").toArrow()
    n_groups = np.zeros(n_leaves, dtype=np.int64)
    n_groups[found["leaf"].to_numpy()] = found["sum(n)"].to_numpy()
    return n_groups

"""Reading Spark tables: rows are counted on the executors, and counts by size stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, overload

import numpy as np
import pyarrow as pa

from tallytree.errors import InputError
from tallytree.ingest.read import checked_shape, declared_by, inputs_of
from tallytree.ingest.read import read as read_here
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.limits import refuse_many_groups
from tallytree.options.reading import ReadOptions
from tallytree.options.spelled import spelled
from tallytree.spark.counts import SparkCounts
from tallytree.spark.pieces import choose_cut, cut_bounds, last_leaves
from tallytree.spark.session import cached, spark_session
from tallytree.storage.memory import give_back

if TYPE_CHECKING:
    from tallytree.ingest.counting import Opened
    from tallytree.ingest.engine import Session
    from tallytree.ingest.group_sizes import Rows
    from tallytree.ingest.regions import Regions
    from tallytree.ingest.shapes import RowShape

Keywords = ParamSpec("Keywords")

# More are sorted by all executors, which takes a look at them more, and come in partitions that
# Spark's driver has room for.
MOST_LEAVES_TO_SORT_IN_ONE_TASK = 1 << 20
CSV = (".csv", ".tsv", ".txt", ".csv.gz")


class SparkTable(Protocol):
    """What tells a Spark table from others to a type checker."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802, D102


class Reading(Protocol[Keywords]):
    """How :func:`tallytree.read` may be called: options as one object or as keywords; Spark may
    keep its counts.
    """

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, source: SparkTable, options: ReadOptions, /
    ) -> ConfidentialCounts | SparkCounts: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, source: SparkTable, /, *none: Keywords.args, **keywords: Keywords.kwargs
    ) -> ConfidentialCounts | SparkCounts: ...
    @overload
    def __call__(self, source: object, options: ReadOptions, /) -> ConfidentialCounts: ...
    @overload
    def __call__(
        self, source: object, /, *none: Keywords.args, **keywords: Keywords.kwargs
    ) -> ConfidentialCounts: ...


def _typed(keywords: Callable[Keywords, ReadOptions]) -> Callable[[Any], Reading[Keywords]]:
    return lambda function: function


@_typed(ReadOptions)
@spelled(ReadOptions)
def read(source: Any, options: ReadOptions) -> ConfidentialCounts | SparkCounts:
    """As :func:`tallytree.ingest.read.read`; a Spark table is counted on the executors, where most
    counts stay.
    """
    return (
        _count_on_spark(source, options)
        if is_spark(source) and _stay_there(options)
        else read_here(source, options)
    )


read.__doc__ = read_here.__doc__


def _stay_there(options: ReadOptions) -> bool:
    """Whether exact counts stay on the executors.

    What is estimated on one machine comes here once it is counted: tables by attributes and of
    people, which tell about one another, whole groups, and sizes in classes.
    """
    shape = checked_shape(options)
    others = (options.sizes, options.classes, options.group_totals)
    return not (
        shape.by or shape.people or shape.whole_groups or any(other is not None for other in others)
    )


def is_spark(source: Any) -> bool:
    """Whether a source is a Spark table."""
    return (
        type(source).__module__.split(".")[0] == "pyspark" and type(source).__name__ == "DataFrame"
    )


def read_with_spark(
    source: str, options: ReadOptions, *, master: str | None = None
) -> ConfidentialCounts | SparkCounts:
    """Read Parquet or CSV files with Spark, on a master such as ``spark://host:7077`` or
    ``local[4]``.
    """
    session = spark_session(master)
    opened = {"source": open_with_spark(source, options.encoding, master=master)}
    if options.groups is not None:
        opened["groups"] = _open(session, str(options.groups))
    return read(opened.pop("source"), replace(options, encoding=None, **opened))


def open_with_spark(path: str, encoding: str | None = None, *, master: str | None = None) -> Any:
    """Parquet or CSV files as a Spark table."""
    return _open(spark_session(master), path, encoding)


def _open(session: Any, path: str, encoding: str | None = None) -> Any:
    if "://" not in path:
        if "*" not in path and not Path(path).exists():
            raise InputError(f"There is no file {path}; check the path or the pattern.")
        path = str(Path(path).absolute())  # the folder that Spark was started in may be another one
    if path.lower().endswith(CSV):
        separator = "\t" if path.lower().endswith(".tsv") else ","
        return session.read.csv(
            path, header=True, inferSchema=False, sep=separator, escape='"', encoding=encoding
        )
    return session.read.parquet(path)


def _count_on_spark(source: Any, options: ReadOptions) -> SparkCounts:
    from tallytree.ingest.counting import open_inputs, public_facts, refuse_problem
    from tallytree.ingest.engine import guarded, open_session
    from tallytree.ingest.group_sizes import counts_of
    from tallytree.ingest.on_executors import use_this_python

    shape = checked_shape(options)
    public = declared_by(options)
    inputs = inputs_of(source, options)
    session = source.sparkSession
    use_this_python(session)
    with open_session() as own:
        opened, rows = open_inputs(own, inputs, shape, groups_private=not public.groups_public)
        rows, regions = _find_regions(own, rows, opened, shape, options.root)
        query = own.engine_of(rows.table).compile(counts_of(rows))
        with cached(session.sql(query)) as counted:
            worst = guarded(
                lambda: counted.selectExpr("min(problem)", "sum(n)").toArrow(), opened.source.name
            )
            refuse_problem(worst[0][0].as_py(), opened, shape)
            refuse_many_groups(worst[1][0].as_py() or 0)
            parallelism = session.sparkContext.defaultParallelism
            hierarchy = regions.hierarchy
            cut = choose_cut(hierarchy, parallelism)
            bounds = cut_bounds(hierarchy, cut, parallelism)
            frame = _in_pieces(
                counted, _places(regions.leaf_of_key, hierarchy, cut, bounds)
            ).persist()
            try:
                if public.groups_public:
                    n_groups = _groups_per_leaf(frame, hierarchy.n_leaves)
                else:  # confidential numbers of groups stay there too; the release pays for noisy ones
                    n_groups = np.zeros(0, dtype=np.int64)
                    frame.count()  # made while what it is made from is still there
            except BaseException:
                frame.unpersist()
                raise
    give_back()
    return SparkCounts(
        frame=frame,
        public=public_facts(regions, opened, shape, public=public, entity=options.entity),
        n_groups=n_groups,
        cut=cut,
        bounds=bounds,
        remarks=regions.remarks,
    )


def _find_regions(
    own: Session, rows: Rows, opened: Opened, shape: RowShape, root: str
) -> tuple[Rows, Regions]:
    """As ``find_regions``; where rows name the regions, names of leaves are streamed, and lie on
    disk.
    """
    from tallytree.ingest.counting import find_regions
    from tallytree.ingest.engine import guarded
    from tallytree.ingest.group_sizes import leaves_of, with_keys
    from tallytree.spark.names import regions_from_stream

    engine = own.engine_of(rows.table)
    if shape.levels and opened.hierarchy is None and engine.name == "pyspark":
        leaves = engine._session.sql(engine.compile(leaves_of(rows, "spark hash")))
        found = guarded(
            lambda: regions_from_stream(_in_order(leaves, len(shape.levels)), shape.levels, root),
            opened.regions_name,
        )
        if found is not None:
            return with_keys(rows, "spark hash"), found
    return find_regions(own, rows, opened, shape, root)  # tells what is wrong, or finds other keys


def _in_order(leaves: Any, n_labels: int) -> Iterator[pa.Table]:
    """Leaves in the order of their labels, sorted by Spark, some at a time."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as stream:
                stream.write_batch(batch)
            yield pa.record_batch(
                [pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["leaves"]
            )

    texts = [f"t{level}" for level in range(n_labels)]
    with cached(leaves.selectExpr("*", f"xxhash64({texts[-1]}) as own")) as found:
        few = found.count() <= MOST_LEAVES_TO_SORT_IN_ONE_TASK
        in_order = found.coalesce(1).sortWithinPartitions(*texts) if few else found.orderBy(*texts)
        for row in in_order.mapInArrow(pack, "leaves binary").toLocalIterator():
            with pa.ipc.open_stream(row["leaves"]) as stream:
                yield stream.read_all()


def _places(leaf_of_key: pa.Table, hierarchy: Hierarchy, cut: int, bounds: Any) -> pa.Table:
    """The public table of leaves: key, number, region at the cut, piece."""
    leaf = leaf_of_key["leaf"].to_numpy()
    top = np.searchsorted(last_leaves(hierarchy, cut), leaf, side="right").astype(np.int32)
    piece = (np.searchsorted(bounds, top, side="right") - 1).astype(np.int32)
    return leaf_of_key.append_column("top", pa.array(top)).append_column("piece", pa.array(piece))


def _in_pieces(counted: Any, places: pa.Table) -> Any:
    """Counts with the number, region at the cut and piece of their leaf instead of its labels."""
    keys = [name for name in places.column_names if name not in ("leaf", "top", "piece")]
    if keys:
        counted = counted.join(counted.sparkSession.createDataFrame(places), keys)
    else:
        counted = counted.selectExpr("*", "0L as leaf", "0L as top", "0L as piece")
    return counted.selectExpr(
        *(f"cast({name} as long) as {name}" for name in ("piece", "top", "leaf", "size", "n"))
    )


def _groups_per_leaf(frame: Any, n_leaves: int) -> Any:
    """Public: number of groups of every leaf."""
    found = frame.groupBy("leaf").sum("n").toArrow()
    n_groups = np.zeros(n_leaves, dtype=np.int64)
    n_groups[found["leaf"].to_numpy()] = found["sum(n)"].to_numpy()
    return n_groups

"""The engine that aggregates: a private DuckDB, or the engine that an Ibis table already lives in."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import duckdb
import ibis
import pyarrow as pa
from ibis.expr import operations as ops

from tallytree.errors import InputError, TallytreeError

T = TypeVar("T")

# DuckDB narrows whole numbers before it groups by them, and then no longer sees that a file is in
# their order: 318 million sorted rows take half as long again and 7 GB more. On shuffled or small
# files it makes no difference.
SLOW_HERE = "compressed_materialization"
# What a database says of a statement that would write: databases are read in transactions that only
# read.
WRITES = "ReadOnlySqlTransaction"
ROWS_AT_ONCE = 1_000_000


class Session:
    """A DuckDB of our own for files and tables in memory. Made by :func:`open_session`, gone when
    its block ends.
    """

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._n_names = 0
        self._engines: list[Any] = []
        self._watched: list[tuple[str, Callable[[], Any], Any]] = []

    def new_name(self) -> str:
        """A name that no table of the session has yet."""
        self._n_names += 1
        return f"tallytree_{self._n_names}"

    def adopt(self, engine: Any) -> Any:
        """An engine that was connected to for this session, and is disconnected from with it."""
        self._engines.append(engine)
        return engine

    def disconnect(self) -> None:
        """Leave every engine."""
        for engine in (*self._engines, self.connection):
            engine.disconnect()

    def watch(self, source: str, state: Callable[[], Any]) -> None:
        """Have :meth:`refuse_changed` compare what tells one state of an input from another."""
        self._watched.append((source, state, guarded(state, source)))

    def refuse_changed(self) -> None:
        """Refuse what was counted from an input that changed meanwhile: several queries make one
        release, and those before and after a change have seen different data.
        """
        for source, state, before in self._watched:
            if guarded(state, source) != before:
                raise InputError(
                    f"{source} changed while it was read, so counts of it may be of two states; "
                    "run the same again once it stays as it is."
                )

    def look_for_nan(self) -> None:
        """Find NaN wherever there is one, at the price of some speed.

        The statistics of Parquet files leave NaN out; DuckDB would conclude that there is none and
        drop our checks.
        """
        self.connection.con.execute(
            f"SET disabled_optimizers = '{SLOW_HERE},statistics_propagation'"
        )

    def register(self, arrow: Any) -> Any:
        """An Ibis table over an Arrow table or dataset, which is scanned where it lies."""
        if isinstance(arrow, pa.Table):
            arrow = _without_untyped_columns(arrow)
        name = self.new_name()
        self.connection.con.register(name, arrow)
        return self.connection.table(name)

    def load(self, batches: pa.RecordBatchReader) -> Any:
        """An Ibis table over a copy of a stream, which could be read only once. DuckDB compresses
        it, and spills it into its own encrypted files when it does not fit in memory.
        """
        stream, name = self.new_name(), self.new_name()
        self.connection.con.register(stream, batches)
        self.connection.con.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {stream}")
        self.connection.con.unregister(stream)
        return self.connection.table(name)

    def engine_of(self, table: Any) -> Any:
        """The Ibis connection that holds a table; our own one for tables in memory."""
        stored = table.op().find((ops.DatabaseTable, ops.SQLQueryResult))
        return table.get_backend() if stored else self.connection

    def fetch(self, table: Any, source: str) -> pa.Table:
        """Run a query where its tables are, and bring back the rows it returns."""
        return guarded(lambda: _whole(self.engine_of(table), table), source)

    def bring(self, table: Any, source: str) -> Any:
        """The same rows as a table of our own DuckDB, streamed from another engine if need be."""
        engine = self.engine_of(table)
        if engine is self.connection:
            return table
        return guarded(lambda: self.load(_stream(engine, table)), source)


def _without_untyped_columns(table: pa.Table) -> pa.Table:
    """Columns without any value have no type in Arrow; as text they can be named in queries."""
    typed = [
        pa.field(one.name, pa.string()) if pa.types.is_null(one.type) else one
        for one in table.schema
    ]
    return table.cast(pa.schema(typed))


def _whole(engine: Any, table: Any) -> pa.Table:
    if engine.name == "pyspark":
        # Ibis would take the way through pandas.
        return engine._session.sql(engine.compile(table)).toArrow()
    if engine.name == "duckdb" and not table.op().find(ops.InMemoryTable):
        # Ibis would do the same and load pandas, which it does not use for it. DuckDB widens sums,
        # so types are restored.
        found = engine.con.sql(engine.compile(table)).to_arrow_table()
        return found.cast(table.schema().to_pyarrow())
    return engine.to_pyarrow(table)


def _stream(engine: Any, table: Any) -> pa.RecordBatchReader:
    if engine.name == "pyspark" or table.op().find(ops.InMemoryTable):
        return _whole(engine, table).to_reader()
    if engine.name == "postgres":
        schema = table.schema()
        struct = schema.as_struct().to_pyarrow()
        batches = _postgres_batches(engine, engine.compile(table), struct)
        return pa.RecordBatchReader.from_batches(schema.to_pyarrow(), batches)
    if engine.name != "duckdb":
        return engine.to_pyarrow_batches(table)
    # Ibis 12 streams from DuckDB by a method that DuckDB 2 no longer has. DuckDB widens sums, so
    # the types are restored.
    stream = pa.RecordBatchReader.from_stream(engine.con.sql(engine.compile(table)))
    return stream.cast(table.schema().to_pyarrow())


def _postgres_batches(engine: Any, query: str, struct: Any) -> Iterator[pa.RecordBatch]:
    """Rows by a cursor of the server, within the transaction that reads.

    Ibis 12 puts a transaction of its own around them; where a query fails, that leaves the cursor
    open.
    """
    with engine.con.cursor(name="tallytree_rows") as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            yield pa.RecordBatch.from_struct_array(pa.array(rows, type=struct))


@contextmanager
def open_session() -> Iterator[Session]:
    """A private DuckDB in memory.

    What does not fit in memory is spilled into a folder that only this user can open and that is
    removed at the end; the files are encrypted with a key that DuckDB keeps in memory, so that even
    a killed process leaves nothing readable. Ends with an error if an input changed meanwhile.
    """
    with tempfile.TemporaryDirectory(prefix="tallytree-") as folder:
        connection = ibis.duckdb.connect(temp_directory=folder)
        session = Session(connection)
        try:
            connection.con.execute("SET preserve_insertion_order = false")
            _show_no_progress(connection)
            connection.con.execute(f"SET disabled_optimizers = '{SLOW_HERE}'")
            _encrypt_spilled_files(connection)
            yield session
            session.refuse_changed()
        finally:
            session.disconnect()


def _show_no_progress(connection: Any) -> None:
    # In a Jupyter kernel DuckDB draws its bar with ipywidgets, and refuses any word about the bar
    # where that is missing. There is no bar to turn off then.
    with suppress(duckdb.InvalidInputException):
        connection.con.execute("SET enable_progress_bar = false")


def _encrypt_spilled_files(connection: Any) -> None:
    # DuckDB before 1.4 has no such setting; the folder is removed all the same.
    with suppress(duckdb.CatalogException):
        connection.con.execute("SET temp_file_encryption = true")
    # What it ships with reads encrypted files and writes none; an extension that may be installed
    # writes them.
    with suppress(duckdb.Error):
        connection.con.execute("LOAD httpfs")


def guarded(action: Callable[[], T], source: str) -> T:
    """Run something inside an engine; turn whatever it raises into one sentence that quotes no
    value.

    Engines like to quote the row that they stumbled over, so nothing of their message is passed on
    but its kind.
    """
    try:
        return action()
    except TallytreeError:
        raise
    except duckdb.OutOfMemoryException:
        message = f"DuckDB ran out of memory or of temporary disk space while reading {source}; free some and retry."
    except (duckdb.ConversionException, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        message = (
            f"{source} holds values that do not fit the type of their column ({kind_of(error)}); "
            "correct the file or cast the column to text first."
        )
    except duckdb.NotImplementedException:
        message = (
            f"{source} has a column of a type that cannot be read, such as 16-bit floats or "
            "decimals of more than 38 digits; "
            "cast it to another type first."
        )
    except Exception as error:  # whatever engine this is, its message may quote a confidential row
        message = (
            f"{source} cannot be read: it is damaged, cut short, or not what its name says "
            f"({kind_of(error)}); "
            "check it with the tool that wrote it."
        )
        if WRITES in f"{kind_of(error)} {error}":
            message = f"{source} changes its database when it is read; give a table or a query that only reads."
        if isinstance(error, duckdb.Error) and "crypto module" in str(error):
            message = (
                f"{source} needs more memory than DuckDB may take, and it writes what does not fit "
                "encrypted or not at all, "
                "which needs its extension httpfs: INSTALL httpfs in DuckDB, or use a machine with "
                "more memory."
            )
    # Raised out here, so that the engine's own error is not even kept as the context of ours.
    raise InputError(message)


def kind_of(error: Exception) -> str:
    """Library and kind of an error, without its message."""
    library = type(error).__module__.split(".")[0].lstrip("_")
    return f"{library} {type(error).__name__}"

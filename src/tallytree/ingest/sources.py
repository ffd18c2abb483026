"""Any tabular input as an Ibis table: files, tables in memory, databases."""

from __future__ import annotations

import csv
import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa

from tallytree.errors import InputError, MissingExtraError, RequestError
from tallytree.ingest.columns import require_columns
from tallytree.ingest.engine import Session, guarded, kind_of

PARQUET = (".parquet", ".pq", ".parq")
CSV = (".csv", ".tsv", ".txt")
COMPRESSED = (".gz", ".zst", ".bz2")
REMOTE = ("s3://", "gs://", "gcs://", "r2://", "az://", "abfss://", "http://", "https://", "hf://")
ACCEPTED = (
    "a Parquet or CSV file or glob, a pandas, Polars, Arrow, Spark or Ibis table, or a database URL (duckdb://, postgres://, "
    "sqlite://)"
)


@dataclass(frozen=True)
class Source:
    """An input that is open for reading.

    Attributes
    ----------
    table
        Ibis table, possibly with only the wanted columns.
    columns
        All columns of the input.
    name
        What messages call the input.
    """

    table: Any
    columns: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Wanted:
    """Columns to read: ``required`` ones must be there, ``optional`` ones may be; ``None`` for all that there are."""

    required: Sequence[str] | None = None
    optional: Sequence[str] = ()

    def places(self, columns: Sequence[str], name: str) -> list[int]:
        """Positions of the wanted columns; refuses when one is missing or ambiguous."""
        if self.required is None:
            require_columns(columns, columns, name)
            return list(range(len(columns)))
        found = [*self.required, *(column for column in self.optional if column in columns)]
        require_columns(found, columns, name)
        return sorted({columns.index(column) for column in found})


def open_source(
    session: Session, source: Any, wanted: Wanted, *, table: str | None = None, sql: str | None = None
) -> Source:
    """Open an input and check that it has the wanted columns; inputs in memory are narrowed to them."""
    is_url = isinstance(source, str) and "://" in source and not source.startswith(REMOTE)
    if not is_url and (table is not None or sql is not None):
        raise RequestError("table= and sql= go with a database URL such as postgres://user@host/database.")
    if is_url:
        opened = _open_database(session, source, table, sql)
    elif isinstance(source, (str, Path)):
        opened = _open_files(session, str(source))
    else:
        opened = _open_in_memory(session, source, wanted)
    used = [opened.columns[place] for place in wanted.places(opened.columns, opened.name)]
    if any(opened.table[column].type().is_floating() for column in used):
        session.look_for_nan()
    return opened


def _open_in_memory(session: Session, source: Any, wanted: Wanted) -> Source:
    library, kind = type(source).__module__.split(".")[0], type(source).__name__
    if isinstance(source, ibis.Table):
        return Source(source, tuple(source.columns), "the Ibis table")
    if library == "pandas" and kind == "DataFrame":
        name, columns = "the pandas table", tuple(str(column) for column in source.columns)
        narrowed = source.iloc[:, wanted.places(columns, name)]
        arrow = guarded(lambda: pa.Table.from_pandas(narrowed, preserve_index=False), name)
        return Source(session.register(arrow), columns, name)
    if library == "polars" and kind in ("DataFrame", "LazyFrame"):
        return _open_polars(session, source, wanted)
    if library == "pyspark" and kind == "DataFrame":
        return _open_spark(session, source)
    if library == "pyarrow" and hasattr(source, "schema"):
        return _open_arrow(session, source, wanted)
    raise InputError(f"Cannot read a {library}.{kind}; give {ACCEPTED}.")


def _open_spark(session: Session, source: Any) -> Source:
    """A view over a Spark table; queries on it run on the executors."""
    name = f"{session.new_name()}_{id(source)}"
    source.createOrReplaceTempView(name)
    return Source(ibis.pyspark.connect(source.sparkSession).table(name), tuple(source.columns), "the Spark table")


def _open_polars(session: Session, source: Any, wanted: Wanted) -> Source:
    name = "the Polars table"
    columns = tuple(guarded(source.collect_schema, name).names())
    narrowed = source.select([columns[place] for place in wanted.places(columns, name)])
    if not hasattr(narrowed, "collect"):
        return Source(session.register(narrowed.to_arrow()), columns, name)
    if not hasattr(narrowed, "collect_batches"):  # Polars before 1.34
        return Source(session.register(guarded(narrowed.collect, name).to_arrow()), columns, name)
    return Source(guarded(lambda: session.load(_polars_stream(narrowed)), name), columns, name)


def _polars_stream(frame: Any) -> pa.RecordBatchReader:
    """A lazy table batch by batch, never whole in memory. Categories become text: each batch numbers them anew."""
    import polars as pl

    frame = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema
    batches = (batch for part in frame.collect_batches() for batch in part.to_arrow().to_batches())
    return pa.RecordBatchReader.from_batches(schema, batches)


def _open_arrow(session: Session, source: Any, wanted: Wanted) -> Source:
    name, columns = "the Arrow table", tuple(source.schema.names)
    places = wanted.places(columns, name)
    if isinstance(source, pa.RecordBatchReader):
        return Source(guarded(lambda: session.load(source), name), columns, name)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        source = source.select(places)
    return Source(guarded(lambda: session.register(source), name), columns, name)


def _open_files(session: Session, path: str) -> Source:
    try:
        return _open_named(session, path)
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise InputError(f"Cannot read {path[:200]}: {error.strerror or error}.") from None


def _open_named(session: Session, path: str) -> Source:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if Path(path).is_dir():
        path, suffixes = str(Path(path) / "**" / "*.parquet"), [".parquet"]
    last = next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")
    if last not in PARQUET + CSV:
        raise InputError(f"Cannot tell what {path} is from its name; give {ACCEPTED}.")
    remote = path.startswith(REMOTE)
    # Path.glob takes no absolute patterns.
    files = [path] if remote or Path(path).is_file() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
    if not files:
        raise InputError(f"There is no file {path}; check the path or the pattern.")
    if last in PARQUET:
        # Folders such as county=01001 name regions too: their zeros must stay.
        table = guarded(lambda: session.connection.read_parquet(files, hive_types_autocast=False), path)
        return Source(table, tuple(table.columns), path)
    header = "" if remote else guarded(lambda: _first_line(files[0]), path)
    if not remote and not header:
        raise InputError(f"{files[0]} is empty; a CSV file needs a line with the names of its columns.")
    separator = None if remote else max(",;\t|", key=header.count)
    table = guarded(lambda: _read_csv(session, files, separator), path)
    return Source(table, _names_in(header, separator, tuple(table.columns)), path)


def _names_in(header: str, separator: str | None, read: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the columns of a CSV file as they stand there: DuckDB numbers those that occur twice."""
    if separator is None:
        return read
    try:
        names = next(csv.reader([header], delimiter=separator))
    except csv.Error:
        return read
    twice = len(names) == len(read) and len(set(names)) < len(names)
    return tuple(own if names.count(own) > 1 else found for own, found in zip(names, read)) if twice else read


def _read_csv(session: Session, files: list[str], separator: str | None) -> Any:
    """A view over CSV files. All columns are text, so that codes such as 01001 keep their zeros; numbers are parsed, and
    checked, where they are used.
    """
    remote = separator is None
    if not remote and int(duckdb.__version__.partition(".")[0]) < 2:
        read_to_the_end([file for file in files if file.endswith(COMPRESSED)])
    between = {} if remote else {"delim": separator}
    return session.connection.read_csv(
        files, header=True, all_varchar=True, quote='"', escape='"', comment="", skip=0, **between
    )


def read_to_the_end(files: Sequence[str]) -> None:
    """Fail on compressed files that were cut short: DuckDB before 2.0 takes what is left of them for the whole."""
    for file in files:
        with pa.input_stream(file, compression="detect") as stream:
            while stream.read(2**24):
                pass


def _first_line(path: str) -> str:
    with pa.input_stream(path, compression="detect") as stream:
        start = stream.read(65536)
    return start.decode("utf-8", errors="replace").lstrip("\ufeff").partition("\n")[0].strip("\r")


def _open_database(session: Session, url: str, table: str | None, sql: str | None) -> Source:
    if (table is None) == (sql is None):
        raise RequestError("A database URL needs either table= (the name of a table) or sql= (a query).")
    scheme, _, place = url.partition("://")
    # The address may hold a password, so it is never shown.
    name = f"table {table!r} of the {scheme} database" if table is not None else f"the query on the {scheme} database"
    if scheme == "duckdb":
        opened = _open_duckdb(session, Path(place.partition("?")[0]), name, table, sql)
    else:
        engine = session.adopt(_connect(url, scheme, Path(place.partition("?")[0])))
        if table is not None:
            _require_table(table, guarded(engine.list_tables, f"The {scheme} database"), scheme)
        opened = guarded(lambda: _query(session, engine, sql) if table is None else engine.table(table), name)
    return Source(opened, tuple(opened.columns), name)


def _query(session: Session, engine: Any, sql: str | None) -> Any:
    if engine.name != "postgres":
        return engine.sql(sql)
    # To learn a query's columns, Ibis 12 makes a temporary view and then fails to drop it; this view ends with the connection.
    view = session.new_name()
    engine.raw_sql(f"CREATE TEMPORARY VIEW {view} AS {sql}").close()
    return engine.table(view)


def _open_duckdb(session: Session, file: Path, name: str, table: str | None, sql: str | None) -> Any:
    """A table of a DuckDB file. It is attached to our own DuckDB, read-only, so that it spills into the private folder."""
    if not file.is_file():
        raise InputError(f"There is no duckdb database {file}; check the path after duckdb://.")
    own, catalog, view = session.connection, session.new_name(), session.new_name()
    guarded(lambda: own.attach(file, catalog, read_only=True), f"The duckdb database {file}")
    own.con.execute(f"USE {catalog}")
    if table is not None:
        _require_table(table, [row[0] for row in own.con.execute("SHOW TABLES").fetchall()], "duckdb")
        quoted = table.replace('"', '""')
        sql = f'SELECT * FROM "{quoted}"'
    guarded(lambda: own.con.execute(f"CREATE TEMP VIEW {view} AS {sql}"), name)
    return own.table(view, database=("temp", "main"))


def _require_table(table: str, known: Sequence[str], scheme: str) -> None:
    if table not in known:
        shown = ", ".join(repr(one) for one in known[:30]) + (", …" if len(known) > 30 else "")
        raise InputError(f"The {scheme} database has no table {table!r}; its tables are {shown or 'none'}.")


def _connect(url: str, scheme: str, file: Path) -> Any:
    if scheme == "sqlite" and not file.is_file():
        raise InputError(f"There is no sqlite database {file}; check the path after sqlite://.")
    try:
        return ibis.connect(url)
    except ImportError:
        problem: Exception = MissingExtraError(f"Reading from {scheme}", scheme.removesuffix("ql"))
    except Exception as error:  # drivers quote the address, password included
        problem = InputError(
            f"Cannot connect to the {scheme} database ({kind_of(error)}); check the address, the user and the network."
        )
    raise problem

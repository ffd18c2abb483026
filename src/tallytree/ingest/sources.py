"""Any tabular input as an Ibis table: files, tables in memory, databases."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa

from tallytree.errors import InputError, RequestError
from tallytree.ingest.columns import require_columns
from tallytree.ingest.csv_files import COMPRESSED, open_csv
from tallytree.ingest.databases import open_database
from tallytree.ingest.engine import Session, guarded
from tallytree.ingest.point_files import has_geometry, is_point_file, read_points_file
from tallytree.model.address import shown_path
from tallytree.model.place import ANYWHERE, Place

PARQUET = (".parquet", ".pq", ".parq")
CSV = (".csv", ".tsv", ".txt")
REMOTE = ("s3://", "gs://", "gcs://", "r2://", "az://", "abfss://", "http://", "https://", "hf://")
# Databases that take "a" for "A" unless a column says otherwise: their rows are counted in our own
# DuckDB, which compares exactly, and are read once.
WITHOUT_CASE = ("mysql", "mssql", "singlestoredb")
ACCEPTED = (
    "a Parquet or CSV file or glob, a GeoJSON file or shapefile of points, a pandas, Polars, "
    "Arrow, Spark or Ibis table, a "
    "DuckDB relation, or a database URL (duckdb://, postgres://, sqlite://)"
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
    named
        Whether the names of the columns can be names: those of a CSV file may be the values of its
        first row.
    """

    table: Any
    columns: tuple[str, ...]
    name: str
    named: bool = True


@dataclass(frozen=True)
class Wanted:
    """Columns to read: ``required`` ones must be there, ``optional`` ones may be; ``None`` for all
    that there are.
    """

    required: Sequence[str] | None = None
    optional: Sequence[str] = ()

    def places(self, columns: Sequence[str], name: str, *, named: bool = True) -> list[int]:
        """Positions of the wanted columns; refuses when one is missing or ambiguous."""
        if self.required is None:
            require_columns(columns, columns, name, named=named)
            return list(range(len(columns)))
        found = [*self.required, *(column for column in self.optional if column in columns)]
        require_columns(found, columns, name, named=named)
        return sorted({columns.index(column) for column in found})


def open_source(session: Session, source: Any, wanted: Wanted, place: Place = ANYWHERE) -> Source:
    """Open an input and check that it has the wanted columns; inputs in memory are narrowed to
    them.
    """
    is_url = isinstance(source, str) and "://" in source and not source.startswith(REMOTE)
    if not is_url and (place.table is not None or place.sql is not None):
        raise RequestError(
            "table= and sql= go with a database URL such as postgres://user@host/database."
        )
    if is_url:
        _refuse_encoding(place.encoding, "A database")
        table, name = open_database(session, source, place)
        opened = Source(table, tuple(table.columns), name)
    elif isinstance(source, (str, Path)):
        opened = _open_files(session, str(source), wanted, place.encoding)
    else:
        _refuse_encoding(place.encoding, "A table in memory")
        opened = _open_in_memory(session, source, wanted)
    used = [
        opened.columns[place]
        for place in wanted.places(opened.columns, opened.name, named=opened.named)
    ]
    if session.engine_of(opened.table).name in WITHOUT_CASE:
        opened = replace(opened, table=session.bring(opened.table.select(used), opened.name))
    if any(opened.table[column].type().is_floating() for column in used):
        session.look_for_nan()
    return opened


def _refuse_encoding(encoding: str | None, source: str) -> None:
    if encoding is not None:
        raise RequestError(
            f"encoding= goes with files of text, such as CSV; {source} knows its own."
        )


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
    if isinstance(source, duckdb.DuckDBPyRelation):
        return _open_relation(session, source, wanted)
    if library == "pyspark" and kind == "DataFrame":
        return _open_spark(session, source)
    if library == "pyarrow" and hasattr(source, "schema"):
        return _open_arrow(session, source, wanted)
    raise InputError(f"Cannot read a {library}.{kind}; give {ACCEPTED}.")


def _open_spark(session: Session, source: Any) -> Source:
    """A view over a Spark table; queries on it run on the executors."""
    name = f"{session.new_name()}_{id(source)}"
    source.createOrReplaceTempView(name)
    return Source(
        ibis.pyspark.connect(source.sparkSession).table(name),
        tuple(source.columns),
        "the Spark table",
    )


def _open_relation(session: Session, source: Any, wanted: Wanted) -> Source:
    """A DuckDB relation: worked out by the connection it belongs to, batch by batch, the wanted
    columns alone.
    """
    name, columns = "the DuckDB relation", tuple(source.columns)
    named = [columns[place].replace('"', '""') for place in wanted.places(columns, name)]
    narrowed = guarded(lambda: source.project(", ".join(f'"{column}"' for column in named)), name)
    return Source(
        guarded(lambda: session.load(pa.RecordBatchReader.from_stream(narrowed)), name),
        columns,
        name,
    )


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
    """A lazy table batch by batch, never whole in memory. Categories become text: each batch
    numbers them anew.
    """
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


def _open_files(session: Session, path: str, wanted: Wanted, encoding: str | None) -> Source:
    try:
        if is_point_file(path) or has_geometry(path, wanted.required or ()):
            return _open_points(session, path, wanted, encoding)
        return _open_named(session, path, encoding)
    except OSError as error:  # a name that is too long, a folder that may not be entered
        name = shown_path(path)[:200]
        raise InputError(
            f"Cannot read {name}: {error.strerror or ' '.join(str(error).split())}."
        ) from None


def _state_of(file: str) -> tuple[int, ...]:
    """What tells a file from one that was written in its place, or into it."""
    found = Path(file).stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _open_points(session: Session, path: str, wanted: Wanted, encoding: str | None) -> Source:
    """A file of points: its coordinates as columns beside those that it has."""
    columns = (*(wanted.required or ()), *wanted.optional)
    table = guarded(lambda: session.load(read_points_file(path, encoding, columns)), path)
    return Source(table, tuple(table.columns), path)


def _open_named(session: Session, path: str, encoding: str | None) -> Source:
    name = shown_path(path)
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if Path(path).is_dir():
        path, suffixes = str(Path(path) / "**" / "*.parquet"), [".parquet"]
        name = path
    last = next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")
    if last not in PARQUET + CSV:
        raise InputError(f"Cannot tell what {name} is from its name; give {ACCEPTED}.")
    remote = path.startswith(REMOTE)
    # Path.glob takes no absolute patterns.
    files = [path] if remote or Path(path).is_file() else sorted(glob.glob(path, recursive=True))  # noqa: PTH207
    if not files:
        raise InputError(f"There is no file {name}; check the path or the pattern.")
    if not remote:
        session.watch(name, lambda: [_state_of(file) for file in files])
    if last in PARQUET:
        _refuse_encoding(encoding, name)
        # Folders such as county=01001 name regions too: their zeros must stay.
        table = guarded(
            lambda: session.connection.read_parquet(files, hive_types_autocast=False), name
        )
        return Source(table, tuple(table.columns), name)
    table, columns, named = open_csv(session, files, name, encoding, remote=remote)
    return Source(table, columns, name, named)

"""One table in every form that can be read."""

import io
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet

FORMATS = [
    "parquet", "parquet path", "parquet glob", "parquet folder", "csv", "csv.gz", "csv glob", "csv utf-16", "tsv",
    "pandas", "pandas object", "polars", "polars lazy", "polars category", "polars lazy category",
    "arrow", "arrow dictionary", "arrow dataset", "arrow reader", "arrow batch", "duckdb relation", "ibis memory",
    "ibis duckdb", "ibis sqlite", "duckdb url", "duckdb sql", "sqlite url",
]  # fmt: skip
# One of each kind, for what does not depend on how a table is opened.
SOME_FORMATS = [
    "parquet",
    "csv",
    "pandas",
    "polars lazy",
    "arrow reader",
    "ibis sqlite",
    "duckdb url",
]


def in_format(table: pa.Table, form: str, folder: Path) -> tuple[Any, dict[str, str]]:
    """The table in a form, and the options that go with it."""
    folder.mkdir(parents=True, exist_ok=True)
    if form.startswith(("parquet", "csv", "tsv")):
        return _as_files(table, form, folder), {}
    if form.startswith(("duckdb", "sqlite", "ibis duckdb", "ibis sqlite")):
        return _in_database(table, form, folder)
    return _in_memory(table, form), {}


def _as_files(table: pa.Table, form: str, folder: Path) -> Any:
    kind, _, how = form.partition(" ")
    half = len(table) // 2
    parts = [table.slice(0, half), table.slice(half)] if how in ("glob", "folder") else [table]
    for number, part in enumerate(parts):
        file = folder / f"part{number}.{kind}"
        if kind == "parquet":
            pa.parquet.write_table(part, file)
        elif how == "utf-16":
            text = io.BytesIO()
            pa.csv.write_csv(part, text)
            file.write_bytes(text.getvalue().decode().encode("utf-16"))
        else:
            options = pa.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
            with pa.output_stream(file, compression="detect") as stream:
                pa.csv.write_csv(part, stream, options)
    if how == "glob":
        return str(folder / f"*.{kind}")
    if how == "folder":
        return folder
    return folder / f"part0.{kind}" if how == "path" else str(folder / f"part0.{kind}")


def _in_database(table: pa.Table, form: str, folder: Path) -> tuple[Any, dict[str, str]]:
    engine = "duckdb" if "duckdb" in form else "sqlite"
    file = folder / f"base.{engine}"
    if engine == "duckdb":
        with duckdb.connect(str(file)) as connection:
            connection.register("given", table)
            connection.execute("CREATE TABLE people AS SELECT * FROM given")
    else:
        with sqlite3.connect(file) as base:
            kinds = [_sqlite_kind(field.type) for field in table.schema]
            columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(table.column_names, kinds))
            base.execute(f"CREATE TABLE people ({columns})")
            marks = ", ".join("?" * table.num_columns)
            base.executemany(
                f"INSERT INTO people VALUES ({marks})",
                [tuple(row.values()) for row in table.to_pylist()],
            )
        base.close()
    if form.startswith("ibis"):
        return ibis.connect(f"{engine}://{file}").table("people"), {}
    options = {"sql": "SELECT * FROM people"} if form.endswith("sql") else {"table": "people"}
    return f"{engine}://{file}", options


def _sqlite_kind(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _in_memory(table: pa.Table, form: str) -> Any:
    match form:
        case "pandas":
            return table.to_pandas()
        case "pandas object":
            return pd.DataFrame(table.to_pydict(), dtype=object)
        case "polars":
            return pl.from_arrow(table)
        case "polars lazy":
            return pl.from_arrow(table).lazy()
        case "polars category":
            return pl.from_arrow(table).cast({pl.String: pl.Categorical})
        case "polars lazy category":
            return pl.from_arrow(table).cast({pl.String: pl.Categorical}).lazy()
        case "arrow":
            return table
        case "arrow dictionary":
            text = [name for name in table.column_names if pa.types.is_string(table[name].type)]
            return pa.table(
                {
                    name: table[name].dictionary_encode() if name in text else table[name]
                    for name in table.column_names
                }
            )
        case "arrow dataset":
            return pa.dataset.dataset(table)
        case "arrow reader":
            return table.to_reader()
        case "arrow batch":
            return table.combine_chunks().to_batches()[0]
        case "duckdb relation":
            return duckdb.from_arrow(table)
        case "ibis memory":
            return ibis.memtable(table)
    raise ValueError(form)

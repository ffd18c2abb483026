"""CSV files as Ibis tables: their separator and encoding found, their columns as text."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv

from tallytree.errors import InputError, RequestError
from tallytree.ingest.encodings import LOOKED_AT, UTF8, encoding_of
from tallytree.ingest.engine import Session, guarded
from tallytree.ingest.headers import recur_below

COMPRESSED = (".gz", ".zst", ".bz2")


def open_csv(
    session: Session, files: list[str], path: str, encoding: str | None, *, remote: bool
) -> tuple[Any, tuple[str, ...], bool]:
    """A table over CSV files, the names of its columns as they stand there, and whether the rows
    below let them be names.
    """
    if remote:
        if encoding is not None:
            raise RequestError(
                "encoding= goes with files on this machine; those elsewhere are read as UTF-8."
            )
        table = guarded(lambda: _scanned(session, files, None), path)
        return table, tuple(table.columns), True
    start = guarded(lambda: _start(files[0]), path)
    written = encoding_of(start, path, encoding)
    text = start.decode(written, errors="replace").lstrip("\ufeff")
    header = text.partition("\n")[0].strip("\r")
    if not header:
        raise InputError(
            f"{files[0]} is empty; a CSV file needs a line with the names of its columns."
        )
    separator = max(",;\t|", key=header.count)
    if written == UTF8:
        if int(duckdb.__version__.partition(".")[0]) < 2:
            guarded(
                lambda: read_to_the_end([file for file in files if file.endswith(COMPRESSED)]), path
            )
        table = guarded(lambda: _scanned(session, files, separator), path)
    else:
        names = guarded(lambda: next(csv.reader([header], delimiter=separator)), path)
        table = guarded(lambda: session.load(_decoded(files, names, separator, written)), path)
    found = _names_in(header, separator, tuple(table.columns))
    return table, found, not recur_below(found, text, separator)


def _scanned(session: Session, files: list[str], separator: str | None) -> Any:
    """A view over CSV files. All columns are text, so that codes such as 01001 keep their zeros;
    numbers are parsed, and checked, where they are used.
    """
    between = {} if separator is None else {"delim": separator}
    return session.connection.read_csv(
        files, header=True, all_varchar=True, quote='"', escape='"', comment="", skip=0, **between
    )


def _decoded(
    files: Sequence[str], names: Sequence[str], separator: str, encoding: str
) -> pa.RecordBatchReader:
    """The same rows of files that DuckDB cannot decode, batch by batch; empty fields are missing,
    as they are there.
    """
    # Equal names would make a table that cannot be queried; whoever asks for one of them is told.
    own = [f"{name}_{place}" if name in names[:place] else name for place, name in enumerate(names)]
    schema = pa.schema([(name, pa.string()) for name in own])
    reading = pa.csv.ReadOptions(
        encoding=encoding, block_size=1 << 24, column_names=own, skip_rows=1
    )
    parsing = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    as_text = pa.csv.ConvertOptions(
        column_types=schema,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )

    def rows() -> Iterator[pa.RecordBatch]:
        for file in files:
            with pa.input_stream(file, compression="detect") as stream:
                yield from pa.csv.open_csv(stream, reading, parsing, as_text)

    return pa.RecordBatchReader.from_batches(schema, rows())


def _names_in(header: str, separator: str, read: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the columns of a CSV file as they stand there: DuckDB numbers those that occur
    twice.
    """
    try:
        names = next(csv.reader([header], delimiter=separator))
    except csv.Error:
        return read
    twice = len(names) == len(read) and len(set(names)) < len(names)
    return (
        tuple(own if names.count(own) > 1 else found for own, found in zip(names, read))
        if twice
        else read
    )


def read_to_the_end(files: Sequence[str]) -> None:
    """Fail on compressed files that were cut short: DuckDB before 2.0 takes what is left of them
    for the whole.
    """
    for file in files:
        with pa.input_stream(file, compression="detect") as stream:
            while stream.read(2**24):
                pass


def _start(path: str) -> bytes:
    with pa.input_stream(path, compression="detect") as stream:
        return stream.read(LOOKED_AT)

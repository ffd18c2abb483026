"""Where an export goes: a file or folder of its own, never over what is there unless told."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import RequestError, StorageError
from tallytree.storage.folder import MANIFEST


@contextmanager
def writing(out: str | Path, *, folder: bool, overwrite: bool) -> Iterator[Path]:
    """A new file or folder beside its place, moved there when all is written; nothing is left
    behind otherwise.
    """
    target = Path(out)
    for place in (target.absolute(), *target.absolute().parents):
        if (place / MANIFEST).is_file():
            raise RequestError(
                f"{place} is a release, to which nothing is added. Name another place (--out)."
            )
    if target.exists() and not overwrite:
        raise RequestError(f"{target} exists already. Name another place, or say --overwrite.")
    if target.exists() and target.is_dir() != folder:
        kind = "folder" if folder else "file"
        raise RequestError(f"{target} is no {kind}, which this format makes. Name another place.")
    building = target.with_name(f".{target.name}.building")
    try:
        _remove(building)
        if folder:
            building.mkdir()
        yield building
        if folder:
            _remove(target)
        building.replace(target)
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error.strerror or error}.") from None
    finally:
        _remove(building)


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def write_table(file: Path, table: pa.Table) -> None:
    """CSV as in RFC 4180, UTF-8. Texts are quoted, which tells careful readers that 01001 is a
    code; nulls are empty.
    """
    from pyarrow import csv as arrow_csv

    flat = pa.table({name: decoded(table[name]) for name in table.column_names})
    arrow_csv.write_csv(flat, file)


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of plain values, where it came as codes of a dictionary."""
    return column.cast(decoded_type(column.type))


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values, where they come as codes of a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def write_rows(file: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV file from rows of plain values."""
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def number_texts(column: pa.Array) -> pa.StringArray:
    """Numbers as texts that read back as the same; null where one is missing or not finite."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
    return column.cast(pa.string())


def end_to_end(texts: pa.StringArray) -> memoryview:
    """Texts without nulls one after another, as Arrow keeps them in memory: nothing is copied.

    Examples
    --------
    >>> bytes(end_to_end(pa.array(["a", "bc", "d"]).slice(1)))
    b'bcd'
    """
    _, ends, content = texts.buffers()
    ends = np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(content)[ends[0] : ends[-1]]

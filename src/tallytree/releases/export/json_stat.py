"""JSON-stat 2.0: a dense cube of regions, sizes and measures. Format: https://json-stat.org/full/"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.model.arrays import IntArray
from tallytree.releases.export.files import end_to_end, number_texts
from tallytree.releases.export.sheet import Codes, Sheet

MEASURE = "measure"
_CELLS_AT_ONCE = 1 << 16


def write_json_stat(sheet: Sheet, file: Path) -> None:
    """One data set: every key is a dimension, the measures are the last one; flags are the status
    of the values.

    Rows that a sheet leaves out are counts of 0; standard errors and ends of intervals of such
    counts are null. Values and flags are written some thousands at a time.
    """
    cells, n_measures = sheet.cells(), len(sheet.names("value", "error"))
    facts = json.dumps(_facts(sheet), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with file.open("wb") as stream:
        stream.write(facts.removesuffix("}").encode())
        _write_all(stream, b',"value":[', _values(sheet, cells), b"]")
        if sheet.names("flag"):
            _write_all(stream, b',"status":{', _flags(sheet, cells * n_measures), b"}")
        stream.write(b"}")


def _facts(sheet: Sheet) -> dict[str, Any]:
    """The data set without its values."""
    keys, measures = sheet.names("key"), sheet.names("value", "error")
    return {
        "version": "2.0",
        "class": "dataset",
        "label": sheet.title,
        "note": list(sheet.about),
        "id": [*keys, MEASURE],
        "size": [len(sheet.codes[key].values) for key in keys] + [len(measures)],
        "role": {"metric": [MEASURE]} | ({"geo": ["region"]} if "region" in keys else {}),
        "dimension": {key: _dimension(sheet.title_of(key), sheet.codes[key]) for key in keys}
        | {
            MEASURE: _dimension(
                "measure", Codes(measures, [sheet.title_of(name) for name in measures])
            )
        },
    }


def _write_all(
    stream: BinaryIO, begin: bytes, pieces: Iterator[pa.StringArray], end: bytes
) -> None:
    """Texts one after another, a comma between them."""
    stream.write(begin)
    between = b""
    for texts in pieces:
        if len(texts):
            stream.write(between)
            stream.write(end_to_end(pc.binary_join_element_wise(texts, "", ","))[:-1])
            between = b","
    stream.write(end)


def _values(sheet: Sheet, cells: IntArray) -> Iterator[pa.StringArray]:
    """The measures of every cell of the cube, in order; those of cells without a row are 0 or null."""
    n_cells = math.prod(len(sheet.codes[key].values) for key in sheet.names("key"))
    order = np.argsort(cells, kind="stable")
    cells = cells[order]
    values, measures = sheet.names("value"), sheet.names("value", "error")
    empty = [
        "0" if sheet.rows_left_out_are_zero and name in values else "null" for name in measures
    ]
    for start in range(0, n_cells, _CELLS_AT_ONCE):
        stop = min(start + _CELLS_AT_ONCE, n_cells)
        here = slice(*np.searchsorted(cells, (start, stop)))
        rows = sheet.table.select(measures).take(pa.array(order[here]))
        texts = [_numbers(column.combine_chunks()) for column in rows.columns]
        row = np.full(stop - start, len(rows), dtype=np.int64)
        row[cells[here] - start] = np.arange(len(rows))
        lines = pc.binary_join_element_wise(*texts, ",")
        yield pa.concat_arrays([lines, pa.array([",".join(empty)])]).take(pa.array(row))


def _numbers(column: pa.Array) -> pa.StringArray:
    """Numbers as JSON."""
    return pc.fill_null(number_texts(column), "null")


def _flags(sheet: Sheet, places: IntArray) -> Iterator[pa.StringArray]:
    """The flag of each cell's first measure, by its place among all values."""
    column = sheet.table[sheet.names("flag")[0]].combine_chunks()
    for start in range(0, len(column), _CELLS_AT_ONCE):
        codes = column.slice(start, _CELLS_AT_ONCE).dictionary_encode()
        words = pa.array([json.dumps(word) for word in codes.dictionary.to_pylist()], pa.string())
        numbers = pa.array(places[start : start + _CELLS_AT_ONCE]).cast(pa.string())
        entries = pc.binary_join_element_wise('"', numbers, '":', words.take(codes.indices), "")
        yield entries.drop_null()


def _dimension(title: str, codes: Codes) -> dict[str, Any]:
    """The categories of a dimension in order, with their labels and what lies below what."""
    names = [str(value) for value in codes.values]
    category: dict[str, Any] = {"index": names, "label": dict(zip(names, codes.labels))}
    if codes.parent is not None:
        children: dict[str, list[str]] = {}
        for name, parent in zip(names, codes.parent.tolist()):
            if parent >= 0:
                children.setdefault(names[parent], []).append(name)
        category["child"] = children
    return {"label": title, "category": category}

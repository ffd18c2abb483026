"""JSON-stat 2.0: a dense cube of regions, sizes and measures. Format: https://json-stat.org/full/"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.releases.export.sheet import Codes, Sheet

MEASURE = "measure"


def write_json_stat(sheet: Sheet, file: Path) -> None:
    """One data set: every key is a dimension, the measures are the last one; flags are the status
    of the values.
    """
    file.write_text(
        json.dumps(json_stat(sheet), ensure_ascii=False, allow_nan=False, separators=(",", ":")),
        encoding="utf-8",
    )


def json_stat(sheet: Sheet) -> dict[str, Any]:
    """The data set as JSON-ready facts.

    Rows that a sheet leaves out are counts of 0; standard errors and ends of intervals of such
    counts are null.
    """
    keys, measures = sheet.names("key"), sheet.names("value", "error")
    size = [len(sheet.codes[key].values) for key in keys] + [len(measures)]
    cells, n_cells = sheet.cells(), int(np.prod(size[:-1], dtype=np.int64))
    values = np.full((n_cells, len(measures)), None, dtype=object)
    if sheet.rows_left_out_are_zero:
        values[:, : len(sheet.names("value"))] = 0
    for place, name in enumerate(measures):
        column = np.array(sheet.table[name].to_pylist(), dtype=object)
        column[np.array([value is None or value != value for value in column], dtype=bool)] = None
        values[cells, place] = column
    facts: dict[str, Any] = {
        "version": "2.0",
        "class": "dataset",
        "label": sheet.title,
        "note": list(sheet.about),
        "id": [*keys, MEASURE],
        "size": size,
        "role": {"metric": [MEASURE]} | ({"geo": ["region"]} if "region" in keys else {}),
        "dimension": {key: _dimension(sheet.title_of(key), sheet.codes[key]) for key in keys}
        | {
            MEASURE: _dimension(
                "measure", Codes(measures, [sheet.title_of(name) for name in measures])
            )
        },
        "value": values.ravel().tolist(),
    }
    flags = sheet.names("flag")
    if flags:
        words = sheet.table[flags[0]].to_pylist()
        facts["status"] = {
            str(cell * len(measures)): word for cell, word in zip(cells.tolist(), words) if word
        }
    return facts


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

"""CSV, Excel and Parquet: the sheet as it is, one column per level."""

from __future__ import annotations

import math
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import MissingExtraError, RequestError
from tallytree.releases.export.files import decoded, write_table
from tallytree.releases.export.sheet import Sheet

# What a worksheet holds, its head included.
MOST_ROWS = 1_048_576
_ROWS_AT_ONCE = 10_000


def write_csv(sheet: Sheet, file: Path) -> None:
    """One file with a head line, in which no text is a formula to a spreadsheet."""
    columns = [harmless(decoded(column)) for column in sheet.table.columns]
    names = harmless(pa.chunked_array([sheet.table.column_names])).to_pylist()
    write_table(file, pa.table(columns, names=names))


def harmless(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts that a spreadsheet would run as a formula, with an apostrophe before them; all others
    as they are.

    Examples
    --------
    >>> harmless(pa.chunked_array([["=cmd|'/C calc'!A0", "-5", "A+"]])).to_pylist()
    ["'=cmd|'/C calc'!A0", '-5', 'A+']
    """
    if not pa.types.is_string(column.type):
        return column
    formula = pc.and_not(
        pc.match_substring_regex(column, r"^[=+@\t\r-]"),
        pc.match_substring_regex(column, r"^[+-]?[0-9]+([.,][0-9]+)?$"),
    )
    return pc.if_else(formula, pc.binary_join_element_wise("'", column, ""), column)


def write_parquet(sheet: Sheet, folder: Path) -> None:
    """A folder of files, split by the sheet's partition (``level=county/…``); what the columns mean
    is in the schema.
    """
    from pyarrow import dataset

    fields = [
        sheet.table.schema.field(column.name).with_metadata(
            {"title": column.title, "role": column.role}
        )
        for column in sheet.columns
    ]
    schema = pa.schema(fields, {"title": sheet.title, "about": "\n".join(sheet.about)})
    table = sheet.table.cast(schema)
    kinds = pa.schema([pa.field(name, pa.string()) for name in sheet.partition])
    for name in sheet.partition:
        table = table.set_column(table.column_names.index(name), name, decoded(table[name]))
    partitioning = dataset.partitioning(kinds, flavor="hive") if sheet.partition else None
    dataset.write_dataset(
        table, folder, format="parquet", partitioning=partitioning, existing_data_behavior="error"
    )


def write_excel(sheet: Sheet, file: Path) -> None:
    """A workbook: a worksheet per table, and a last one on what they are. Codes are texts, so that
    none loses its zeros.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.styles import Font
    except ImportError:
        raise MissingExtraError("Writing Excel", "excel") from None
    tables = (sheet, *sheet.beside)
    most = max(len(each.table) for each in tables)
    if most >= MOST_ROWS:
        raise RequestError(
            f"A worksheet holds {MOST_ROWS - 1:,} rows, this release has {most:,}. Take csv or "
            "parquet."
        )
    book = Workbook(write_only=True)
    for each in tables:
        rows = book.create_sheet(each.name)
        rows.freeze_panes = "A2"
        for place, name in enumerate(each.table.column_names):
            rows.column_dimensions[_letter(place)].width = max(10, min(40, len(name) + 4))
        head = [WriteOnlyCell(rows, name) for name in each.table.column_names]
        for cell in head:
            cell.font = Font(bold=True)
        rows.append(head)
        for batch in each.table.to_batches(max_chunksize=_ROWS_AT_ONCE):
            for row in zip(*(column.to_pylist() for column in batch.columns)):
                rows.append([_cell(rows, value) for value in row])
    about = book.create_sheet("about")
    for each in tables:
        facts = chain([(each.title, None)], ((line, None) for line in each.about), [(None, None)])
        for line in chain(
            facts, ((column.name, column.title) for column in each.columns), [(None, None)]
        ):
            about.append([None if text is None else _text(about, text) for text in line])
    book.save(file)


def _cell(rows: Any, value: Any) -> Any:
    if isinstance(value, str):
        return _text(rows, value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _text(rows: Any, text: str) -> Any:
    """A cell that is a text and nothing else: a label that begins with = is no formula."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell = WriteOnlyCell(rows, ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text))
    cell.data_type = "s"
    return cell


def _letter(place: int) -> str:
    from openpyxl.utils import get_column_letter

    return str(get_column_letter(place + 1))

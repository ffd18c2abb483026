"""Excel: openpyxl makes the workbook with heads, widths and the sheet of explanations; the rows go
into its worksheets as text, some thousands at a time, since a Python object per cell costs minutes.
The format: ECMA-376, part 1, section 18.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import MissingExtraError, RequestError
from tallytree.releases.export.files import end_to_end, number_texts
from tallytree.releases.export.sheet import Sheet

# What a worksheet holds, its head included, and a cell.
MOST_ROWS = 1_048_576
_MOST_CHARACTERS = 32_767
_ROWS_AT_ONCE = 10_000
_ILLEGAL = "[\x00-\x08\x0b\x0c\x0e-\x1f]"
_END_OF_ROWS = b"</sheetData>"


def write_excel(sheet: Sheet, file: Path) -> None:
    """A workbook: a worksheet per table, and a last one on what they are. Codes are texts, so that
    none loses its zeros.
    """
    tables = (sheet, *sheet.beside)
    most = max(len(each.table) for each in tables)
    if most >= MOST_ROWS:
        raise RequestError(
            f"A worksheet holds {MOST_ROWS - 1:,} rows, this release has {most:,}. Take csv or "
            "parquet."
        )
    with ZipFile(_workbook(tables)) as made, ZipFile(file, "w", ZIP_DEFLATED) as book:
        for part in made.infolist():
            place = _number_of_sheet(part)
            if place is None or place >= len(tables):
                book.writestr(part, made.read(part), ZIP_DEFLATED)
                continue
            before, end, after = made.read(part).partition(_END_OF_ROWS)
            with book.open(part.filename, "w", force_zip64=True) as stream:
                stream.write(before)
                for rows in row_texts(tables[place].table):
                    stream.write(rows)
                stream.write(end + after)


def _workbook(tables: tuple[Sheet, ...]) -> BytesIO:
    """The workbook without rows below the heads."""
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font
    except ImportError:
        raise MissingExtraError("Writing Excel", "excel") from None
    book = Workbook(write_only=True)
    for each in tables:
        rows = book.create_sheet(each.name)
        rows.freeze_panes = "A2"
        for place, name in enumerate(each.table.column_names):
            rows.column_dimensions[_letter(place)].width = max(10, min(40, len(name) + 4))
        head = [_text(rows, name) for name in each.table.column_names]
        for cell in head:
            cell.font = Font(bold=True)
        rows.append(head)
    about = book.create_sheet("about")
    for each in tables:
        facts = chain([(each.title, None)], ((line, None) for line in each.about), [(None, None)])
        for line in chain(
            facts, ((column.name, column.title) for column in each.columns), [(None, None)]
        ):
            about.append([None if text is None else _text(about, text) for text in line])
    made = BytesIO()
    book.save(made)
    return made


def _number_of_sheet(part: ZipInfo) -> int | None:
    """Which worksheet a part of a workbook is, counted from 0 in their order; None for all else."""
    folder, _, name = part.filename.rpartition("/")
    return (
        int(name.removeprefix("sheet").removesuffix(".xml")) - 1
        if folder == "xl/worksheets"
        else None
    )


def row_texts(table: pa.Table) -> Iterator[memoryview]:
    """The rows below the head as XML, some at a time.

    Examples
    --------
    >>> [bytes(rows) for rows in row_texts(pa.table({"size": [7]}))]
    [b'<row r="2"><c r="A2"><v>7</v></c></row>']
    """
    opening = [f'<c r="{_letter(place)}' for place in range(table.num_columns)]
    for start in range(0, len(table), _ROWS_AT_ONCE):
        here = table.slice(start, _ROWS_AT_ONCE)
        numbers = pa.array(np.arange(start + 2, start + 2 + len(here))).cast(pa.string())
        cells = [
            pc.fill_null(_joined(begin, numbers, '"', _content(column.combine_chunks())), "")
            for begin, column in zip(opening, here.columns, strict=True)
        ]
        yield end_to_end(_joined('<row r="', numbers, '">', *cells, "</row>"))


def _content(column: pa.Array) -> pa.StringArray:
    """What follows the place of each cell; null for an empty one."""
    if pa.types.is_dictionary(column.type):
        return _text_content(column.dictionary).take(column.indices)
    if pa.types.is_string(column.type):
        return _text_content(column)
    return _joined("><v>", number_texts(column), "</v></c>")


def _text_content(texts: pa.StringArray) -> pa.StringArray:
    """Cells that are texts and nothing else: a label that begins with = is no formula."""
    texts = pc.utf8_slice_codeunits(texts, 0, _MOST_CHARACTERS)
    texts = pc.replace_substring_regex(texts, _ILLEGAL, "\N{REPLACEMENT CHARACTER}")
    for character, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;")):
        texts = pc.replace_substring(texts, character, escaped)
    return _joined(' t="inlineStr"><is><t xml:space="preserve">', texts, "</t></is></c>")


def _joined(*parts: pa.Array | str) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, "")


def _text(rows: Any, text: str) -> Any:
    """A cell of openpyxl that is a text and nothing else."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    cell = WriteOnlyCell(rows, ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text))
    cell.data_type = "s"
    return cell


def _letter(place: int) -> str:
    """The letters of a column, counted from 0.

    Examples
    --------
    >>> [_letter(place) for place in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    letters = ""
    place += 1
    while place:
        place, last = divmod(place - 1, 26)
        letters = chr(ord("A") + last) + letters
    return letters

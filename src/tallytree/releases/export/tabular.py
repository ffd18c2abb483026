"""CSV and Parquet: the sheet as it is, one column per level."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tallytree.releases.export.files import decoded, decoded_type, write_table
from tallytree.releases.export.sheet import Sheet

# Rows of a row group of Parquet: a level with fewer has one.
_PARQUET_ROWS = 1 << 17


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

    Texts are decoded a batch at a time: Arrow writes the whole dictionary of a dictionary column
    into every row group, and Parquet makes a smaller one of its own.
    """
    from pyarrow import dataset

    fields = [
        pa.field(
            column.name,
            decoded_type(sheet.table.schema.field(column.name).type),
            metadata={"title": column.title, "role": column.role},
        )
        for column in sheet.columns
    ]
    schema = pa.schema(fields, {"title": sheet.title, "about": "\n".join(sheet.about)})
    batches = (batch.cast(schema) for batch in sheet.table.to_batches(_PARQUET_ROWS))
    kinds = pa.schema([pa.field(name, pa.string()) for name in sheet.partition])
    partitioning = dataset.partitioning(kinds, flavor="hive") if sheet.partition else None
    texts = [field.name for field in fields if pa.types.is_string(field.type)]
    how = dataset.ParquetFileFormat().make_write_options(
        compression="zstd", use_dictionary=[name for name in texts if name not in sheet.partition]
    )
    dataset.write_dataset(
        pa.RecordBatchReader.from_batches(schema, batches),
        folder,
        format="parquet",
        partitioning=partitioning,
        existing_data_behavior="error",
        file_options=how,
        min_rows_per_group=_PARQUET_ROWS,
    )

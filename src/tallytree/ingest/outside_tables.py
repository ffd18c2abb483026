"""Small public tables that stand beside the data: rows of text, read as they were written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tallytree.errors import InputError


def public_rows(file: str | Path) -> pa.Table:
    """The rows of a CSV or Parquet file, every value as text without spaces around it.

    Examples
    --------
    >>> public_rows("missing.csv")
    Traceback (most recent call last):
    ...
    tallytree.errors.InputError: missing.csv cannot be read: there is no such file.
    """
    path = Path(file)
    if not path.exists():
        raise InputError(f"{path} cannot be read: there is no such file.")
    try:
        if path.suffix.lower() == ".parquet":
            rows = pq.read_table(path)
        else:
            names = pacsv.open_csv(path).schema.names
            types = dict.fromkeys(names, pa.string())
            how = pacsv.ConvertOptions(column_types=types, strings_can_be_null=False)
            rows = pacsv.read_csv(path, convert_options=how)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}.") from None
    columns = [
        pa.array([str(value).strip() for value in column.to_pylist()], pa.string())
        for column in rows.columns
    ]
    return pa.table(columns, names=[name.strip() for name in rows.column_names])

"""Arrow tables as tables of other libraries, which are imported when they are asked for."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tallytree.errors import RequestError


def pandas_frame(table: pa.Table) -> Any:
    """The table as a pandas DataFrame."""
    try:
        return table.to_pandas()
    except ImportError:
        raise RequestError("to_pandas() needs the library pandas: pip install pandas.") from None


def polars_frame(table: pa.Table) -> Any:
    """The table as a Polars DataFrame."""
    try:
        import polars
    except ImportError:
        raise RequestError("to_polars() needs the library polars: pip install polars.") from None
    return polars.from_arrow(table)

"""The data that commands read: where they lie, and with which engine they are read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tallytree.errors import RequestError
from tallytree.options.reading import EngineOptions, ReadOptions

if TYPE_CHECKING:
    from tallytree.model.confidential import ConfidentialCounts
    from tallytree.spark.counts import SparkCounts

SourceOrConfig = Annotated[
    str,
    typer.Argument(
        help="Parquet or CSV file or glob, a database URL with --table or --sql, or a CONFIG.toml "
        "that names everything."
    ),
]

Folder = Annotated[Path, typer.Argument(help="Folder of a release.", metavar="DIR")]


def read_data(
    source: str, options: ReadOptions, engine: EngineOptions
) -> ConfidentialCounts | SparkCounts:
    """Read and aggregate the data: in this process, or on the executors of a Spark cluster, where
    it then stays.
    """
    if engine.engine == "spark":
        from tallytree.spark.reading import read_with_spark

        # Said, once per use, of functions that take and give pandas tables, of which none is used.
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        return read_with_spark(source, options, master=engine.master)
    if engine.master is not None:
        raise RequestError("--master goes with --engine spark.")
    from tallytree.ingest.read import read

    return read(source, options)

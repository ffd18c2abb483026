"""Spark sessions, and what their Python workers need to find."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tallytree.errors
from tallytree.errors import MissingExtraError

PACKAGE_PARENT = str(Path(tallytree.errors.__file__).parent.parent)

# What is spilled or shuffled is encrypted on the executors' disks; what is fetched is about as
# large as what is released, so that its size needs no limit.
SETTINGS = {
    "spark.io.encryption.enabled": "true",
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


def spark_session(master: str | None = None, settings: dict[str, str] | None = None) -> Any:
    """A Spark session on a master (``local[*]`` by default, or that of ``spark-submit``), or the
    one that is running.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("The Spark engine", "spark") from None
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    builder = SparkSession.builder.appName("tallytree")
    if master is not None or "MASTER" not in os.environ:
        builder = builder.master(master or "local[*]")
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def cached(frame: Any) -> Iterator[Any]:
    """A frame that stays in the memory and on the disks of the executors inside the block, and not
    after it.
    """
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()

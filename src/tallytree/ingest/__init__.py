"""From any table to exact counts, aggregated inside the engine. Sole importer of ibis, duckdb and polars."""

from tallytree.ingest.read import read

__all__ = ["read"]

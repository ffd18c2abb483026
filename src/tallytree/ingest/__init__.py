"""From any table to exact counts, aggregated inside the engine. Sole importer of ibis, duckdb and
polars.
"""

from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.read import read
from tallytree.ingest.values import BinnedValues, read_points, read_values

__all__ = ["BinnedValues", "read", "read_degrees", "read_points", "read_values"]

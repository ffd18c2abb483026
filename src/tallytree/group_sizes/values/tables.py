"""The Arrow tables of counts by value and of statistics, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tallytree.errors import VerificationError
from tallytree.group_sizes.release.tables import counts_reader
from tallytree.group_sizes.values.statistics import RegionValues, statistic_names, statistics_of
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.lattice import Lattice
from tallytree.model.scale import ValueScale
from tallytree.releases.region_tables import attribute_columns, path_array

ERRORS = ("std_error", "low", "high")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of every region by every combination of values of attributes, all included.

    Attributes
    ----------
    names
        Of the statistics.
    value
        One row per region and slot, one column per statistic; NaN where there is none.
    errors
        ``std_error``, ``low`` and ``high`` of each, where the release was simulated for them.
    """

    names: tuple[str, ...]
    value: FloatArray
    errors: Mapping[str, FloatArray]

    def __post_init__(self) -> None:
        read_only(self.value)

    def of_row(self, row: int) -> list[list[object]]:
        """The statistics of one row: name, value, and errors where there are any; None where there
        is none.
        """
        columns = [self.value[row], *(self.errors[name][row] for name in self.errors)]
        return [
            [name, *(None if np.isnan(one) else float(one) for one in numbers)]
            for name, *numbers in zip(self.names, *columns)
        ]


def rows_of(counts: CountsBySize, scale: ValueScale) -> Iterator[RegionValues]:
    """The counts by value of each row of a table."""
    for start, stop in zip(counts.offsets[:-1].tolist(), counts.offsets[1:].tolist()):
        yield RegionValues("a region", scale, counts.size[start:stop], counts.count[start:stop])


def statistics_of_all(counts: CountsBySize, scale: ValueScale) -> FloatArray:
    """The statistics of each row of a table; one row each."""
    return np.array([statistics_of(region) for region in rows_of(counts, scale)])


def statistics_table(lattice: Lattice, statistics: Statistics) -> pa.Table:
    """Level, region, attributes, statistic, value, and errors: one row per statistic of each row."""
    n_rows, n_names = statistics.value.shape
    row = np.repeat(np.arange(n_rows), n_names)
    region = row // lattice.n_slots
    names = pa.DictionaryArray.from_arrays(
        np.tile(np.arange(n_names, dtype=np.int32), n_rows), pa.array(statistics.names)
    )
    values = attribute_columns(lattice, row % lattice.n_slots)
    paths = path_array(lattice.hierarchy).cast(pa.string())
    numbers = {"value": statistics.value, **statistics.errors}
    return pa.table(
        {
            "level": pa.array(lattice.hierarchy.level_of[region].astype(np.int32)),
            "region": pa.DictionaryArray.from_arrays(pa.array(region.astype(np.int32)), paths),
            **dict(zip(lattice.attributes.names, values)),
            "statistic": names,
            **{
                name: pa.array(each.ravel(), mask=np.isnan(each.ravel()))
                for name, each in numbers.items()
            },
        }
    )


def statistics_from_table(
    lattice: Lattice, scale: ValueScale, counts: CountsBySize, table: pa.Table
) -> Statistics:
    """The statistics that :func:`statistics_table` wrote; refuses those that do not follow from the
    counts.
    """
    names = statistic_names(scale)
    value = statistics_of_all(counts, scale)
    found: dict[str, FloatArray] = {}
    for name in ("value", *(name for name in ERRORS if name in table.column_names)):
        numbers = table[name].to_numpy(zero_copy_only=False).astype(np.float64)
        if numbers.size != value.size:
            raise VerificationError("statistics.parquet lacks statistics, or has too many.")
        found[name] = numbers.reshape(value.shape)
    own = Statistics(names, value, {name: each for name, each in found.items() if name in ERRORS})
    told = Statistics(names, found["value"], own.errors)
    same = statistics_table(lattice, told).equals(_unified(table))
    if not same or not np.allclose(found["value"], value, rtol=1e-9, atol=0, equal_nan=True):
        raise VerificationError("statistics.parquet does not follow from counts.parquet.")
    return told


def _unified(table: pa.Table) -> pa.Table:
    return table.combine_chunks()


def values_reader(
    lattice: Lattice, counts: CountsBySize, paths: pa.LargeStringArray, scale: ValueScale
) -> pa.RecordBatchReader:
    """Level, region, attributes, value, count: one row per value that a row of a table has."""
    steps = counts_reader(lattice, counts, paths)
    place = steps.schema.get_field_index("size")
    number = pa.array(scale.values(np.zeros(0, dtype=np.int64))).type
    schema = steps.schema.set(place, pa.field("value", number))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in steps:
            columns = list(batch.columns)
            columns[place] = pa.array(scale.values(columns[place].to_numpy()))
            yield pa.record_batch(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


def in_steps(parts: Iterator[pa.Table], scale: ValueScale) -> Iterator[pa.Table]:
    """Parts of the table that :func:`values_reader` wrote, with steps instead of values."""
    for part in parts:
        if part["value"].null_count:
            raise VerificationError("counts.parquet: column 'value' has missing values.")
        steps: IntArray = scale.steps(part["value"].to_numpy())
        place = part.schema.get_field_index("value")
        yield part.set_column(place, "size", pa.array(steps))

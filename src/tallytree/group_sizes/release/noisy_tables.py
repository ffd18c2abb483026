"""The Arrow tables of what was measured, and back; streamed as those of what is released are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.errors import VerificationError
from tallytree.group_sizes.noisy import (
    TOTALS,
    NoisyCounts,
    NoisyLevel,
    NoisyQuery,
    totals_by_level,
)
from tallytree.group_sizes.plan.plan import SIZE_LOOK, LevelPlan, Plan
from tallytree.group_sizes.release.tables import cells_table
from tallytree.model.arrays import IntArray, offsets_from_lengths
from tallytree.model.lattice import Lattice
from tallytree.releases.region_tables import (
    NAME,
    attribute_columns,
    names_of_rows,
    path_array,
    pieces,
    region_numbers,
    regions_of_rows,
    regions_reader,
    slots_from_table,
    with_attributes,
)

NOISY_SCHEMA = pa.schema(
    [
        ("level", pa.int32()),
        ("region", NAME),
        ("query", NAME),
        ("index", pa.int64()),
        ("value", pa.int64()),
    ]
)
# What each view asks, in the order of its answers. A question that happened to have no answers
# leaves no rows.
_QUERIES: dict[str, tuple[str, ...]] = {
    "naive": ("counts",),
    "sizes": ("sizes",),
    "cumulative": ("cumulative",),
    "hybrid": ("cumulative", "tail"),
    "chain": ("chain",),
    "staircase": ("blocks", "block ends", "tail"),
    "bins": ("bins",),
    "blocks": ("blocks",),
    "people": ("people",),
}


def noisy_reader(
    lattice: Lattice, noisy: NoisyCounts, paths: pa.LargeStringArray
) -> pa.RecordBatchReader:
    """Level, region, attributes, query, index, value: every raw measurement, in batches of bounded
    size.
    """
    schema = with_attributes(NOISY_SCHEMA, lattice)
    return pa.RecordBatchReader.from_batches(schema, _noisy_batches(lattice, noisy, paths, schema))


def _noisy_batches(
    lattice: Lattice, noisy: NoisyCounts, paths: pa.LargeStringArray, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for level in (*noisy.totals, *noisy.levels, *noisy.people):
        here = lattice.hierarchy.level_slice(level.level)
        level_paths = paths.slice(here.start, here.stop - here.start)
        slots = lattice.slots(lattice.attributes.chosen(level.by))

        def of_attributes(rows: IntArray, slots: IntArray = slots) -> list[pa.DictionaryArray]:
            return attribute_columns(lattice, slots[rows % len(slots)])

        yield from _level_batches(level, level_paths, schema, len(slots), of_attributes)


def _level_batches(
    level: NoisyLevel,
    paths: pa.LargeStringArray,
    schema: pa.Schema,
    n_slots: int = 1,
    of_attributes: Callable[[IntArray], list[pa.DictionaryArray]] = lambda rows: [],
) -> Iterator[pa.RecordBatch]:
    """Answers about consecutive regions of a level, each of which has so many rows; every batch is
    about one query.
    """
    for query in level.queries:
        for start, stop in pieces(len(query.values)):
            first, rows = regions_of_rows(query.offsets, start, stop)
            region = (first + rows) // n_slots
            name = pa.DictionaryArray.from_arrays(
                np.zeros(stop - start, dtype=np.int32), pa.array([query.name])
            )
            columns = [
                pa.array(np.full(stop - start, level.level, dtype=np.int32)),
                names_of_rows(paths, first // n_slots, region - first // n_slots),
                *of_attributes(first + rows),
                name,
                pa.array(np.arange(start, stop) - query.offsets[first + rows]),
                pa.array(query.values[start:stop]),
            ]
            yield pa.record_batch(columns, schema=schema)


def noisy_part(noisy: NoisyLevel, paths: pa.LargeStringArray) -> pa.RecordBatchReader:
    """Answers about consecutive regions of a level, whose paths are given: a part of the table of
    ``noisy_reader``.
    """
    return pa.RecordBatchReader.from_batches(
        NOISY_SCHEMA, _level_batches(noisy, paths, NOISY_SCHEMA)
    )


def noisy_from_part(
    batches: Iterable[pa.Table], plan: LevelPlan, paths: pa.LargeStringArray
) -> NoisyLevel:
    """The answers that ``noisy_part`` wrote, batch by batch, names of regions and queries as
    dictionaries.
    """
    assert plan.query is not None
    none = np.zeros(0, dtype=np.int64)
    found: dict[str, list[tuple[IntArray, IntArray]]] = {
        name: [(none, none)] for name in _QUERIES[plan.view]
    }
    for batch in batches:
        if len(batch):
            answers = found[batch["query"][0].as_py()]
            start = int(answers[-1][0][-1]) if len(answers[-1][0]) else 0
            answers.append(
                (region_numbers(paths, batch["region"], start), batch["value"].to_numpy())
            )
    queries = []
    for name, parts in found.items():
        region, values = (np.concatenate(columns) for columns in zip(*parts))
        offsets = offsets_from_lengths(np.bincount(region, minlength=len(paths)))
        queries.append(NoisyQuery(name, plan.query.noise, offsets, values))
    return NoisyLevel(plan.level, tuple(queries), plan.by)


def measured_tables(
    lattice: Lattice, noisy: NoisyCounts, counted: str = "groups"
) -> dict[str, pa.RecordBatchReader | pa.Table]:
    """What was measured, and the regions and their cells: enough to estimate the release."""
    paths = path_array(lattice.hierarchy)
    tables: dict[str, pa.RecordBatchReader | pa.Table] = {
        "noisy.parquet": noisy_reader(lattice, noisy, paths),
        "regions.parquet": regions_reader(lattice.hierarchy, noisy.n_groups, counted),
    }
    if noisy.cell_groups is not None:
        tables["cells.parquet"] = cells_table(lattice, noisy.cell_groups, paths)
    return tables


def noisy_from_table(
    lattice: Lattice, plan: Plan, table: pa.Table, n_groups: IntArray, cell_groups: IntArray | None
) -> NoisyCounts:
    """The measurements that ``noisy_reader`` wrote, with the noise that the plan says they have."""
    levels, people = (
        _noisy_levels(lattice, plan, table, tables) for tables in (plan.levels, plan.people)
    )
    return NoisyCounts(n_groups, levels, cell_groups, people, _noisy_totals(lattice, plan, table))


def _noisy_totals(lattice: Lattice, plan: Plan, table: pa.Table) -> tuple[NoisyLevel, ...]:
    """The noisy numbers of groups, one per region, in the order of the regions."""
    rows = table.filter(pc.equal(table["query"].cast(pa.string()), TOTALS))
    if not len(rows):
        return ()
    hierarchy = lattice.hierarchy
    values = np.empty(hierarchy.n_regions, dtype=np.int64)
    values[region_numbers(path_array(hierarchy), rows["region"])] = rows["value"].to_numpy()
    return totals_by_level(hierarchy, [query.noise for query in plan.group_totals], values)


def _noisy_levels(
    lattice: Lattice, plan: Plan, table: pa.Table, levels: Sequence[LevelPlan]
) -> tuple[NoisyLevel, ...]:
    level, value = (table[name].to_numpy() for name in ("level", "value"))
    query = np.array(table["query"].to_pylist(), dtype=object)
    region = region_numbers(path_array(lattice.hierarchy), table["region"])
    slot = slots_from_table(lattice, table)
    found = []
    for one in levels:
        here = lattice.hierarchy.level_slice(one.level)
        slots = lattice.slots(lattice.attributes.chosen(one.by))
        of_people = (query == "people") == (one.view == "people")
        rows = np.flatnonzero(
            (level == one.level) & np.isin(slot, slots) & of_people & (query != TOTALS)
        )
        names = list(
            dict.fromkeys(
                [*query[rows].tolist(), *(_QUERIES[one.view] if one.query is not None else ())]
            )
        )
        queries = []
        for name in names:
            looks = {"first look": plan.first_look, SIZE_LOOK: plan.size_look}
            noise = looks.get(name, one.query)
            if noise is None:
                raise VerificationError(
                    f"noisy.parquet has answers on {one.name}, where nothing was measured."
                )
            of_query = rows[query[rows] == name]
            place = (region[of_query] - here.start) * len(slots) + np.searchsorted(
                slots, slot[of_query]
            )
            lengths = np.bincount(place, minlength=(here.stop - here.start) * len(slots))
            values = value[of_query].astype(np.int64)
            queries.append(
                NoisyQuery(str(name), noise.noise, offsets_from_lengths(lengths), values)
            )
        found.append(NoisyLevel(one.level, tuple(queries), one.by))
    return tuple(found)

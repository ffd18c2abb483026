from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import VerificationError
from tallytree.group_sizes.release import tables
from tallytree.model.attributes import NO_ATTRIBUTES
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_leaves
from tallytree.model.lattice import Lattice
from tallytree.releases import region_tables

LEAVES = [("a", "x"), ("a", "y/z"), ("b", "x"), ("c%", "w"), ("c%", "z")]


def example(runs: Sequence[tuple[int, int, int]]) -> tuple[Hierarchy, CountsBySize]:
    hierarchy = hierarchy_from_leaves(["state", "county"], LEAVES, root="US")
    region, size, count = (
        (np.array(column, dtype=np.int64) for column in zip(*runs))
        if runs
        else (np.zeros(0, int),) * 3
    )
    return hierarchy, counts_from_runs(region, size, count, hierarchy.n_regions)


def bare(hierarchy: Hierarchy) -> Lattice:
    return Lattice(hierarchy, NO_ATTRIBUTES)


RUNS = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5), st.integers(1, 9)), max_size=20)


@settings(deadline=None)
@given(RUNS, st.integers(1, 7))
def test_batches_hold_the_same_rows_as_the_table(
    runs: list[tuple[int, int, int]], rows_per_batch: int
) -> None:
    hierarchy, counts = example(runs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region_tables, "ROWS_PER_BATCH", rows_per_batch)
        read = tables.counts_reader(
            bare(hierarchy), counts, tables.path_array(hierarchy)
        ).read_all()
    assert read.to_pylist() == tables.counts_table(bare(hierarchy), counts).to_pylist()
    back, _ = tables.counts_from_parts(bare(hierarchy), [read])
    assert [a.tolist() for a in (back.offsets, back.size, back.count)] == [
        a.tolist() for a in (counts.offsets, counts.size, counts.count)
    ]


def test_paths_are_those_of_the_hierarchy() -> None:
    hierarchy, _ = example([])
    assert tables.path_array(hierarchy).to_pylist() == hierarchy.paths.tolist()


@settings(deadline=None)
@given(RUNS, st.randoms())
def test_rows_in_any_order_are_found(runs: list[tuple[int, int, int]], random: object) -> None:
    hierarchy, counts = example(runs)
    rows = tables.counts_table(bare(hierarchy), counts).to_pylist()
    random.shuffle(rows)  # type: ignore[attr-defined]
    table = pa.Table.from_pylist(rows, tables.counts_table(bare(hierarchy), counts).schema)
    parts = [table.slice(0, 3), table.slice(3)]
    assert (
        tables.counts_from_parts(bare(hierarchy), parts)[0].count.tolist() == counts.count.tolist()
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"level": 1, "region": "US/d", "size": 1, "count": 1}, "does not have"),
        ({"level": 1, "region": None, "size": 1, "count": 1}, "without a region"),
        ({"level": 1, "region": "US/a", "size": 1, "count": 0}, "zero count"),
        ({"level": 1, "region": "US/a", "size": 1.5, "count": 1}, "not integers"),
    ],
)
def test_rows_that_cannot_be_are_refused(row: dict[str, object], message: str) -> None:
    hierarchy, _ = example([])
    with pytest.raises(VerificationError, match=message):
        tables.counts_from_parts(bare(hierarchy), [pa.Table.from_pylist([row])])


def test_missing_numbers_are_refused() -> None:
    hierarchy, _ = example([])
    table = pa.table({"region": ["US", "US"], "size": [1, None], "count": [1, 1]})
    with pytest.raises(VerificationError, match="missing values"):
        tables.counts_from_parts(bare(hierarchy), [table])

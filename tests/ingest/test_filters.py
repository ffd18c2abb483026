"""A filter keeps exactly the rows of one label, in every engine, before anything else; an empty
part is a table too.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from tallytree.errors import InputError, RequestError
from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.grids import read_grid
from tallytree.ingest.read import read
from tallytree.ingest.values import read_points, read_values
from tallytree.model.part import Part, part_from
from tallytree.options.maps import GridOptions
from tests.ingest.formats import FORMATS, in_format

STATES = [
    "Georgia",
    "georgia",
    "GA",
    "Georgia ",
    "Ohio",
    None,
    "Georgia",
    "Ohio",
    "Georgia",
    "Ohio",
]
PEOPLE = pa.table(
    {
        "household": ["a", "b", "b", "c", "d", "d", "a", "e", "f", "e"],
        "county": ["x", "x", "x", "y", "y", "y", "x", "y", "y", "y"],
        "state": STATES,
        "code": [1, 2, 2, 1, 3, None, 1, 3, 1, 3],
        "person": [1, 2, 3, 4, 5, 6, 1, 7, 8, 7],
        "age": [10.0, 20, 30, 40, 50, 60, 11, 70, 12, 80],
        "height": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9],
        "friend": ["b", "c", "a", "a", "a", "b", "c", "a", "a", "b"],
    }
)


def kept(column: str, label: object) -> pa.Table:
    """The rows of a part, the slow and obvious way."""
    rows = PEOPLE.to_pylist()
    return pa.Table.from_pylist([row for row in rows if row[column] == label], schema=PEOPLE.schema)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("label", ["Georgia", "georgia", "GA", "Georgia ", "Ohio"])
def test_reading_a_part_is_reading_the_table_of_its_rows(
    form: str, label: str, tmp_path: Path
) -> None:
    source, more = in_format(PEOPLE, form, tmp_path)
    shape: dict[str, Any] = {"group": "household", "levels": ["county"], "public": "groups"}
    part = read(source, where=f"state={label}", **shape, **more)
    alone = read(kept("state", label), **shape)
    assert part.public.part == Part("state", label)
    assert alone.public.part is None
    assert part.hierarchy == alone.hierarchy
    for name in ("offsets", "size", "count"):
        assert_array_equal(getattr(part.leaf_counts, name), getattr(alone.leaf_counts, name))
    assert_array_equal(part.n_groups, alone.n_groups)


def test_parts_are_disjoint_and_rows_without_a_label_are_in_none() -> None:
    total = sum(
        int(
            read_values(PEOPLE, "age", edges=[0, 100], where=("state", label)).settle("error").sum()
        )
        for label in sorted({state for state in STATES if state})
    )
    assert total == len(STATES) - 1


def test_numbers_are_compared_as_text() -> None:
    ages = read_values(PEOPLE, "age", edges=[0, 15, 100], where="code=1")
    assert ages.settle("error").tolist() == [3, 1]
    floats = PEOPLE.set_column(3, "code", PEOPLE["code"].cast(pa.float64()))
    assert read_values(floats, "age", edges=[0, 15, 100], where="code=1").settle(
        "error"
    ).tolist() == [3, 1]


def test_values_points_and_edges_of_a_part() -> None:
    georgia = kept("state", "Georgia")
    for table, where in ((PEOPLE, "state=Georgia"), (georgia, None)):
        people = {"where": where}
        assert read_values(table, "friend", categories=["a", "b", "c"], **people).settle(
            "error"
        ).tolist() == [1, 1, 1]
        points = read_points(table, ["age", "height"], [(0, 100), (1, 2)], [2, 2], **people)
        assert points.settle("error").tolist() == [[1, 2], [0, 0]]
        graph = read_degrees(table, "household", "friend", **people)
        assert_array_equal(graph.counts.size, [1, 3])  # the edges a-b, a-c and f-a
        assert_array_equal(graph.counts.count, [3, 1])
        sides = GridOptions(columns=["age", "height"], box=[(0, 100), (1, 2)], resolution=2)
        grid = read_grid(table, None, sides, part=part_from(where))
        assert grid.counts.tolist() == [[1, 2], [0, 0]]
        assert grid.public.part == (None if where is None else Part("state", "Georgia"))


def test_rows_of_a_unit_are_bounded_after_the_filter() -> None:
    shape: dict[str, Any] = {
        "group": "household",
        "unit": "person",
        "contributions": 1,
        "public": "regions",
    }
    part = read(PEOPLE, where="state=Ohio", **shape)
    alone = read(kept("state", "Ohio"), **shape)
    assert_array_equal(part.leaf_counts.size, alone.leaf_counts.size)
    assert_array_equal(part.leaf_counts.count, alone.leaf_counts.count)


@pytest.mark.parametrize("listed", [True, False])
def test_a_public_table_of_groups_is_filtered_where_it_can_be(listed: bool) -> None:
    groups = pa.table({"household": ["a", "f", "g", "h"], "county": ["x", "y", "y", "y"]})
    if listed:
        groups = groups.append_column("state", pa.array(["Georgia", "Georgia", "Georgia", "Ohio"]))
    counts = read(
        PEOPLE, group="household", levels=["county"], groups=groups, where="state=Georgia"
    )
    assert_array_equal(counts.n_groups, [1, 2] if listed else [1, 3])


def test_a_column_that_is_missing_is_named() -> None:
    for use in (
        lambda: read(PEOPLE, group="household", where="stat=Georgia", public="groups"),
        lambda: read_values(PEOPLE, "age", edges=[0, 1], where="stat=Georgia"),
        lambda: read_degrees(PEOPLE, "household", "friend", where="stat=Georgia"),
    ):
        with pytest.raises(InputError, match=r"no column 'stat'.*Did you mean 'state'"):
            use()


def test_an_empty_part_of_a_public_domain_is_a_table_like_any_other() -> None:
    where: dict[str, Any] = {"where": "state=Atlantis"}
    assert read_values(PEOPLE, "age", edges=[0, 50, 100], **where).settle("error").tolist() == [
        0,
        0,
    ]
    assert read_values(PEOPLE, "friend", categories=["a", "b"], **where).settle(
        "error"
    ).tolist() == [0, 0]
    assert read_points(PEOPLE, ["age", "height"], [(0, 9), (0, 9)], [1, 2], **where).settle(
        "error"
    ).tolist() == [[0, 0]]
    counties = pa.table({"county": ["x", "y"]})
    assert read(
        PEOPLE, group="household", levels=["county"], hierarchy=counties, **where
    ).n_groups.tolist() == [0, 0]
    assert read(PEOPLE, group="household", public="regions", **where).n_groups.tolist() == [0]
    nodes = pa.table({"household": ["a", "b"]})
    assert read_degrees(
        PEOPLE, "household", "friend", nodes=nodes, **where
    ).counts.count.tolist() == [2]
    for use in (
        lambda: read(PEOPLE, group="household", levels=["county"], **where, public="groups"),
        lambda: read_degrees(PEOPLE, "household", "friend", **where),
    ):
        with pytest.raises(InputError, match="has no rows"):
            use()


def test_only_tables_can_be_filtered() -> None:
    georgia = Part("state", "Georgia")
    for points, counts in ((None, [[1, 2], [3, 4]]), ([[0.1, 0.2]], None)):
        with pytest.raises(RequestError, match="goes with a table"):
            read_grid(points, counts, GridOptions(box=[(0, 1), (0, 1)]), part=georgia)

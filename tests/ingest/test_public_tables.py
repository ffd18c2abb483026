"""The public tables of groups and of regions."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import InputError
from tallytree.ingest import read
from tests.ingest.formats import SOME_FORMATS, in_format
from tests.reference.reading import counts_as_dict, sizes_of_groups

PEOPLE = pa.table(
    {"household": [1, 1, 2, 4], "state": ["01", "01", "01", "13"], "cars": [1, 0, 7, 2]}
)
GROUPS = pa.table({"household": [1, 2, 3, 4, 5, 6], "state": ["01", "01", "01", "13", "13", "36"]})
WITH_EMPTY = {
    ("01",): Counter({2: 1, 1: 1, 0: 1}),
    ("13",): Counter({1: 1, 0: 1}),
    ("36",): Counter({0: 1}),
}
REGIONS = pa.table({"state": ["13", "36", "01"], "division": ["South", "North", "South"]})


@pytest.mark.parametrize("form", ["arrow", "csv", "parquet"])
@pytest.mark.parametrize("column", ["groups", "how many"])
def test_totals_bring_empty_groups(form: str, column: str, tmp_path: Path) -> None:
    totals = pa.table({column: [2, 1, 3], "state": ["13", "36", "01"]})
    given = totals if form == "arrow" else in_format(totals, form, tmp_path / "totals")[0]
    counts = read(PEOPLE, group="household", levels=["state"], group_totals=given)
    assert counts_as_dict(counts) == WITH_EMPTY
    assert counts.public.groups_public
    assert (
        counts.public.groups_note
        == "the number of groups per region is public: a public table of group totals was given"
    )


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"state": ["01", "13"], "groups": [3, 0]}, "more groups than"),
        ({"state": ["01", "01", "13"], "groups": [1, 1, 2]}, "names a region twice"),
        ({"state": ["01", "13"], "groups": [3, -1]}, "at least 0"),
        ({"county": ["01", "13"], "groups": [3, 2]}, "state"),
        ({"state": ["01", "13"], "a": [3, 2], "b": [1, 1]}, "needs a column 'groups'"),
    ],
)
def test_totals_that_cannot_be_used_are_refused(totals: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(PEOPLE, group="household", levels=["state"], group_totals=pa.table(totals))


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_groups_table_brings_empty_groups(form: str, tmp_path: Path) -> None:
    source, options = in_format(PEOPLE, form, tmp_path / "people")
    groups = GROUPS if options else in_format(GROUPS, form, tmp_path / "groups")[0]
    counts = read(source, group="household", levels=["state"], groups=groups, **options)
    assert counts_as_dict(counts) == WITH_EMPTY
    assert counts.public.groups_public
    assert (
        counts.public.groups_note
        == "the number of groups per region is public: a public table of groups was given"
    )
    assert counts.n_groups.tolist() == [3, 2, 1]


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_groups_in_another_engine(form: str, tmp_path: Path) -> None:
    groups, _ = in_format(GROUPS, "ibis sqlite", tmp_path / "groups")
    source, options = in_format(PEOPLE, form, tmp_path / "people")
    assert (
        counts_as_dict(read(source, group="household", levels=["state"], groups=groups, **options))
        == WITH_EMPTY
    )


@pytest.mark.parametrize("form", ["parquet", "csv", "ibis duckdb", "sqlite url"])
def test_quantities_with_groups_in_another_engine(form: str, tmp_path: Path) -> None:
    groups, _ = in_format(GROUPS, "ibis sqlite", tmp_path / "groups")
    source, options = in_format(PEOPLE, form, tmp_path / "people")
    counts = read(
        source, group="household", quantity="cars", max_quantity=5, groups=groups, **options
    )
    assert counts_as_dict(counts) == {(): Counter({1: 1, 5: 1, 2: 1, 0: 3})}


def test_regions_may_come_from_the_groups_table_alone() -> None:
    people = PEOPLE.select(["household", "cars"])
    assert (
        counts_as_dict(read(people, group="household", levels=["state"], groups=GROUPS))
        == WITH_EMPTY
    )


def test_identifiers_of_different_types_are_compared_as_text() -> None:
    for kind in (pa.string(), pa.int8(), pa.float64(), pa.dictionary(pa.int32(), pa.string())):
        groups = GROUPS.set_column(
            0, "household", GROUPS["household"].cast(pa.string() if "dict" in str(kind) else kind)
        )
        if "dict" in str(kind):
            groups = groups.set_column(0, "household", groups["household"].dictionary_encode())
        assert (
            counts_as_dict(read(PEOPLE, group="household", levels=["state"], groups=groups))
            == WITH_EMPTY
        )


def test_people_in_no_group_at_all_leave_all_groups_empty() -> None:
    """With a public table of groups, whether there is any entity is itself confidential: no error
    may show it.
    """
    counts = read(PEOPLE.slice(0, 0), group="household", levels=["state"], groups=GROUPS)
    assert counts_as_dict(counts) == {
        ("01",): Counter({0: 3}),
        ("13",): Counter({0: 2}),
        ("36",): Counter({0: 1}),
    }


def test_groups_with_sizes_and_a_groups_table() -> None:
    sizes = pa.table({"household": [1, 4], "size": [9, 0]})
    counts = read(sizes, group="household", size="size", levels=["state"], groups=GROUPS)
    assert counts_as_dict(counts) == {
        ("01",): Counter({9: 1, 0: 2}),
        ("13",): Counter({0: 2}),
        ("36",): Counter({0: 1}),
    }


@pytest.mark.parametrize(
    "form", [form for form in SOME_FORMATS if not form.endswith(("url", "sql"))]
)
def test_hierarchy_table_brings_levels_and_empty_regions(form: str, tmp_path: Path) -> None:
    hierarchy, _ = in_format(REGIONS, form, tmp_path)
    counts = read(PEOPLE, group="household", levels=["state"], hierarchy=hierarchy, root="US")
    assert list(counts.hierarchy.paths) == [
        "US",
        "US/North",
        "US/South",
        "US/North/36",
        "US/South/01",
        "US/South/13",
    ]
    assert counts.hierarchy.level_names == ("US", "division", "state")
    assert counts.n_groups.tolist() == [0, 2, 1]
    assert counts.public.regions_note == "the regions are those of a public hierarchy table"


def test_hierarchy_table_with_labels_down_to_the_leaf() -> None:
    regions = pa.table(
        {"id": ["01", "13"], "division": ["South", "South"], "name": ["Alabama", "Georgia"]}
    )
    counts = read(PEOPLE, group="household", levels=["state"], hierarchy=regions)
    assert counts.hierarchy.level_names == ("total", "division", "name")
    assert list(counts.hierarchy.paths[2:]) == ["total/South/Alabama", "total/South/Georgia"]
    assert counts.n_groups.tolist() == [2, 1]


def test_hierarchy_and_groups_tables_together() -> None:
    counts = read(
        PEOPLE.select(["household"]),
        group="household",
        levels=["state"],
        groups=GROUPS,
        hierarchy=REGIONS,
        root="US",
    )
    assert counts_as_dict(counts) == {
        ("North", "36"): Counter({0: 1}),
        ("South", "01"): Counter({2: 1, 1: 1, 0: 1}),
        ("South", "13"): Counter({1: 1, 0: 1}),
    }


@settings(max_examples=20)
@given(
    st.dictionaries(
        st.integers(0, 9), st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=1
    ),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=20),
    st.booleans(),
)
def test_agrees_with_counting_in_python(
    regions: dict[int, tuple[str, int]], entities: list[tuple[int, int]], summed: bool
) -> None:
    groups = [{"g": g, "upper": upper, "lower": lower} for g, (upper, lower) in regions.items()]
    rows: list[dict[str, Any]] = [
        {"g": g, **({"quantity": q} if summed else {})} for g, q in entities if g in regions
    ]
    kinds = pa.schema({"g": pa.int64(), **({"quantity": pa.int32()} if summed else {})})
    counts = read(
        pa.Table.from_pylist(rows, schema=kinds),
        group="g",
        levels=["upper", "lower"],
        groups=pa.Table.from_pylist(groups),
        **({"quantity": "quantity", "max_quantity": 4} if summed else {}),
    )
    assert counts_as_dict(counts) == sizes_of_groups(rows, "g", ["upper", "lower"], groups)

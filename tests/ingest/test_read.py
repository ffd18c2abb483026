import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import RequestError
from tallytree.ingest import read
from tests.ingest.formats import FORMATS, SOME_FORMATS, in_format
from tests.reference.reading import counts_as_dict, sizes_of_groups

# County labels repeat across states, codes start with 0, and groups are named by integers.
PEOPLE = pa.table(
    {
        "name": [f"p{i}" for i in range(9)],
        "household": [7, 7, 7, 2, 5, 5, 11, 12, 12],
        "state": ["01", "01", "01", "01", "01", "01", "13", "13", "13"],
        "county": ["001", "001", "001", "001", "003", "003", "001", "001", "001"],
        "cars": [0, 2, 1, 5, 0, 0, 1, 9, 1],
    }
)
EXPECTED = {
    ("01", "001"): Counter({3: 1, 1: 1}),
    ("01", "003"): Counter({2: 1}),
    ("13", "001"): Counter({1: 1, 2: 1}),
}
LEVELS = ["state", "county"]


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_counts(form: str, tmp_path: Path) -> None:
    source, options = in_format(PEOPLE, form, tmp_path)
    counts = read(source, group="household", levels=LEVELS, root="US", **options, public="groups")
    assert counts_as_dict(counts) == EXPECTED
    assert list(counts.hierarchy.paths[:3]) == ["US", "US/01", "US/13"]
    assert counts.hierarchy.level_names == ("US", "state", "county")
    assert counts.n_groups.tolist() == [2, 1, 2]


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_quantities_are_summed_and_lowered_to_their_bound(form: str, tmp_path: Path) -> None:
    source, options = in_format(PEOPLE, form, tmp_path)
    counts = read(
        source,
        group="household",
        levels=["state"],
        quantity="cars",
        max_quantity=4,
        **options,
        public="groups",
    )
    assert counts_as_dict(counts) == {
        ("01",): Counter({3: 1, 4: 1, 0: 1}),
        ("13",): Counter({1: 1, 5: 1}),
    }
    assert counts.public.max_quantity == 4


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_rows_that_are_groups(form: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "state": ["01", "01", "13"],
            "size": [0, 4, 4],
            "name": ["a", "b", "c"],
            "x": [0.0, 4.0, 4.0],
        }
    )
    for column in ("size", "x"):
        source, options = in_format(table, form, tmp_path / column)
        counts = read(source, size=column, levels=["state"], **options, public="groups")
        assert counts_as_dict(counts) == {("01",): Counter({0: 1, 4: 1}), ("13",): Counter({4: 1})}


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_rows_that_are_counted_already(form: str, tmp_path: Path) -> None:
    table = pa.table(
        {"state": ["01", "01", "01", "13"], "size": [0, 4, 4, 1], "households": [10, 3, 4, 0]}
    )
    source, options = in_format(table, form, tmp_path)
    counts = read(
        source, size="size", count="households", levels=["state"], **options, public="groups"
    )
    assert counts_as_dict(counts) == {("01",): Counter({0: 10, 4: 7}), ("13",): Counter()}
    assert counts.n_groups.tolist() == [17, 0]


@pytest.mark.parametrize("leaves_at_once", [1, 2, 4])
def test_many_leaves_are_counted_in_passes(
    leaves_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallytree.ingest import counting

    table = pa.table(
        {"c": [*"edcbaedcba"], "size": [1, 2, 3, 4, 5, 1, 2, 0, 4, 6], "n": [*range(1, 11)]}
    )
    places = pa.table({"c": [*"abcdef"], "state": [*"xyxyxy"]})
    options = {"size": "size", "count": "n", "levels": ["c"], "public": "groups"}
    for more in ({}, {"hierarchy": places}):
        whole = counts_as_dict(read(table, **options, **more))
        with monkeypatch.context() as patch:
            patch.setattr(counting, "LEAVES_AT_ONCE", leaves_at_once)
            assert counts_as_dict(read(table, **options, **more)) == whole


def test_without_levels_there_is_the_root_alone() -> None:
    counts = read(PEOPLE, group="household", public="groups")
    assert counts.hierarchy.n_regions == 1
    assert counts_as_dict(counts) == {(): Counter({1: 2, 2: 2, 3: 1})}


def test_nothing_is_shown_and_what_is_assumed_is_said() -> None:
    counts = read(PEOPLE, group="household", levels=LEVELS, public="groups")
    assert (
        repr(counts)
        == "ConfidentialCounts(Hierarchy(total: 1, state: 2, county: 3), values hidden)"
    )
    assert counts.public.groups_public
    assert counts.public.groups_note == (
        "the number of groups per region was read off the data and declared public "
        '(public="groups")'
    )
    assert counts.public.regions_note == "the regions were read off the data and declared public"
    assert counts.remarks == (
        "Some labels of level 'county' occur below more than one region of level 'state'; they "
        "count as different "
        "regions, told apart by their paths.",
    )
    private = read(PEOPLE, group="household", levels=LEVELS, public="regions")
    assert not private.public.groups_public
    assert "confidential" in private.public.groups_note


@pytest.mark.parametrize(
    ("column", "labels"),
    [
        (pa.array([1001, 1001, 2, 30]), ["1001", "2", "30"]),
        (pa.array([1001.0, 1001.0, 2.0, 30.0]), ["1001", "2", "30"]),
        (pa.array(["é/a", "é/a", "Z", "a"]), ["Z", "a", "é/a"]),
        (pa.array([True, True, False, False]), ["false", "true"]),
    ],
)
def test_labels_are_the_text_of_the_values_in_order(column: pa.Array, labels: list[str]) -> None:
    counts = read(
        pa.table({"g": [1, 1, 2, 3], "region": column}), group="g", levels="region", public="groups"
    )
    assert list(counts.hierarchy.labels[1:]) == labels


HASHES = {
    "half hash": None,
    "hash": lambda above, label: (above * 1000 + label.cast("uint64")).cast("uint64"),
    "labels": lambda above, label: above,
}


@pytest.mark.parametrize("key", HASHES)
def test_leaves_whose_hashes_agree_are_still_told_apart(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallytree.ingest import counting, group_sizes

    used = []
    with_keys = counting.with_keys
    monkeypatch.setattr(
        counting, "with_keys", lambda rows, key: used.append(key) or with_keys(rows, key)
    )
    if HASHES[key] is not None:
        monkeypatch.setattr(group_sizes, "_hash_with", lambda label_type, *engine: HASHES[key])
    assert (
        counts_as_dict(read(PEOPLE, group="household", levels=LEVELS, public="groups")) == EXPECTED
    )
    assert used == [key]


entities = st.lists(
    st.tuples(
        st.integers(0, 6), st.integers(0, 3), st.text("ab/%é", max_size=2), st.integers(0, 5)
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=20)
@given(entities, st.booleans())
def test_agrees_with_counting_in_python(
    drawn: list[tuple[int, int, str, int]], summed: bool
) -> None:
    rows = [
        {
            "g": f"{number}-{upper}-{lower}",
            "upper": upper,
            "lower": lower,
            **({"quantity": cars} if summed else {}),
        }
        for number, upper, lower, cars in drawn
    ]
    options = {"quantity": "quantity", "max_quantity": 5} if summed else {}
    counts = read(
        pa.Table.from_pylist(rows), group="g", levels=["upper", "lower"], **options, public="groups"
    )
    expected = sizes_of_groups(rows, "g", ["upper", "lower"])
    assert counts_as_dict(counts) == expected
    assert list(counts_as_dict(counts)) == sorted(expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Say what a row is"),
        ({"group": "household", "levels": ["state", "state"]}, "'state' is given twice"),
        ({"group": "household", "size": "cars", "quantity": "name"}, "exclude each other"),
        ({"group": "household", "count": "cars"}, "count= needs size="),
        ({"group": "household", "size": "cars", "count": "name"}, "exclude each other"),
        ({"group": "household", "quantity": "cars"}, "needs max_quantity="),
        ({"group": "household", "quantity": "cars", "max_quantity": 0}, "max_quantity must be"),
        (
            {"group": "household", "quantity": "cars", "max_quantity": 1.5},
            "max_quantity takes a whole number",
        ),
        ({"group": "household", "max_quantity": 3}, "goes with quantity="),
        ({"size": "cars", "groups": PEOPLE}, "groups= needs group="),
        ({"group": "household", "groups": PEOPLE, "public": "regions"}, "contradicts"),
        ({"group": "household", "groups": PEOPLE, "group_totals": PEOPLE}, "give one of them"),
        ({"group": "household", "levels": LEVELS}, "Say what is public"),
        ({"group": "household", "public": "everything"}, "public .everything. is not known"),
        ({"group": "household", "levels": LEVELS, "hierarchy": PEOPLE}, "exactly one column"),
        ({"group": "household", "root": "", "public": "groups"}, "root="),
        ({"group": 3}, "group takes a text"),
        ({"group": "household", "table": "people", "public": "groups"}, "database URL"),
    ],
)
def test_requests_that_make_no_sense(options: dict[str, object], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read(PEOPLE, **options)


def test_importing_loads_no_engine() -> None:
    import subprocess

    code = (
        "import sys, tallytree; heavy = ('ibis', 'duckdb', 'pandas', 'polars');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )
    assert done.stdout.strip() == "[]"

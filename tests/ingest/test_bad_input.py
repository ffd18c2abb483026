"""Each kind of bad input gets one sentence that names the column and shows no value."""

import gzip
import re
from pathlib import Path
from typing import Any

import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from tallytree.errors import InputError, RequestError
from tallytree.ingest import read
from tallytree.ingest.csv_files import read_to_the_end
from tests.ingest.formats import SOME_FORMATS, in_format

SECRETS = ("SECRETGROUP", "SECRETREGION", "987654")
GOOD = {"g": ["a", "a", "b"], "state": ["GA", "GA", "NY"], "n": [1, 2, 3]}


def refusal(source: Any, **options: Any) -> str:
    """The message of the refusal: one paragraph, without confidential values, also not in what
    caused it.
    """
    options = (
        options
        if options.keys() & {"groups", "public", "hierarchy"}
        else {**options, "public": "groups"}
    )
    with pytest.raises(InputError) as caught:
        read(source, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert not any(secret in message for secret in SECRETS)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    return message


def table(**columns: Any) -> pa.Table:
    return pa.table({**GOOD, **columns})


def test_missing_column_lists_those_there_are_and_guesses() -> None:
    message = refusal(table(), group="g", levels=["State"])
    assert (
        message
        == "the Arrow table has no column 'State'; its columns are 'g', 'state', 'n'. Did you mean "
        "'state'?"
    )


FIRST_ROWS = (
    "4711,Jane Doe,HIV+,{}\n4712,John Roe,none,{}\n",
    "SECRETNAME,Ohio,positive,{}\nJonas,Ohio,negative,{}\n",
    "SECRETNAME,Jane,SECRETNAME,{}\n",
    "1987-05-04,SECRETNAME,,{}\n",
    "jane@example.org;SECRETNAME;f;{}\n",
)


@pytest.mark.parametrize("rows", FIRST_ROWS)
@pytest.mark.parametrize(
    "options",
    [
        {"group": "household", "levels": ["state"]},
        {"group": "household", "levels": ["ohio"]},
        {"group": "4712", "public": "regions"},
        {"group": "household", "where": "state=SECRET"},
    ],
)
def test_a_first_row_of_values_is_not_shown(
    rows: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """A file without a line of names: what it holds instead are values."""
    file = tmp_path / "people.csv"
    file.write_text(rows.format("SECRETGROUP", "SECRETGROUP"))
    message = refusal(str(file), **options)
    assert "looks like data" in message
    values = {value for value in re.split("[,;\n]", rows) if len(value) > 1} - {
        "{}",
        options["group"],
    }
    assert not [value for value in values if value in message]


def test_names_of_a_table_that_look_like_values_are_not_shown() -> None:
    """A file without a line of names, as pandas reads it."""
    people = pd.DataFrame({"4711": [4712], "Jane Doe": ["John Roe"], "SECRETGROUP": ["b"]})
    assert "looks like data" in refusal(people, group="household", levels=["state"])
    assert "its columns are '0', '1'" in refusal(pd.DataFrame([[1, 2]]), group="household")


def test_names_that_are_names_are_shown_whatever_they_look_like(tmp_path: Path) -> None:
    """One column that is there tells that the first row holds names."""
    file = tmp_path / "people.csv"
    file.write_text("household,Home State,2020\n1,Ohio,3\n")
    assert "its columns are 'household', 'Home State', '2020'" in refusal(
        str(file), group="household", levels=["state"]
    )
    assert "Home State" not in refusal(str(file), group="homes", levels=["state"])


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_missing_column_in_every_format(form: str, tmp_path: Path) -> None:
    source, options = in_format(table(), form, tmp_path)
    assert "has no column 'household'; its columns are 'g', 'state', 'n'" in refusal(
        source, group="household", **options
    )


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_null_group(form: str, tmp_path: Path) -> None:
    source, options = in_format(table(g=["a", None, "SECRETGROUP"]), form, tmp_path)
    assert "Column 'g' of" in (message := refusal(source, group="g", levels=["state"], **options))
    assert "missing values" in message


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_null_region(form: str, tmp_path: Path) -> None:
    source, options = in_format(table(state=["GA", None, "SECRETREGION"]), form, tmp_path)
    assert "Column 'state' of" in (
        message := refusal(source, group="g", levels=["state"], **options)
    )
    assert "missing values" in message


def test_nan_group_and_region() -> None:
    assert "missing" in refusal(
        pd.DataFrame({"g": [1.0, None], "r": [1, 2]}), group="g", levels="r"
    )
    assert "missing" in refusal(
        pl.DataFrame({"g": [1.0, float("nan")], "r": [1, 2]}), group="g", levels="r"
    )
    assert "missing" in refusal(
        pl.DataFrame({"g": [1, 2], "r": [1.0, float("nan")]}), group="g", levels="r"
    )
    assert "missing" in refusal(pl.DataFrame({"g": [1, 2], "r": [1.0, 1.5]}), group="g", levels="r")


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_group_in_two_leaves(form: str, tmp_path: Path) -> None:
    rows = table(g=["SECRETGROUP", "SECRETGROUP", "b"], state=["GA", "SECRETREGION", "NY"])
    source, options = in_format(rows, form, tmp_path)
    message = refusal(source, group="g", levels=["state"], **options)
    assert "A group in column 'g' of" in message
    assert "lies in two leaf regions (by 'state')" in message


def test_group_in_two_leaves_that_differ_in_one_level_only() -> None:
    rows = {"g": ["SECRETGROUP"] * 2, "state": ["GA", "NY"], "county": ["1", "1"]}
    assert "two leaf regions" in refusal(pa.table(rows), group="g", levels=["state", "county"])
    rows = {"g": ["SECRETGROUP"] * 2, "state": ["1", "2"], "county": ["2", "1"]}
    assert "two leaf regions" in refusal(pa.table(rows), group="g", levels=["state", "county"])


BAD_NUMBERS = [
    (pa.array([1, -987654, 2]), "negative values"),
    (pa.array([1.0, 2.0, 987654.5]), "fractional values"),
    (pa.array([1.0, 2.0, float("nan")]), "missing values"),
    (pa.array([1, None, 987654]), "missing values"),
    (pa.array(["1", "987654x", "3"]), "not a number"),
    (pa.array(["1", "987654.5", "3"]), "fractional"),
    (pa.array(["1", "nan", "3"]), "not a number"),
    (pa.array(["1", "-987654", "3"]), "negative"),
    (pa.array(["1", None, "987654"]), "missing values"),
    (pa.array([[1], [987654], [3]]), "has type"),
    (pa.array([True, False, True]), "has type"),
]


@pytest.mark.parametrize(("numbers", "what"), BAD_NUMBERS)
def test_bad_sizes_counts_and_quantities(numbers: pa.Array, what: str) -> None:
    rows = table(number=numbers)
    for options in (
        {"size": "number"},
        {"size": "number", "group": "state"},
        {"size": "n", "count": "number"},
        {"group": "g", "quantity": "number", "max_quantity": 9},
        {
            "group": "g",
            "quantity": "number",
            "max_quantity": 9,
            "groups": pa.table({"g": ["a", "b"]}),
        },
    ):
        message = refusal(rows, **options)
        if "listed twice" not in message:
            assert "Column 'number' of the Arrow table" in message
            assert what in message


@pytest.mark.parametrize("form", ["csv", "parquet", "ibis sqlite", "pandas", "polars"])
def test_bad_sizes_in_files(form: str, tmp_path: Path) -> None:
    source, options = in_format(table(n=[1, -987654, 3]), form, tmp_path)
    assert "Column 'n' of" in (message := refusal(source, size="n", **options))
    assert "negative values" in message


@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("g", {"group": "g", "levels": "state"}),
        ("state", {"group": "g", "levels": "state"}),
        ("n", {"size": "n", "levels": "state"}),
        ("n", {"group": "g", "quantity": "n", "max_quantity": 9, "levels": "state"}),
    ],
)
def test_nan_that_the_statistics_of_a_file_leave_out(
    column: str, options: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "rows.parquet"
    rows = {
        "g": [1, 2, 3],
        "state": [1, 1, 2],
        "n": [1, 2, 1],
        column: pa.array([1.0, float("nan"), 2.0]),
    }
    pyarrow.parquet.write_table(pa.table(rows), file)
    assert f"Column '{column}' of {file} has missing values" in refusal(file, **options)


def test_text_late_in_a_size_column_of_a_csv(tmp_path: Path) -> None:
    file = tmp_path / "sizes.csv"
    file.write_text("size\n" + "1\n" * 50_000 + "SECRETGROUP\n")
    assert "text that is not a number" in refusal(file, size="size")


def test_group_listed_twice_where_rows_are_groups() -> None:
    assert "listed twice in column 'g' of the Arrow table" in refusal(table(), group="g", size="n")


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_group_that_the_groups_table_lacks(form: str, tmp_path: Path) -> None:
    rows = table(g=["a", "a", "SECRETGROUP"])
    source, options = in_format(rows, form, tmp_path)
    groups = pa.table({"g": ["a", "b"], "state": ["GA", "NY"]})
    message = refusal(source, group="g", levels=["state"], groups=groups, **options)
    assert "is missing from the Arrow table" in message


def test_rows_and_groups_table_must_agree_on_the_region() -> None:
    groups = pa.table({"g": ["a", "b"], "state": ["GA", "GA"]})
    assert "two leaf regions" in refusal(table(), group="g", levels=["state"], groups=groups)
    incomplete = table(state=["GA", "GA", None])
    assert "Column 'state' of the Arrow table has missing values" in refusal(
        incomplete, group="g", levels=["state"], groups=groups
    )


def test_bad_groups_table() -> None:
    options = {"group": "g", "levels": ["state"]}
    twice = pa.table({"g": ["a", "b", "b"], "state": ["GA", "NY", "NY"]})
    assert "listed twice in column 'g' of the pandas table" in refusal(
        table(), groups=twice.to_pandas(), **options
    )
    no_region = pa.table({"g": ["a", "b"], "state": ["GA", None]})
    assert "Column 'state' of the Arrow table has missing values" in refusal(
        table(), groups=no_region, **options
    )
    no_group = pa.table({"g": ["a", None], "state": ["GA", "NY"]})
    assert "missing values" in refusal(table(), groups=no_group, **options)
    assert "has no rows" in refusal(table(), groups=twice.slice(0, 0), **options)
    assert "has no column 'state'" in refusal(table(), groups=twice.select(["g"]), **options)


def test_bad_hierarchy_table() -> None:
    options = {"group": "g", "levels": ["state"]}
    two_parents = pa.table({"state": ["GA", "NY", "GA"], "division": ["S", "N", "N"]})
    assert "names a region twice, so that it would lie under two parents" in refusal(
        table(), hierarchy=two_parents, **options
    )
    no_label = pa.table({"state": ["GA", "NY"], "division": ["S", None]})
    assert "Column 'division' of the Arrow table has missing values" in refusal(
        table(), hierarchy=no_label, **options
    )
    lacking = pa.table({"state": ["GA"], "division": ["S"]})
    secret = table(state=["GA", "GA", "SECRETREGION"])
    assert "regions that the Arrow table lacks" in refusal(secret, hierarchy=lacking, **options)
    assert "has no rows" in refusal(table(), hierarchy=lacking.slice(0, 0), **options)


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_an_empty_table_is_a_table_unless_it_names_the_regions(form: str, tmp_path: Path) -> None:
    source, more = in_format(table().slice(0, 0), form, tmp_path)
    assert "has no rows, so that no region is known" in refusal(
        source, group="g", levels=["state"], **more
    )
    for options in ({"group": "g"}, {"size": "n"}):
        for public in ("groups", "regions"):
            source, more = in_format(
                table().slice(0, 0), form, tmp_path / "-".join(options) / public
            )
            counts = read(source, **options, **more, public=public)
            assert (counts.n_groups.tolist(), counts.leaf_counts.size.tolist()) == ([0], [])


def test_files_that_are_not_there(tmp_path: Path) -> None:
    assert f"There is no file {tmp_path}/people.parquet" in refusal(
        tmp_path / "people.parquet", group="g"
    )
    assert "There is no file" in refusal(str(tmp_path / "*.csv"), group="g")
    assert "There is no file" in refusal(tmp_path, group="g")
    assert "There is no duckdb database" in refusal(
        f"duckdb://{tmp_path}/none.duckdb", group="g", table="t"
    )
    assert "There is no sqlite database" in refusal(
        f"sqlite://{tmp_path}/none.db", group="g", table="t"
    )


def test_damaged_parquet(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    pa.parquet.write_table(
        pa.table({"g": list(range(20_000)), "state": ["SECRETREGION"] * 20_000}), whole
    )
    content = whole.read_bytes()
    for name, damaged in {
        "cut": content[: len(content) // 2],
        "empty": b"",
        "text": b"g,state\n1,2\n",
        "body": content[:200] + bytes(2000) + content[2200:],
    }.items():
        file = tmp_path / f"{name}.parquet"
        file.write_bytes(damaged)
        assert f"{name}.parquet cannot be read" in refusal(file, group="g", levels="state")


def test_damaged_csv(tmp_path: Path) -> None:
    text = "g,state,county\n" + "1,GA,SECRETREGION\n" * 9000
    damaged = {
        "cut.csv": text[:-15].encode(),
        "cut.csv.gz": gzip.compress(text.encode())[:-30],
        "quote.csv": (text + '2,"GA,x\n' + "1,GA,SECRETREGION\n" * 9000).encode(),
        "wide.csv": (text + "2,GA,x,y\n").encode(),
        "binary.csv": text.encode() + bytes(range(128, 256)),
    }
    for name, content in damaged.items():
        (tmp_path / name).write_bytes(content)
        assert f"{name} cannot be read" in refusal(
            tmp_path / name, group="g", levels=["state", "county"]
        )
    (tmp_path / "none.csv").write_bytes(b"")
    assert "none.csv is empty" in refusal(tmp_path / "none.csv", group="g")


def test_compressed_files_are_read_to_the_end(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.csv.gz", tmp_path / "cut.csv.gz"
    content = gzip.compress(b"g,state\n" + b"1,GA\n" * 50_000)
    whole.write_bytes(content)
    cut.write_bytes(content[:-9])
    read_to_the_end([str(whole)])
    with pytest.raises(OSError):  # noqa: PT011  (its text is Arrow's own)
        read_to_the_end([str(whole), str(cut)])


def test_things_that_are_no_tables(tmp_path: Path) -> None:
    assert "Cannot read a builtins.int; give a Parquet or CSV file" in refusal(3, group="g")
    assert "Cannot read a pandas.Series" in refusal(pd.Series([1]), group="g")
    assert "Cannot read a pyarrow.Int64Array" in refusal(pa.array([1]), group="g")
    assert "Cannot tell what people.xlsx is" in refusal("people.xlsx", group="g")


def test_columns_that_cannot_name_anything() -> None:
    lists = table(state=[["SECRETREGION"], ["x"], ["y"]])
    assert "Column 'state' of the Arrow table has type array<string>" in refusal(
        lists, group="g", levels=["state"]
    )
    assert "several columns called 'g'" in refusal(
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["g", "g"]), group="g"
    )
    assert "several columns called 'g'" in refusal(
        pd.DataFrame([[1, 2]], columns=["g", "g"]), group="g"
    )


@pytest.mark.parametrize("form", ["arrow", "pandas"])
def test_columns_that_differ_by_capital_letters(form: str) -> None:
    """One of them is read; both at once are one for the engine."""
    both: Any = table(State=["x", "x", "y"])
    both = both.to_pandas() if form == "pandas" else both
    alike = "The columns 'state' and 'State' of the .* differ by capital letters alone"
    assert re.search(alike, refusal(both, group="g", levels=["state", "State"]))
    assert re.search(alike, refusal(both, group="g", levels=["state"], where="State=x"))
    counts = read(both, group="g", levels=["State"], public="groups")
    assert list(counts.hierarchy.paths) == ["total", "total/x", "total/y"]


def test_values_that_no_arrow_type_holds() -> None:
    mixed = pd.DataFrame({"g": [1, "SECRETGROUP", 2], "n": [1, 2, 3]})
    assert "the pandas table holds values" in refusal(mixed, group="g")


def test_databases(tmp_path: Path) -> None:
    source, _ = in_format(table(), "duckdb url", tmp_path)
    assert "has no table 'persons'; its tables are 'people'" in refusal(
        source, group="g", table="persons"
    )
    assert "the query on the duckdb database" in refusal(
        source, group="g", sql="SELECT SECRETGROUP FROM people"
    )
    source, _ = in_format(table(), "sqlite url", tmp_path)
    assert "has no table 'persons'; its tables are 'people'" in refusal(
        source, group="g", table="persons"
    )
    assert "the query on the sqlite database" in refusal(
        source, group="g", sql="SELECT nothing FROM people"
    )
    with pytest.raises(RequestError, match="either table="):
        read(source, group="g", public="groups")
    address = "postgres://user:987654@127.0.0.1:1/base"
    assert "Cannot connect to the postgres database" in refusal(address, group="g", table="t")
    (tmp_path / "text.duckdb").write_text("SECRETGROUP " * 1000)
    assert "cannot be read" in refusal(f"duckdb://{tmp_path}/text.duckdb", group="g", table="t")


def test_a_failing_engine_is_not_quoted() -> None:
    failing = ibis.memtable(table(g=["a", "b", "SECRETGROUP"]))
    failing = failing.mutate(g=failing.g.cast("int64"))
    assert "do not fit the type of their column" in refusal(failing, group="g")

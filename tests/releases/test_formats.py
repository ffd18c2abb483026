"""Every export, read back by the library that its users have, is the release again."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kinds.table import KINDS
from tallytree.releases.export.excel import write_excel
from tallytree.releases.export.sdmx import STATUS_CODES, identifiers_of
from tallytree.releases.export.sheet import Codes, Column, Sheet
from tallytree.releases.kind import No
from tests.kinds.test_kinds import MAKERS

HOUSEHOLDS = pa.table(
    {
        "household": [1, 1, 2, 3, 3, 3, 4, 5, 5],
        "state": ["01"] * 6 + ["0 1"] * 3,
        "county": ["01001"] * 3 + ["01/2"] * 3 + ['=1, "a"'] * 3,
    }
)


@cache
def with_errors() -> Any:
    """A release whose labels are codes with zeros in front, and worse, and whose counts have
    intervals.
    """
    counts = tt.read(HOUSEHOLDS, group="household", levels=["state", "county"], public="groups")
    return tt.with_intervals(tt.release(counts, epsilon=1, insecure_seed=1), copies=5)


def by_week() -> Any:
    return tt.stream(counts=[3, 1, 4], start="2025-01-06", every="week", epsilon=1, insecure_seed=1)


@cache
def with_people() -> Any:
    """A release with an attribute of groups and a class of people, whose table lies beside that of
    sizes.
    """
    ages = pa.array(
        ["child", "adult", "adult", "child", "child", "adult", "adult", "adult", "0 to 4"]
    )
    tenure = pa.array(["own"] * 3 + ["rent"] * 3 + ["own"] * 3)
    table = HOUSEHOLDS.append_column("age", ages).append_column("tenure", tenure)
    counts = tt.read(
        table,
        group="household",
        levels=["state", "county"],
        by={"tenure": ["own", "rent"]},
        people={"age": ["child", "adult", "0 to 4"]},
        people_by=["tenure"],
        public="cells",
    )
    return tt.release(counts, epsilon=20, insecure_seed=1)


MADE: dict[str, Any] = {
    **MAKERS,
    "with intervals": with_errors,
    "by week": by_week,
    "people": with_people,
}
KIND_OF = {name: name for name in MAKERS} | {"by week": "stream"}


@pytest.fixture(
    scope="module",
    params=[
        name for name in MADE if not isinstance(KINDS[KIND_OF.get(name, "group-sizes")].sheet, No)
    ],
)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def release(case: str) -> Any:
    return MADE[case]()


@pytest.fixture(scope="module")
def sheet(case: str, release: Any) -> Sheet:
    found: Sheet = KINDS[release.kind].verb("sheet")(release)
    return found.beside[0] if case == "people" else found


def place_of(folder: Path, name: str, sheet: Sheet) -> Path:
    """Where the export of a table is found that was asked for under a name."""
    stem, dot, ending = name.partition(".")
    return folder / (name if sheet.name != "people" else f"{stem}-{sheet.name}{dot}{ending}")


def rows_of(sheet: Sheet) -> list[dict[str, Any]]:
    return sheet.table.to_pylist()


def same(found: Any, told: Any, *, rel: float = 0.0) -> bool:
    """Whether a value that was read is the one that was written; an empty cell is a null."""
    if told is None or (isinstance(told, float) and np.isnan(told)):
        return found is None or found == "" or found != found
    return (
        type(told)(found) == told
        if isinstance(told, str | int)
        else abs(float(found) - told) <= rel * abs(told)
    )


def test_a_sheet_holds_the_released_numbers(release: Any, sheet: Sheet) -> None:
    if sheet.name == "people":
        margins = [release.people.table(by) for by in ([], ["tenure"], ["age"], ["tenure", "age"])]
        table = pa.concat_tables(margins, promote_options="default")
        told = {
            (row["region"], row["tenure"] or "all", row["age"] or "all"): row["count"]
            for row in table.to_pylist()
        }
        assert {
            (row["region"], row["tenure"], row["age"]): row["count"] for row in rows_of(sheet)
        } == told
        return
    if sheet.name == "statistics":
        table = release.table()
        sums = table.append_column("sum", pc.multiply(table["value"], table["count"]))
        told = sums.group_by("region").aggregate([("count", "sum"), ("sum", "sum")]).to_pylist()
        for name, column in (("rows", "count_sum"), ("sum", "sum_sum")):
            assert {
                row["region"]: row["value"] for row in rows_of(sheet) if row["statistic"] == name
            } == {row["region"]: row[column] for row in told}
        return
    if sheet.title.startswith("Table of"):
        margins = [release.table(by=by) for by in ([], ["household"])]
        told = pa.concat_tables(margins, promote_options="default").to_pylist()
        assert {(row["region"], row["household"]): row["count"] for row in rows_of(sheet)} == {
            (row["region"], row["household"] or "all"): row["count"] for row in told
        }
        return
    table = release.table()
    if "leaf" in table.column_names:
        table = table.filter(table["leaf"])
    assert sheet.table["count"].to_pylist() == table["count"].to_pylist()
    keys = [tuple(row[key] for key in sheet.names("key")) for row in rows_of(sheet)]
    assert len(set(keys)) == len(keys)


def test_csv_by_pandas(release: Any, sheet: Sheet, tmp_path: Path) -> None:
    import pandas as pd

    tt.export(release, out=str(tmp_path / "counts.csv"))
    texts = {
        name: str
        for name in sheet.table.column_names
        if not pa.types.is_primitive(sheet.table.schema.field(name).type)
    }
    found = pd.read_csv(
        place_of(tmp_path, "counts.csv", sheet), dtype=texts, keep_default_na=False, na_values={}
    )
    assert list(found.columns) == sheet.table.column_names
    for row, told in zip(found.to_dict("records"), rows_of(sheet), strict=True):
        assert all(same(row[name], no_formula(told[name])) for name in told), (row, told)


def no_formula(told: Any) -> Any:
    """A text as it stands in a file that spreadsheets open, where no label is a negative number."""
    return f"'{told}" if isinstance(told, str) and told[:1] in {*"=+-@"} else told


def test_excel_by_openpyxl(release: Any, sheet: Sheet, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    tt.export(release, out=str(tmp_path / "counts.xlsx"))
    book = load_workbook(tmp_path / "counts.xlsx")
    tables = {"people": ["counts", "people"], "statistics": ["statistics", "counts"]}.get(
        "people" if release is with_people() else sheet.name, ["counts"]
    )
    assert book.sheetnames == [*tables, "about"]  # a workbook keeps 15 digits
    head, *rows = [list(row) for row in book[sheet.name].iter_rows()]
    assert [cell.value for cell in head] == sheet.table.column_names
    for row, told in zip(rows, rows_of(sheet), strict=True):
        assert all(
            same(cell.value, value, rel=1e-14)
            for cell, value in zip(row, told.values(), strict=True)
        )
        assert not any(
            cell.data_type == "f" for cell in row
        )  # a label that begins with = is no formula
    assert sheet.title in [row[0].value for row in book["about"].iter_rows()]


def test_any_text_and_number_arrives_in_excel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from openpyxl import load_workbook

    monkeypatch.setattr("tallytree.releases.export.excel._ROWS_AT_ONCE", 3)
    texts = [
        "",
        " a ",
        '<b> & "c"',
        "line\r\nbreak\t",
        "=1+1",
        "\x07",
        None,
        "\ud7ff\U0001f600",
        "x" * 40_000,
    ]
    numbers = [0.1, -1e300, float("nan"), float("inf"), None, 5e-324, 1 / 3, -0.0, 2.0**70]
    table = pa.table(
        {
            "key": range(9),
            "=text": texts,
            "word": pa.array(texts).dictionary_encode(),
            "number": numbers,
        }
    )
    roles = ("key", "label", "label", "value")
    columns = tuple(Column(name, role, "") for name, role in zip(table.column_names, roles))
    sheet = Sheet("counts", "", (), table, columns, {"key": Codes(list(range(9)), [""] * 9)})
    write_excel(sheet, tmp_path / "a.xlsx")
    head, *rows = load_workbook(tmp_path / "a.xlsx")["counts"].iter_rows()
    assert [cell.value for cell in head] == table.column_names
    assert {cell.data_type for row in (head, *rows) for cell in row} == {"s", "n"}
    read = list(texts)
    read[5], read[8] = "\N{REPLACEMENT CHARACTER}", "x" * 32_767
    finite = [number if number is not None and np.isfinite(number) else None for number in numbers]
    assert [[cell.value for cell in row] for row in rows] == [
        list(row) for row in zip(range(9), read, read, finite, strict=True)
    ]


def test_parquet_by_arrow(release: Any, sheet: Sheet, tmp_path: Path) -> None:
    tt.export(release, out=str(tmp_path / "counts"), format="parquet")
    here = place_of(tmp_path, "counts", sheet)
    found = pyarrow.dataset.dataset(here, partitioning="hive").to_table()
    order = [(name, "ascending") for name in sheet.names("key")]
    plain = pa.table({name: _plain(sheet.table[name]) for name in sheet.table.column_names})
    again = pa.table({name: _plain(found[name]) for name in sheet.table.column_names}).cast(
        plain.schema
    )
    assert again.sort_by(order).equals(plain.sort_by(order))
    if sheet.partition:
        folders = {folder.name for folder in here.iterdir()}
        assert folders == {f"level={name}" for name in release.hierarchy.level_names}


def _plain(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


@pytest.mark.filterwarnings(
    "ignore:Shouldn't use this function anymore:DeprecationWarning"
)  # pyjstat calls it itself
def test_json_stat_by_pyjstat(release: Any, sheet: Sheet, tmp_path: Path) -> None:
    from pyjstat import pyjstat

    tt.export(release, out=str(tmp_path / "cube.json"), format="json-stat")
    text = place_of(tmp_path, "cube.json", sheet).read_text(encoding="utf-8")
    found = pyjstat.Dataset.read(text).write("dataframe", naming="id")
    keys, measures = sheet.names("key"), sheet.names("value", "error")
    assert len(found) == len(measures) * np.prod([len(sheet.codes[key].values) for key in keys])
    told = {
        (*(str(row[key]) for key in keys), name): row[name]
        for row in rows_of(sheet)
        for name in measures
    }
    for row in found.to_dict("records"):
        place = (*(row[key] for key in keys), row["measure"])
        left_out = (
            0 if sheet.rows_left_out_are_zero and row["measure"] in sheet.names("value") else None
        )
        assert same(row["value"], told.pop(place, left_out)), place
    assert not told
    status = json.loads(text).get("status", {})
    assert len(status) == sum(row.get("reliability") is not None for row in rows_of(sheet))


def test_sdmx_by_sdmx1(release: Any, sheet: Sheet, tmp_path: Path) -> None:
    import sdmx

    tt.export(release, out=str(tmp_path / "sdmx"), format="sdmx-csv")
    here = place_of(tmp_path, "sdmx", sheet)
    with (here / "structure.xml").open("rb") as file:
        structure = sdmx.read_sdmx(file, format="XML")
    flow = structure.dataflow["RELEASE" if sheet.name == "counts" else sheet.name.upper()]
    with (here / "data.csv").open("rb") as file:
        (data,) = sdmx.read_sdmx(file, format="CSV", structure=flow).data
    keys = sheet.names("key")
    names = {key: identifiers_of(sheet.codes[key]) for key in keys}
    for observation, row in zip(data.obs, rows_of(sheet), strict=True):
        for key in keys:
            place = list(sheet.codes[key].values).index(row[key])
            assert str(observation.dimension[key.upper()].value) == names[key][place]
        assert float(observation.value) == row[sheet.names("value")[0]]
        for name in sheet.names("error"):
            assert same(observation.attached_attribute[name.upper()].value, row[name])
        if sheet.names("flag"):
            assert (
                observation.attached_attribute["OBS_STATUS"].value
                == STATUS_CODES[row["reliability"]]
            )
            assert same(observation.attached_attribute["RELIABILITY"].value, row["reliability"])
    for key in keys:
        codes, told = structure.codelist[f"CL_{key.upper()}"], sheet.codes[key]
        parents = [-1] * len(told.labels) if told.parent is None else told.parent.tolist()
        assert {code.id: (str(code.name), getattr(code.parent, "id", None)) for code in codes} == {
            name: (label, names[key][parent] if parent >= 0 else f"CL_{key.upper()}")
            for name, label, parent in zip(names[key], told.labels, parents, strict=True)
        }


def test_frictionless_by_frictionless(release: Any, sheet: Sheet, tmp_path: Path) -> None:
    from frictionless import Package, validate

    tt.export(release, out=str(tmp_path / "package"), format="frictionless")
    report = validate(str(tmp_path / "package" / "datapackage.json"))
    assert report.valid, report.flatten(["message"])
    package = Package(str(tmp_path / "package" / "datapackage.json"))
    for row, told in zip(package.get_resource(sheet.name).read_rows(), rows_of(sheet), strict=True):
        assert all(same(row[name], told[name]) for name in told)
    if sheet.regions is not None:
        regions = [dict(row) for row in package.get_resource("regions").read_rows()]
        assert regions == sheet.regions.to_pylist()


def test_a_changed_count_is_found_by_the_checksum_of_a_package(tmp_path: Path) -> None:
    from frictionless import validate

    tt.export(with_errors(), out=str(tmp_path / "package"), format="frictionless")
    file = tmp_path / "package" / "counts.csv"
    file.write_text(file.read_text(encoding="utf-8").replace(",2,", ",3,", 1), encoding="utf-8")
    assert not validate(str(tmp_path / "package" / "datapackage.json")).valid


def test_identifiers_are_told_apart() -> None:
    found = identifiers_of(Codes(["a b", "a_b", "a/b", "a_b-1"], [""] * 4))
    assert len(set(found)) == 4
    assert found[3] == "a_b-1"


def test_standard_errors_and_flags_travel(tmp_path: Path) -> None:
    release = with_errors()
    tt.export(release, out=str(tmp_path / "counts.csv"))
    from pyarrow import csv

    found = csv.read_csv(tmp_path / "counts.csv")
    for name in ("std_error", "low", "high"):
        assert found[name].to_pylist() == release.table()[name].to_pylist()
    expected = pc.greater(pc.divide(found["std_error"], found["count"]), 0.3)
    assert pc.equal(found["reliability"], "unreliable").to_pylist() == expected.to_pylist()


def test_what_is_there_stays_and_releases_get_no_further_files(tmp_path: Path) -> None:
    release = with_errors()
    release.save(tmp_path / "out")
    with pytest.raises(RequestError, match="is a release, to which nothing is added"):
        tt.export(release, out=str(tmp_path / "out" / "counts.csv"))
    assert tt.verify(tmp_path / "out")
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(RequestError, match="exists already"):
        tt.export(release, out=str(tmp_path / "a.csv"))
    assert (tmp_path / "a.csv").read_text() == "mine"
    with pytest.raises(RequestError, match="which this format makes"):
        tt.export(release, out=str(tmp_path / "a.csv"), format="parquet", overwrite=True)
    assert (
        tt.export(tmp_path / "out", out=str(tmp_path / "a.csv"), overwrite=True)
        == tmp_path / "a.csv"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "out"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Say where the export goes"),
        ({"out": "counts.txt"}, "does not tell the format"),
        ({"out": "a.csv", "shapes": "x.json"}, "go with geojson"),
        ({"out": "a.geojson"}, "name a file of outlines"),
    ],
)
def test_what_cannot_be_written_is_refused(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestError, match=message):
        tt.export(MAKERS["group-sizes"](), **options)
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_where_a_place_beside_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a-people.csv").write_text("mine")
    with pytest.raises(RequestError, match="exists already"):
        tt.export(with_people(), out=str(tmp_path / "a.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["a-people.csv"]
    assert (tmp_path / "a-people.csv").read_text() == "mine"


def test_a_cube_that_nobody_could_open_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tallytree.releases.export.sheet.MOST_CELLS", 3)
    with pytest.raises(RequestError, match="too large for this format"):
        tt.export(MAKERS["group-sizes"](), out=str(tmp_path / "cube"), format="json-stat")
    assert not list(tmp_path.iterdir())


def test_a_label_is_no_formula_to_a_spreadsheet(tmp_path: Path) -> None:
    label = "=cmd|'/C calc'!A0"
    rows = pa.table({"house": [1, 2, 3], "state": [label, "-5", "@b"]})
    counts = tt.read(rows, group="house", levels=["state"], public="groups")
    tt.release(counts, epsilon=1, out=tmp_path / "out")
    tt.export(tmp_path / "out", out=str(tmp_path / "out.csv"), format="csv")
    text = (tmp_path / "out.csv").read_text()
    assert f'"\'{label}"' in text
    assert '"\'@b"' in text
    assert '"-5"' in text
    assert f'"{label}"' not in text

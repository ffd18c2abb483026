"""Every verb goes through one table of kinds; a new kind is one file and one line in it."""

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from docs.kinds_table import PAGE, page

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.kinds import table
from tallytree.kinds.showing import write_report
from tallytree.kinds.table import KINDS
from tallytree.kinds.verbs import verify_privacy
from tallytree.releases.kind import Kind, No, table_of_verbs
from tests.kinds import toy

PEOPLE = pa.table({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]})
MAKERS: dict[str, Any] = {
    "group-sizes": lambda: tt.release(
        tt.read(PEOPLE, group="household", levels=["state"], public="groups"),
        epsilon=1,
        insecure_seed=1,
    ),
    "values": lambda: tt.values(
        pa.table({"pay": [3, 1, 4, 1, 5] * 20, "state": ["GA", "GA", "GA", "NY", "NY"] * 20}),
        value="pay",
        step=1,
        max=8,
        levels=["state"],
        epsilon=1,
        insecure_seed=1,
        intervals=4,
    ),
    "table": lambda: tt.table(
        PEOPLE, levels=["state"], by={"household": ["1-2", "3-4"]}, epsilon=1, insecure_seed=1
    ),
    "histogram": lambda: tt.histogram([3, 1, 4, 1, 5], epsilon=1, insecure_seed=1),
    "degrees": lambda: tt.degrees([3, 1, 4, 1, 5], epsilon=1, insecure_seed=1),
    "map": lambda: tt.spatial(counts=[[3, 1], [4, 1]], epsilon=1, insecure_seed=1),
    "stream": lambda: tt.stream(counts=[3, 1, 4], horizon=None, epsilon=1, insecure_seed=1),
}
# Every part of a question, and a value for it.
PARTS = {
    "region": "total", "size": "2", "at_least": "2", "largest": "1", "quantile": "0.5", "mean": None, "total": None,
    "ranges": "0:1", "between": "1 2", "share": None, "by": "household",
    "confidence": "0.9", "copies": "2",
}  # fmt: skip


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


def test_every_kind_has_a_maker_here() -> None:
    assert set(MAKERS) == set(KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_saves_loads_verifies_and_reports(name: str, tmp_path: Path) -> None:
    made = MAKERS[name]()
    made.save(tmp_path / "out")
    loaded = tt.load(tmp_path / "out")
    assert type(loaded) is type(made)
    assert loaded.kind == name
    assert loaded.table().equals(made.table())
    assert loaded.manifest == made.manifest
    assert tt.verify(tmp_path / "out")
    assert [
        check.name for check in verify_privacy(tmp_path / "out").checks if not check.passed
    ] == ["the noise came from secure randomness"]
    assert write_report(tmp_path / "out").stat().st_size > 1000


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_question_is_answered_or_refused(
    name: str, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MAKERS[name]()
    made.save(tmp_path / "out")
    flag = "--range" if part == "ranges" else f"--{part.replace('_', '-')}"
    value = PARTS[part]
    if part == "ranges" and name == "map":
        value = "0:1,0:1"
    if part == "ranges" and name == "stream":
        value = "1:2"
    alone = [flag] if value is None else [flag, *value.split(" ")]
    more = (
        ["--at-least", "2", "--copies", "2"]
        if name in ("group-sizes", "values") and part == "confidence"
        else []
    )
    sized = name in ("group-sizes", "values")
    more += ["--at-least", "2"] if sized and part == "share" else []
    more += ["--mean"] if name == "values" and part == "copies" else []
    more += ["--range", "0:1"] if name == "histogram" and part == "confidence" else []
    code = run("query", str(tmp_path / "out"), *alone, *more, "--json")
    told = capsys.readouterr()
    if part in made.answers:
        assert code == 0, told.err
        assert json.loads(told.out)[name] == str(tmp_path / "out")
    else:
        assert code == 2
        assert f"This is {made.title}, which cannot answer {flag}. It answers: " in told.err


@pytest.mark.parametrize("verb", ["evaluate", "plan"])
@pytest.mark.parametrize("name", KINDS)
def test_a_verb_works_or_says_why_not(name: str, verb: str) -> None:
    found = getattr(KINDS[name], verb)
    if isinstance(found, No):
        with pytest.raises(RequestError, match="has no '"):
            KINDS[name].verb(verb)
    else:
        assert KINDS[name].verb(verb) is found


def test_the_table_in_the_docs_has_no_empty_cell() -> None:
    rows = table_of_verbs(KINDS)
    assert len(rows) == len(KINDS)
    assert all(cell for row in rows for cell in row.values())


def test_the_page_in_the_docs_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m docs.kinds_table"


def test_a_new_kind_is_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(table.MODULES, "total", "tests.kinds.toy")
    made = toy.total(list(range(100)), epsilon=1, insecure_seed=1)
    made.save(tmp_path / "out")
    assert isinstance(KINDS["total"], Kind)
    assert tt.load(tmp_path / "out").value == made.value
    assert run("verify", str(tmp_path / "out")) == 0
    assert run("query", str(tmp_path / "out"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == made.value
    assert run("query", str(tmp_path / "out"), "--mean") == 2
    assert run("report", str(tmp_path / "out")) == 0
    assert run("evaluate", str(tmp_path / "out"), "nothing.csv") == 2
    assert "A total has no 'evaluate': it is a toy." in capsys.readouterr().err


def test_a_kind_from_a_later_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table.MODULES, "total", "tests.kinds.toy")
    toy.total([1], epsilon=1, insecure_seed=1).save(tmp_path / "out")
    monkeypatch.delitem(table.MODULES, "total")
    with pytest.raises(RequestError, match="kind 'total', which this version does not know"):
        tt.load(tmp_path / "out")


@pytest.mark.parametrize("name", KINDS)
def test_every_table_is_one_of_pandas_and_polars(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MAKERS[name]()
    told = made.table().to_pydict()
    assert made.to_polars().to_dict(as_series=False) == told
    found = made.to_pandas()
    assert list(found.columns) == list(told)
    assert found["count"].tolist() == told["count"]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(RequestError, match="pip install polars"):
        made.to_polars()

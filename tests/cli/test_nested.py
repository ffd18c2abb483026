"""Files that are nested without end, or otherwise made to be hard to read: one sentence, at once."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import InputError
from tallytree.model.nested import parse_toml
from tallytree.shapes.outlines import read_outlines, read_polygons
from tests.fuzz.watching import command_complaint, ended

DEEP = [
    "[" * 5000,
    "[" * 100_000,
    '{"a":' * 5000,
    '{"type": "FeatureCollection", "features": ' + "[" * 5000,
]
MAP = [
    "--columns",
    "longitude,latitude",
    "--box",
    "0:1,0:1",
    "--epsilon",
    "1",
    "--outside",
    "drop",
    "--out",
    "out",
]
TOML = [
    "a" + ".a" * 10_000 + " = 1",
    "[" + "a." * 10_000 + "a]",
    '"a,"' + '."a,"' * 10_000 + " = 1",
    "note = '''\nx''' \na" + ".a" * 10_000 + " = 1",
    "x = {k = '''\n''', a" + ".a" * 10_000 + " = '1'}",
    "x = " + "[" * 5000,
    "x = " + "{a=" * 5000,
    "title = '" + "x" * (1 << 20) + "'",
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("text", DEEP)
@pytest.mark.parametrize("command", ["geojson", "geoparquet", "history"])
def test_deep_json_is_one_sentence(
    text: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("deep.geojson").write_text(text)
    table = pa.table({"place": [b"\x01"], "x": [1]}).replace_schema_metadata({"geo": text})
    pq.write_table(table, "deep.parquet")
    ways = {
        "geojson": ["spatial", "deep.geojson", *MAP],
        "geoparquet": ["spatial", "deep.parquet", *MAP],
        "history": ["ledger", "verify", "--history", "deep.geojson"],
    }
    assert command_complaint(ways[command], capsys) is None
    assert ended(ways[command], capsys) == 2


@pytest.mark.parametrize(
    "text", [*DEEP, '{"type": "FeatureCollection", "features": 7}', '{"type": "Topology"}']
)
def test_outlines_that_are_none_are_one_sentence(text: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.json"
    file.write_text(text)
    for read in (read_outlines, read_polygons):
        with pytest.raises(InputError) as caught:
            read(file)
        assert "\n" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", TOML, ids=[text[:12] for text in TOML])
def test_configs_that_take_long_are_refused_at_once(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("config.toml").write_text(text)
    before = time.process_time()
    assert ended(["release", "config.toml"], capsys) == 2
    assert time.process_time() - before < 2


def test_dots_that_are_no_names_are_read() -> None:
    edges, title = [step / 10 for step in range(100)], "." * 200
    assert parse_toml(f'edges = {edges}\nnote.title = "{title}"\n'.encode()) == {
        "edges": edges,
        "note": {"title": title},
    }


def test_a_map_of_deep_properties(tmp_path: Path) -> None:
    """What is said of a point may be nested, as deep as JSON is read."""
    deep = "[" * 300 + "]" * 300
    point = f'{{"type": "Feature", "geometry": {{"type": "Point", "coordinates": [0.5, 0.5]}}, "properties": {{"a": {deep}}}}}'
    file = tmp_path / "points.geojson"
    file.write_text(f'{{"type": "FeatureCollection", "features": [{point}]}}')
    made = tt.spatial(
        str(file),
        columns=("longitude", "latitude"),
        box=((0, 1), (0, 1)),
        epsilon=1,
        insecure_seed=1,
    )
    assert made.private is False

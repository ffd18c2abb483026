"""Pages and exports call things by their own names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.group_sizes.report import group_sizes_payload
from tallytree.options.asking import PageOptions

ROWS = pd.DataFrame(
    {
        "household": [f"h{number // 2}" for number in range(60)],
        "customer": [f"c{number // 3}" for number in range(60)],
        "region": ["north" if number < 30 else "south" for number in range(60)],
    }
)
READING: dict[str, Any] = {"group": "household", "levels": ["region"], "public": "regions"}


def words(**reading: Any) -> str:
    counts = tt.read(ROWS, **READING, **reading)
    page = group_sizes_payload(tt.release(counts, epsilon=1, max_size=4))
    return json.dumps([page["read"], page["lead"], page["words"]])


def test_pages_name_what_is_protected() -> None:
    assert "any one of the customers is" in words(unit="customer", contributions=3)
    assert "any one of the people is" in words(entity="person")
    whole = words(unit="group")
    assert "any one of the households is" in whole
    assert '"groups": "households"' in whole


def square(place: int) -> list[Any]:
    return [[place, 0], [place + 1, 0], [place + 1, 1], [place, 1], [place, 0]]


@pytest.fixture
def topology(tmp_path: Path) -> str:
    """Two layers: the one with more shapes is of something else."""
    names = {"blocks": [f"b{number}" for number in range(6)], "land": ["north", "south"]}
    layers, arcs = {}, []
    for layer, shapes in names.items():
        geometries = []
        for name in shapes:
            geometries.append({"type": "Polygon", "id": name, "arcs": [[len(arcs)]]})
            arcs.append(square(len(arcs)))
        layers[layer] = {"type": "GeometryCollection", "geometries": geometries}
    file = tmp_path / "shapes.json"
    file.write_text(json.dumps({"type": "Topology", "objects": layers, "arcs": arcs}))
    return str(file)


def test_the_layer_that_fits_is_taken(topology: str) -> None:
    made = tt.release(tt.read(ROWS, **READING), epsilon=1)
    for layer in (None, "land"):
        page = group_sizes_payload(made, None, PageOptions(shapes=topology, shapes_layer=layer))
        assert page["outlines"]["members"] == [1, 2]
    with pytest.raises(RequestError, match="No outline is called"):
        group_sizes_payload(made, None, PageOptions(shapes=topology, shapes_layer="blocks"))
    other = tt.release(tt.read(ROWS.replace({"north": "n", "south": "s"}), **READING), epsilon=1)
    with pytest.raises(RequestError, match="blocks, land"):
        group_sizes_payload(other, None, PageOptions(shapes=topology))


def test_a_level_that_gets_another_column_says_so(tmp_path: Path) -> None:
    made = tt.release(tt.read(ROWS, **READING), epsilon=1)
    with pytest.warns(UserWarning, match="'region' is in the column 'region_'"):
        tt.export(made, format="csv", out=str(tmp_path / "out.csv"))


def test_groups_of_any_name_have_a_page() -> None:
    rows = ROWS.rename(columns={"household": "\\s"})
    counts = tt.read(rows, **READING | {"group": "\\s"}, unit="group")
    assert "\\s" in group_sizes_payload(tt.release(counts, epsilon=1))["words"]["groups"]

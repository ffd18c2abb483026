"""Labels that were meant to be one are not silently two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from tallytree.cli.app import app
from tallytree.errors import RequestError
from tallytree.ingest.regions import alike_labels
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.hierarchy import hierarchy_from_leaves


@pytest.mark.parametrize(
    ("leaves", "said"),
    [
        ([["S4"], ["s4 "], ["S5"]], ["1 times", "'S4'", "'s4 '"]),
        ([["01001"], ["1001"], ["1002"]], ["'01001'"]),
        ([["a", "x"], ["b", "X"]], []),
        ([["a", "x"], ["a", "X"], ["b", "X"]], ["'X'", "'x'"]),
        ([["1"], ["10"], ["0"]], []),
    ],
)
def test_labels_that_differ_by_writing_alone(leaves: list[list[str]], said: list[str]) -> None:
    names = ["state", "county"][: len(leaves[0])]
    found = " ".join(alike_labels(hierarchy_from_leaves(names, leaves), NO_ATTRIBUTES))
    assert bool(found) == bool(said)
    assert all(word in found for word in said)


def test_values_of_attributes_too() -> None:
    tree = hierarchy_from_leaves(["state"], [["a"]])
    (found,) = alike_labels(tree, Attributes(("tenure",), (("Owned", "owned ", "other"),)))
    assert "attribute 'tenure'" in found


def test_the_command_refuses_before_it_pays(tmp_path: Path) -> None:
    data = tmp_path / "rows.csv"
    rows = pd.DataFrame({"household": range(90), "state": ["S4", "s4 ", "S5"] * 30})
    rows.to_csv(data, index=False)
    call: list[Any] = ["release", str(data), "--group", "household", "--levels", "state"]
    call += ["--public", "groups", "--out", str(tmp_path / "out")]
    refused = CliRunner().invoke(app, [*call, "--epsilon", "1"])
    assert isinstance(refused.exception, RequestError)
    assert "'s4 '" in str(refused.exception)
    assert not (tmp_path / "out").exists()
    made = CliRunner().invoke(app, [*call, "--sure", "--epsilon", "50", "--insecure-seed", "1"])
    assert made.exit_code == 0
    assert "All 90 groups were released with size 1" in made.stderr

"""The time that a release takes can be hidden behind a clock that strikes seldom."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tallytree.cli.app import app
from tallytree.errors import RequestError


def test_a_release_ends_at_a_multiple_of_the_span(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, slept = iter([100.0, 1325.0]), []
    monkeypatch.setattr("tallytree.cli.paying.time.monotonic", lambda: next(clock))
    monkeypatch.setattr("tallytree.cli.paying.time.sleep", slept.append)
    monkeypatch.setattr("tallytree.releases.keeping.release_to", lambda *_: (Made, False))
    monkeypatch.setattr("tallytree.cli.histogram.summary", lambda made: {})
    call = ["histogram", "rows.csv", "--column", "x", "--bounds", "0,1", "--bins", "2"]
    call += ["--epsilon", "1", "--json", "--out", str(tmp_path / "out"), "--pad-time", "600"]
    assert CliRunner().invoke(app, call).exit_code == 0
    assert slept == [575.0]
    wrong = CliRunner().invoke(app, [*call[:-1], "0"])
    assert isinstance(wrong.exception, RequestError)


class Made:
    """A release that was made."""

    private = False

"""Folders that were written in format 1 load, verify and answer as they did."""

import json
import shutil
from pathlib import Path

import pytest

import tallytree as tt
from tallytree.kinds.showing import write_report
from tallytree.kinds.table import KINDS
from tallytree.kinds.verbs import verify_privacy
from tests.releases.frozen_folders import FORMAT_1, QUESTIONS, SEEN, seen

EXPECTED = json.loads(SEEN.read_text(encoding="utf-8"))


def test_every_kind_has_a_folder() -> None:
    assert set(KINDS) == set(EXPECTED) == set(QUESTIONS)


@pytest.mark.parametrize("kind", EXPECTED)
def test_it_verifies_and_answers_as_it_did(kind: str) -> None:
    folder = FORMAT_1 / kind
    assert json.loads((folder / "manifest.json").read_bytes())["format_version"] == 1
    tt.verify(folder).raise_if_failed()
    failed = [check.name for check in verify_privacy(folder).checks if not check.passed]
    assert failed == ["the noise came from secure randomness"]
    assert seen(folder, kind) == EXPECTED[kind]


@pytest.mark.parametrize("kind", EXPECTED)
def test_it_is_reported_estimated_and_saved_again(kind: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FORMAT_1 / kind, tmp_path / kind))
    release = tt.load(folder)
    assert tt.re_estimate(folder).table().equals(release.table())
    assert write_report(folder).stat().st_size > 10_000
    again = tt.load(release.save(tmp_path / "again"))
    assert again.table().equals(release.table())
    assert again.manifest == release.manifest
    tt.verify(tmp_path / "again").raise_if_failed()

"""The pages on the documents name code and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs/reference/experiments"


@pytest.mark.parametrize("page", ["documents.md", "errata.md"])
def test_files_that_are_named_exist(page: str) -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", (PAGES / page).read_text(encoding="utf-8")))
    assert len(named) > 15
    missing = {
        name
        for name in named
        if not (ROOT / "src/tallytree" / name).is_file() and not (ROOT / name).is_file()
    }
    assert missing == set()


def test_every_erratum_has_a_document_evidence_and_a_place() -> None:
    rows = [
        [part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in (PAGES / "errata.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith(("| where", "| ---"))
    ]
    mistakes = [row for row in rows if len(row) == 5]
    assert len(mistakes) > 35
    for where, says, right, checked, code in mistakes:
        assert re.search(r"hay2010|qardaji2013|kuo2018|fioretto2021|slides", where), where
        assert says, where
        assert right, where
        ways = {way.split(":")[0].strip() for way in checked.split(",")}
        assert ways & {"proof", "neighbours", "oracle", "printed", "data"}, where
        assert code.startswith("`"), where

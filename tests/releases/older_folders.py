"""Folders that earlier versions wrote, and what was seen of them then; see
tests/fixtures/README.md.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tallytree.cli import main

FORMAT_1 = Path(__file__).parent.parent / "fixtures" / "format-1"
EXPECTED: dict[str, dict[str, Any]] = json.loads(
    (FORMAT_1 / "expected.json").read_text(encoding="utf-8")
)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command line, in this process."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err

"""Every mechanism of fioretto2021 on the command line: released, verified, its loss recomputed;
refusals end with 2.
"""

import json
from pathlib import Path

import pytest

from tallytree.cli import main
from tallytree.papers.fioretto2021.mechanisms import MECHANISMS
from tests.cli.test_commands import READ, place, tallytree

__all__ = ["place"]
# Whole groups, which size-bins protects, have tests of their own.
DENSE = list(MECHANISMS)


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.mark.parametrize("mechanism", DENSE)
def test_released_verified_and_accounted(
    mechanism: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    out = f"out-{mechanism}"
    options = [
        "--epsilon",
        "2",
        "--max-size",
        "4",
        "--mechanism",
        mechanism,
        "--repair",
        "--time-limit",
        "20",
        "--out",
        out,
    ]
    code, printed, _ = run(["release", "people.parquet", *READ, *options, "--json"], capsys)
    assert code == 0
    assert json.loads(printed)["mechanism"] == mechanism
    code, printed, _ = run(["verify", out, "--privacy", "--json"], capsys)
    assert code == 0
    assert json.loads(printed)["passed"] is True
    manifest = json.loads((place / out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["totals"]["kept"] == (
        "every region" if "regions" in MECHANISMS[mechanism].traits.totals else "root"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mechanism", "tree-relaxed"], "--repair"),
        (["--mechanism", "tree-exact", "--max-size", "9999"], "would solve for 60,000 cells"),
        (["--mechanism", "chain", "--totals", "regions"], "keeps the root's total alone"),
    ],
)
def test_refusals_end_with_2_and_write_nothing(
    options: list[str], message: str, place: Path
) -> None:
    done = tallytree(
        "release",
        "people.parquet",
        *READ,
        "--epsilon",
        "1",
        *options,
        "--out",
        "refused",
        cwd=place,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert not (place / "refused").exists()

"""Damaged folders of every kind: one line for each thing wrong and exit code 1, never a traceback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import TallytreeError
from tallytree.kinds.showing import write_report
from tallytree.kinds.table import KINDS
from tallytree.kinds.verbs import verify_privacy
from tallytree.releases.opening import reading
from tests.fuzz.damage import copied, spoil
from tests.fuzz.small import KINDS_MADE, MADE
from tests.fuzz.watching import TIMES, at_most, complaint, seeded

assert set(KINDS_MADE) == set(KINDS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small folder of every kind."""
    place = tmp_path_factory.mktemp("whole")
    return {
        name: Path(make(insecure_seed=1).save(place / name)) for name, make in KINDS_MADE.items()
    }


def uses(folder: Path, out: Path) -> dict[str, Callable[[], Any]]:
    return {
        "verify": lambda: tt.verify(folder),
        "verify --privacy": lambda: verify_privacy(folder),
        "query": lambda: query(folder),
        "report": lambda: write_report(folder, out),
        "re-estimate": lambda: tt.re_estimate(folder),
    }


def query(folder: Path) -> None:
    release = tt.load(folder)
    with reading(folder):
        tt.ask(release)


def test_damaged_folders_are_never_a_traceback(folders: dict[str, Path], tmp_path: Path) -> None:
    dice = seeded(19)
    found: dict[str, str] = {}
    for number in range(100 * TIMES):
        name = dice.choice(list(folders))
        folder = copied(folders[name], tmp_path / "damaged")
        what = spoil(folder, dice)
        for verb, use in uses(folder, tmp_path / "report.html").items():
            wrong = complaint(use)
            if wrong:
                found.setdefault(wrong[-400:], f"{number} {name}, {what}: {verb}\n{wrong}")
    assert not found, f"{len(found)} kinds of traceback:\n\n" + "\n".join(found.values())


def test_the_command_line_says_so_in_lines_and_by_its_exit_code(
    folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dice, wrong = seeded(20), []
    for number in range(40 * TIMES):
        name = dice.choice(list(folders))
        folder = copied(folders[name], tmp_path / "damaged")
        what = spoil(folder, dice)
        for command in (["verify"], ["verify", "--privacy"], ["query"]):
            with pytest.raises(SystemExit) as ended:
                main([*command, str(folder)])
            err = capsys.readouterr().err
            if ended.value.code not in (0, None, 1, 2) or "Traceback" in err:
                wrong.append(f"{number} {name}, {what}: {command}, {ended.value.code}: {err}")
            if command == ["verify"] and ended.value.code == 1 and not err.strip():
                wrong.append(f"{number} {name}, {what}: verify said nothing")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", MADE)
def test_flipped_bits_of_every_file_are_found(name: str, tmp_path: Path) -> None:
    """Every bit with TALLYTREE_FUZZ, otherwise every bit of some bytes; bits of manifests are all
    flipped in tests/storage.
    """
    folder = Path(MADE[name](insecure_seed=1).save(tmp_path / "flipped"))
    passed, n_flipped = [], 0
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        step = 1 if TIMES > 1 else max(1, len(whole) // 3)
        for place in range(0, len(whole), step):
            for bit in range(8):
                file.write_bytes(
                    whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :]
                )
                n_flipped += 1
                with at_most():
                    try:
                        good = bool(tt.verify(folder))
                    except TallytreeError:
                        good = False
                if good:
                    passed.append(f"{file.name}: bit {bit} of byte {place}")
        file.write_bytes(whole)
    assert tt.verify(folder)
    assert not passed
    print(f"{name}: {n_flipped:,} bits were flipped, and all were found")

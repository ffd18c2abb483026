"""Every verb that reads a table compares it with the manifest first, and a page belongs to one
release.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import VerificationError
from tallytree.kinds.showing import write_report
from tests.fuzz.small import KINDS_MADE

VERBS: dict[str, Callable[[Path], list[str]]] = {
    "query": lambda folder: ["query", str(folder)],
    "export": lambda folder: [
        "export",
        str(folder),
        "--format",
        "csv",
        "--out",
        str(folder.parent / "x.csv"),
    ],
    "report": lambda folder: ["report", str(folder), "--out", str(folder.parent / "x.html")],
    "re-estimate": lambda folder: [
        "re-estimate",
        str(folder),
        "--out",
        str(folder.parent / "again"),
    ],
}


def changed(folder: Path, file: str, column: str) -> None:
    """The folder with another table in the place of one; nobody makes the manifest fit."""
    table = pq.read_table(folder / file)
    edited = pa.array(
        [value + 1 for value in table[column].to_pylist()], table.schema.field(column).type
    )
    pq.write_table(
        table.set_column(table.column_names.index(column), column, edited), folder / file
    )


def code_of(*words: str) -> Any:
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return end.value.code


@pytest.mark.parametrize("name", KINDS_MADE)
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_reads_a_changed_table(
    name: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(KINDS_MADE[name]().save(tmp_path / "out"))
    changed(
        folder,
        *(("noisy.parquet", "value") if verb == "re-estimate" else ("counts.parquet", "count")),
    )
    assert code_of(*VERBS[verb](folder)) == 1
    said = capsys.readouterr()
    assert "was changed: its checksum differs from the manifest" in said.err.replace("\n", " ")
    assert not said.out
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_changed_table_is_neither_loaded_nor_compared(tmp_path: Path) -> None:
    folders = [Path(KINDS_MADE["group-sizes"]().save(tmp_path / name)) for name in ("a", "b")]
    changed(folders[1], "counts.parquet", "count")
    with pytest.raises(VerificationError, match="was changed"):
        tt.load(folders[1])
    assert code_of("compare", *map(str, folders)) == 1
    shutil.copy(folders[0] / "counts.parquet", folders[0] / "cells.parquet")
    assert not tt.verify(folders[0])


@pytest.mark.parametrize("name", KINDS_MADE)
def test_the_page_of_another_release_is_found(name: str, tmp_path: Path) -> None:
    made, other = KINDS_MADE[name](insecure_seed=1), KINDS_MADE[name](insecure_seed=2)
    folder, others = Path(made.save(tmp_path / "out")), Path(other.save(tmp_path / "other"))
    shutil.copy(write_report(others), folder / "report.html")
    assert "report.html" in tt.verify(folder).checks[0].detail
    made.report(folder / "report.html")
    assert tt.verify(folder)
    other.report(folder / "report.html")
    assert not tt.verify(folder)
    write_report(folder)
    assert tt.verify(folder)


def test_verifying_says_that_a_folder_is_not_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(KINDS_MADE["degrees"]().save(tmp_path / "out"))
    assert code_of("verify", str(folder)) in (0, None)
    assert "It is not signed" in capsys.readouterr().err
    assert code_of("verify", str(folder), "--json") in (0, None)
    assert '"notes"' in capsys.readouterr().out
    assert code_of("sign", "--new-key", str(tmp_path / "key.pem")) in (0, None)
    tt.sign(folder, tmp_path / "key.pem")
    assert not tt.verify(folder).notes

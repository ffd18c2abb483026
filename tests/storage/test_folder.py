import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tallytree.errors import RequestError, StorageError, VerificationError
from tallytree.storage import folder, work

TABLE = pa.table({"level": [0, 1], "count": [3, 4]})


def write(path: Path, **options: bool) -> None:
    folder.write_folder(path, {"counts.parquet": TABLE}, {"kind": "test"}, **options)


def opened(path: Path) -> folder.Folder:
    manifest = folder.read_manifest(path)
    return folder.Folder(path, manifest, manifest["files"], {})


def test_round_trip(tmp_path: Path) -> None:
    write(tmp_path / "out")
    assert folder.read_manifest(tmp_path / "out")["kind"] == "test"
    assert folder.read_table(tmp_path / "out", "counts.parquet").equals(TABLE)
    assert opened(tmp_path / "out").changed_files() == []
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_readers_are_written_in_a_stream(tmp_path: Path) -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, iter(TABLE.to_batches() * 3))
    folder.write_folder(tmp_path / "out", {"counts.parquet": reader}, {})
    assert folder.read_manifest(tmp_path / "out")["files"]["counts.parquet"]["rows"] == 6


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "out")
    file = tmp_path / "out" / "counts.parquet"
    whole = file.read_bytes()
    for place in (0, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert opened(tmp_path / "out").changed_files() == [
            "counts.parquet was changed: its checksum differs from the manifest."
        ]
    file.unlink()
    assert opened(tmp_path / "out").changed_files() == ["counts.parquet is missing."]


def test_existing_folder_is_kept_unless_asked(tmp_path: Path) -> None:
    write(tmp_path / "out")
    with pytest.raises(StorageError, match="already exists"):
        write(tmp_path / "out")
    write(tmp_path / "out", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_what_is_not_a_release_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(StorageError, match="not a release"):
        write(tmp_path / "out", overwrite=True)
    assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> object:
        yield TABLE.to_batches()[0]
        raise OSError("disk full")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, broken())
    with pytest.raises(StorageError):
        folder.write_folder(tmp_path / "out", {"counts.parquet": reader}, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/null as a place that is no folder")
def test_a_place_that_cannot_be_written_is_named() -> None:
    with pytest.raises(StorageError, match="/dev/null"):
        write(Path("/dev/null/out"))


def test_broken_manifest(tmp_path: Path) -> None:
    write(tmp_path / "out")
    manifest = tmp_path / "out" / folder.MANIFEST
    manifest.write_text(manifest.read_text()[:-20])
    with pytest.raises(VerificationError, match="is not a manifest"):
        folder.read_manifest(tmp_path / "out")
    with pytest.raises(StorageError, match="not a release folder"):
        folder.read_manifest(tmp_path)
    manifest.write_text(json.dumps({"format_version": 99}))
    with pytest.raises(ValueError, match="format version 99"):
        folder.read_manifest(tmp_path / "out")


def test_every_flipped_bit_of_a_manifest_is_noticed(tmp_path: Path) -> None:
    write(tmp_path / "out")
    file = tmp_path / "out" / folder.MANIFEST
    whole = file.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            file.write_bytes(
                whole[:place] + bytes([whole[place] ^ (1 << bit)]) + whole[place + 1 :]
            )
            with pytest.raises((VerificationError, RequestError)):
                folder.read_manifest(tmp_path / "out")
    file.write_bytes(whole)
    assert folder.read_manifest(tmp_path / "out")["kind"] == "test"


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "[" * 100_000, '{"format_version": true}', '{"format_version": "2"}']
)
def test_what_is_no_manifest_is_said_to_be_none(tmp_path: Path, text: str) -> None:
    write(tmp_path / "out")
    (tmp_path / "out" / folder.MANIFEST).write_text(text)
    with pytest.raises(VerificationError, match="is not a manifest"):
        folder.read_manifest(tmp_path / "out")


def test_a_release_that_was_set_aside_is_named_and_brought_back(tmp_path: Path) -> None:
    """Where folders cannot be exchanged, a run may die after the old one was set aside: whoever
    looks is told where it is.
    """
    target = tmp_path / "out"
    write(target)
    claimed = work.claim(target, overwrite=True)
    claimed.write_note(
        {
            **{"state": "paid", "request": "", "kind": "test", "key": "", "machine": ""},
            **{"dataset": None, "receipt": None, "overwrite": True, "versions": {}},
            **{"noisy": True, "intervals": 0},
        }
    )
    target.rename(claimed.path / work.REPLACED)
    claimed.leave()  # the run is dead
    with pytest.raises(
        StorageError, match=r"Its release is whole, in .*replaced; tallytree resume .*out puts"
    ):
        folder.read_manifest(target)
    assert work.left_over(tmp_path) == {
        target: f"{target} still holds the release that was to be replaced. "
    }
    assert folder.read_manifest(target)["kind"] == "test"

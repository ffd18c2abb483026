"""What the owner knows stays with the owner: plans take no confidential counts, true errors never lie in a release folder."""

from pathlib import Path

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kinds.verbs import verify, write_report

PEOPLE = pa.table({"household": [1, 1, 2, 3], "state": ["GA", "GA", "GA", "NY"]})


def counts() -> tt.ConfidentialCounts:
    return tt.read(PEOPLE, group="household", levels=["state"], public="groups")


def test_plans_refuse_confidential_counts() -> None:
    with pytest.raises(RequestError, match="onfidential"):
        tt.plan(counts(), epsilon=1)  # type: ignore[arg-type]


def test_a_page_with_true_errors_is_never_written_into_a_release_folder(tmp_path: Path) -> None:
    release = tt.release(counts(), epsilon=1)
    folder = tmp_path / "out"
    release.save(folder)
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "elsewhere").mkdir()
    errors = tt.evaluate(release, counts())
    before = sorted(path.name for path in folder.iterdir())
    inside = (None, folder / "mine.html", folder / "a" / "mine.html", tmp_path / "link" / "mine.html")
    for target in (*inside, tmp_path / "elsewhere" / ".." / "out" / "mine.html"):
        for named in (folder, tmp_path / "link"):
            with pytest.raises(RequestError, match="does not belong into the release folder"):
                write_report(named, target, evaluation=errors)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert write_report(folder, tmp_path / "elsewhere" / "mine.html", evaluation=errors).exists()


@pytest.mark.parametrize("name", ["truth.parquet", "notes.txt", ".hidden"])
def test_files_that_the_manifest_does_not_list_fail_verification(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    tt.release(counts(), epsilon=1).save(folder)
    assert verify(folder).passed
    (folder / name).write_text("what the owner knows")
    assert not verify(folder).passed

"""What the owner knows stays with the owner: plans take no confidential counts, true errors never
lie in a release folder.
"""

from pathlib import Path

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kinds.showing import write_report
from tallytree.kinds.verbs import verify

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
    inside = (
        None,
        folder / "mine.html",
        folder / "a" / "mine.html",
        tmp_path / "link" / "mine.html",
    )
    for target in (*inside, tmp_path / "elsewhere" / ".." / "out" / "mine.html"):
        for named in (folder, tmp_path / "link"):
            with pytest.raises(RequestError, match="does not belong into the release folder"):
                write_report(named, target, evaluation=errors)
    assert sorted(path.name for path in folder.iterdir()) == before
    mine = write_report(folder, tmp_path / "elsewhere" / "mine.html", evaluation=errors)
    # Moved there by hand it fails verification; the page that belongs there does not, until it is
    # changed.
    mine.rename(folder / "report.html")
    assert not verify(folder).passed
    public = write_report(folder)
    assert verify(folder).passed
    public.write_text(public.read_text().replace("</body>", "<p>true error: 12</p></body>"))
    assert not verify(folder).passed


@pytest.mark.parametrize("name", ["truth.parquet", "notes.txt", ".hidden", "report.html"])
def test_files_that_the_manifest_does_not_list_fail_verification(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "out"
    tt.release(counts(), epsilon=1).save(folder)
    assert verify(folder).passed
    (folder / name).write_text("what the owner knows")
    assert not verify(folder).passed

"""Once everything is measured a release is finished without its data, whatever step of the
estimation died.
"""

import shutil
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.errors import PaidNotFinishedError, RequestError, StorageError
from tallytree.kinds.verbs import clean, resume
from tallytree.storage.work import Work, claim, left_over, reopen, work_folder
from tests.fuzz.small import MADE

# The step after the last answer: module, function, and which call of it dies.
FIRST_ESTIMATE = {
    "group-sizes": ("tallytree.group_sizes.mechanisms.adaptive", "estimate_staircases", 1),
    "group-sizes by an attribute": (
        "tallytree.group_sizes.mechanisms.adaptive",
        "estimate_staircases",
        1,
    ),
    "group-sizes in classes": (
        "tallytree.group_sizes.mechanisms.adaptive",
        "estimate_staircases",
        1,
    ),
    "group-sizes with private totals": (
        "tallytree.group_sizes.mechanisms.adaptive",
        "estimate_staircases",
        1,
    ),
    "group-sizes of whole groups": (
        "tallytree.group_sizes.mechanisms.size_bins",
        "fit_size_bins",
        1,
    ),
    "group-sizes by an attribute of whole groups": (
        "tallytree.group_sizes.mechanisms.size_bins",
        "fit_size_bins",
        1,
    ),
    "group-sizes by quantity, zcdp": (
        "tallytree.group_sizes.mechanisms.adaptive",
        "estimate_staircases",
        1,
    ),
    "stream": ("tallytree.streams.publish", "finish", 1),
    "stream in time, zcdp": ("tallytree.streams.publish", "finish", 1),
    "group-sizes by matching": ("tallytree.group_sizes.mechanisms.by_view", "estimate_level", 1),
}


def dying(function: Callable[..., Any], call: int) -> Callable[..., Any]:
    calls = 0

    def dies(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise MemoryError("no more")
        return function(*arguments, **options)

    return dies


@pytest.mark.parametrize("name", MADE)
def test_what_is_measured_is_finished_without_the_data(name: str, tmp_path: Path) -> None:
    module, function, call = FIRST_ESTIMATE.get(name, ("tallytree.releases.keeping", "finish", 1))
    folder, usual = tmp_path / "out", tmp_path / "usual"
    with pytest.MonkeyPatch.context() as patch:
        owner = import_module(module)
        patch.setattr(owner, function, dying(getattr(owner, function), call))
        with pytest.raises(PaidNotFinishedError, match=r"no more .* tallytree resume"):
            MADE[name](insecure_seed=1, out=folder)
    resume(folder)
    assert tt.verify(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    MADE[name](insecure_seed=1).save(usual)
    assert (folder / "counts.parquet").read_bytes() == (usual / "counts.parquet").read_bytes()


def test_what_is_not_measured_yet_needs_the_data_and_says_so(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        owner = import_module("tallytree.group_sizes.mechanisms.turns")
        patch.setattr(owner, "estimate_staircases", dying(owner.estimate_staircases, 1))
        with pytest.raises(PaidNotFinishedError):
            MADE["group-sizes"](insecure_seed=1, out=tmp_path / "out")
    with pytest.raises(
        PaidNotFinishedError,
        match="still to be measured, which needs the data: run the same command again",
    ):
        resume(tmp_path / "out")
    assert MADE["group-sizes"](insecure_seed=1, out=tmp_path / "out").verify()


def test_what_a_newer_version_has_left_is_refused_with_the_reason_and_can_be_dropped(
    tmp_path: Path,
) -> None:
    work = claim(tmp_path / "out")
    work.write_note({"state": "measured", "format_version": 2})
    work.leave()
    for use in (resume, claim):
        with pytest.raises(
            StorageError, match=r"in format 2; this one knows format 1\. Upgrade tallytree"
        ):
            use(tmp_path / "out")
    assert left_over(tmp_path) == {tmp_path / "out": ""}
    clean(tmp_path / "out")
    assert not list(tmp_path.iterdir())


class Killed(BaseException):
    """The process ends here."""


def killed_while_removing(work: Work, step: int) -> None:
    """Remove a work folder, and die before the given step of it."""
    steps = 0

    def counted(remove: Callable[..., Any]) -> Callable[..., Any]:
        def removes(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == step:
                raise Killed
            return remove(*arguments, **options)

        return removes

    with pytest.MonkeyPatch.context() as patch:
        for name in ("unlink", "rmdir"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        patch.setattr("shutil.rmtree", counted(shutil.rmtree))
        try:
            work.release()
        finally:
            work.leave()  # as the system does


@pytest.mark.parametrize("step", range(1, 6))
def test_a_run_that_dies_when_all_is_done_leaves_nothing_that_stays(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Work, "release", Work.leave)
        MADE["histogram"](insecure_seed=1, out=target)
    work = reopen(target)
    assert work is not None
    assert {entry.name for entry in work.path.iterdir()} == {
        "lock",
        "note.json",
        "answers",
        "measured",
    }
    assert work.is_in_place()
    with pytest.raises(Killed):
        killed_while_removing(work, step)
    assert left_over(tmp_path) == {target: "The new release is in its place. " if step < 4 else ""}
    if step < 4:
        assert resume(target).verify()
    else:
        with pytest.raises(RequestError, match=f"Nothing was left unfinished at {target}"):
            resume(target)
    assert not work_folder(target).exists()
    assert tt.verify(target)

"""Once everything is measured a release is finished without its data, whatever step of the
estimation died.
"""

import json
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.errors import PaidNotFinishedError, RequestError, StorageError
from tallytree.kinds.verbs import clean, resume
from tallytree.ledger.accounts import create_account
from tallytree.privacy.budget import Budget
from tallytree.storage.sealing import OWN_CHECKSUM, sealed
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
        "tallytree.group_sizes.mechanisms.size_bins",
        "fit_size_bins",
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


def left_measured(folder: Path, **how: Any) -> Path:
    """The work folder of a release that died when everything was measured."""
    with pytest.MonkeyPatch.context() as patch:
        owner = import_module("tallytree.group_sizes.mechanisms.adaptive")
        patch.setattr(owner, "estimate_staircases", dying(owner.estimate_staircases, 1))
        with pytest.raises(PaidNotFinishedError):
            MADE["group-sizes"](out=folder, **how)
    return work_folder(folder)


def test_a_note_that_was_changed_is_not_an_empty_one(tmp_path: Path) -> None:
    """Every flipped bit is refused, nothing is removed, and the note put back finishes the release."""
    note = left_measured(tmp_path / "out", insecure_seed=1) / "note.json"
    whole, kept = note.read_bytes(), sorted(note.parent.rglob("*"))
    damaged = [whole[:-9], b"", b"[]", b"[" * 9000]
    damaged += [
        whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        for place in range(0, len(whole), 7)
    ]
    for text in damaged:
        note.write_bytes(text)
        for use in (resume, claim, reopen):
            with pytest.raises(
                (PaidNotFinishedError, StorageError), match=r"cannot be read|format"
            ):
                use(tmp_path / "out")
    note.unlink()
    with pytest.raises(PaidNotFinishedError, match="is missing"):
        resume(tmp_path / "out")
    note.write_bytes(whole)
    assert sorted(note.parent.rglob("*")) == kept
    assert resume(tmp_path / "out").verify()


@pytest.mark.parametrize("other", ["missing", None, 7, "x", [], {}])
def test_a_note_that_says_too_little_is_damaged_whatever_its_checksum(
    other: Any, tmp_path: Path
) -> None:
    note = left_measured(tmp_path / "out", insecure_seed=1) / "note.json"
    whole = note.read_bytes()
    facts = {name: fact for name, fact in json.loads(whole).items() if name != OWN_CHECKSUM}
    for name in facts.keys() - {"format_version"}:
        if other != "missing" and (facts[name] == other or type(facts[name]) is type(other)):
            continue
        rest = {one: fact for one, fact in facts.items() if one != name}
        note.write_text(sealed(rest if other == "missing" else rest | {name: other}))
        with pytest.raises(PaidNotFinishedError, match=r"is missing, damaged or cannot be read"):
            resume(tmp_path / "out")
    note.write_bytes(whole)
    assert resume(tmp_path / "out").verify()


@pytest.mark.parametrize("place", ["folder", "link"])
def test_a_lock_that_is_no_file_is_one_sentence(place: str, tmp_path: Path) -> None:
    lock = left_measured(tmp_path / "out", insecure_seed=1) / "lock"
    lock.unlink()
    lock.mkdir() if place == "folder" else lock.symlink_to(tmp_path / "elsewhere")
    for use in (resume, claim, clean):
        with pytest.raises(StorageError, match="Cannot write to"):
            use(tmp_path / "out")
    assert not (tmp_path / "elsewhere").exists()
    lock.rmdir() if place == "folder" else lock.unlink()
    assert resume(tmp_path / "out").verify()


def test_what_holds_a_damaged_note_can_be_given_up(tmp_path: Path) -> None:
    note = left_measured(tmp_path / "out", insecure_seed=1) / "note.json"
    note.write_bytes(b"")
    assert left_over(tmp_path) == {tmp_path / "out": ""}
    assert clean(tmp_path / "out") == {}
    assert not list(tmp_path.iterdir())


def test_files_of_a_work_folder_are_their_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        work = left_measured(tmp_path / "out", insecure_seed=1)
    finally:
        os.umask(before)
    files = [file for file in work.rglob("*") if file.is_file()]
    assert len(files) > 5
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert {file.stat().st_mode & 0o077 for file in (work, *work.rglob("*"))} == {0}


def test_a_work_folder_that_others_may_have_written_to_is_refused(tmp_path: Path) -> None:
    path = work_folder(tmp_path / "out")
    path.mkdir(mode=0o700)
    path.chmod(0o770)
    for use in (claim, reopen):
        with pytest.raises(StorageError, match="may be written to by others"):
            use(tmp_path / "out")
    assert not list(path.iterdir())
    path.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    for use in (claim, reopen):
        with pytest.raises(StorageError, match="is a link"):
            use(tmp_path / "out")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_work_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_measured(tmp_path / "out", insecure_seed=1)
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    for use in (resume, claim, clean):
        with pytest.raises(StorageError, match="belongs to another user"):
            use(tmp_path / "out")


def test_another_key_does_not_finish_the_release_of_an_earlier_one(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "homes", Budget("pure", Fraction(5)))
    pays = {"ledger": ledger, "dataset": "homes"}
    with pytest.MonkeyPatch.context() as patch:
        owner = import_module("tallytree.group_sizes.mechanisms.turns")
        patch.setattr(owner, "estimate_staircases", dying(owner.estimate_staircases, 1))
        with pytest.raises(PaidNotFinishedError):
            MADE["group-sizes"](out=tmp_path / "out", idempotency_key="first", **pays)
    with pytest.raises(PaidNotFinishedError, match="begun under the idempotency key 'first'"):
        MADE["group-sizes"](out=tmp_path / "out", idempotency_key="second", **pays)
    made = MADE["group-sizes"](out=tmp_path / "out", idempotency_key="first", **pays)
    assert made.manifest["privacy"]["ledger"]["key"] == "first"


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

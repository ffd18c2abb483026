"""A stream folder that is copied, or put back from a backup: its published steps are drawn once."""

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import PaidNotFinishedError, RequestError
from tallytree.ledger.accounts import create_account, list_accounts, read_history
from tallytree.ledger.chain import entry_from_row
from tallytree.ledger.checks import check_history
from tallytree.privacy.budget import Budget

ARRIVALS = np.random.default_rng(1).integers(0, 50, 60)


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "visits", Budget("pure", Fraction(1)))
    return {"horizon": 60, "epsilon": 1, "ledger": ledger, "dataset": "visits"}


def history(options: dict[str, Any]) -> list[Any]:
    return read_history(options["ledger"], "visits")


def test_of_four_copies_one_goes_on(tmp_path: Path, options: dict[str, Any]) -> None:
    """Four noises for each of the 40 new steps would lose up to 4 where 1 is stated."""
    tt.stream(counts=ARRIVALS[:20], out=tmp_path / "0", **options)
    for name in "123":
        shutil.copytree(tmp_path / "0", tmp_path / name)
    first = tt.stream(counts=ARRIVALS, out=tmp_path / "0", **options)
    noises = {tuple(first.tables(noisy=True)["noisy.parquet"]["value"].to_pylist())}
    for name in "123":
        kept = (tmp_path / name / "manifest.json").read_bytes()
        with pytest.raises(RequestError, match=r"at step 20, .* from there to step 60") as refusal:
            tt.stream(counts=ARRIVALS, out=tmp_path / name, **options)
        assert not isinstance(refusal.value, PaidNotFinishedError)
        assert (tmp_path / name / "manifest.json").read_bytes() == kept
        noises.add(tuple(first.tables(noisy=True)["noisy.parquet"]["value"].to_pylist()))
    assert len(noises) == 1
    assert list_accounts(options["ledger"])[0].spent == 1
    assert not check_history(history(options))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "2", "3", "ledger.db"]


def test_a_folder_put_back_is_refused_and_the_newest_goes_on(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    tt.stream(counts=ARRIVALS[:5], out=out, **options)
    for n_steps in (6, 9):
        shutil.copytree(out, tmp_path / f"before {n_steps}")
        tt.stream(counts=ARRIVALS[:n_steps], out=out, **options)
    newest = out.rename(tmp_path / "newest")
    for n_steps in (6, 9):
        (tmp_path / f"before {n_steps}").rename(out)
        with pytest.raises(RequestError, match="copied or put back"):
            tt.stream(counts=ARRIVALS[:12], out=out, **options)
        shutil.rmtree(out)
    newest.rename(out)
    assert tt.stream(counts=ARRIVALS[:12], out=out, **options).n_steps == 12
    steps = [
        (row.key.partition(" ")[0], json.loads(row.detail)["reached"])
        for row in history(options)
        if row.kind == "advance"
    ]
    assert steps == [("5", 6), ("6", 9), ("9", 12)]
    assert not check_history(history(options))


@pytest.mark.parametrize("where", ["before the note", "after the note", "all is drawn"])
def test_a_run_that_dies_goes_on_and_a_copy_of_its_folder_does_not(
    where: str, tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, copy = tmp_path / "out", tmp_path / "copy"
    tt.stream(counts=ARRIVALS[:5], out=out, **options)
    shutil.copytree(out, copy)

    def die(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the power failed")

    place = {
        "before the note": "tallytree.ledger.advance.note_advance",
        "after the note": "tallytree.streams.publish.measure_arrivals",
        "all is drawn": "tallytree.streams.publish.finish",
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(place, die)
        with pytest.raises(PaidNotFinishedError):
            tt.stream(counts=ARRIVALS[:9], out=out, **options)
    if where != "before the note":
        with pytest.raises(RequestError, match="copied or put back"):
            tt.stream(counts=ARRIVALS[:9], out=copy, **options)
    made = (
        tt.resume(out)
        if where == "all is drawn"
        else tt.stream(counts=ARRIVALS[:9], out=out, **options)
    )
    assert made.n_steps == 9
    with pytest.raises(RequestError, match="copied or put back"):
        tt.stream(counts=ARRIVALS[:9], out=copy, **options)
    assert tt.stream(counts=ARRIVALS[:12], out=out, **options).n_steps == 12


@pytest.mark.parametrize("n_before", [0, 20])
@pytest.mark.parametrize(
    "died_at",
    ["tallytree.streams.publish.measure_arrivals", "tallytree.releases.keeping.build_folder"],
)
def test_of_four_copies_of_an_unfinished_run_one_goes_on(
    died_at: str,
    n_before: int,
    tmp_path: Path,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A copy with its work folder has the name of the run too, and drew noise of its own: four
    noises, spent 1.
    """
    (tmp_path / "0").mkdir()
    if n_before:
        tt.stream(counts=ARRIVALS[:n_before], out=tmp_path / "0" / "out", **options)

    def die(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the power failed")

    with monkeypatch.context() as patch:
        patch.setattr(died_at, die)
        with pytest.raises(PaidNotFinishedError):
            tt.stream(counts=ARRIVALS, out=tmp_path / "0" / "out", **options)
    for name in "123":
        shutil.copytree(tmp_path / "0", tmp_path / name)
    noises, refused = set(), 0
    for name in "0123":
        try:
            made = tt.stream(counts=ARRIVALS, out=tmp_path / name / "out", **options)
            noises.add(tuple(made.noisy.tolist()))
        except PaidNotFinishedError:
            refused += 1
            assert not list((tmp_path / name / ".out.tallytree").glob("measured"))
    assert len(noises) == 1
    assert refused == (3 if n_before == 0 or "measure_" in died_at else 0)
    assert list_accounts(options["ledger"])[0].spent == 1
    assert not check_history(history(options))


def test_of_two_copies_that_draw_at_one_moment_one_is_released(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have drawn before either is noted: the first that is noted is the run."""
    out, copy = tmp_path / "0" / "out", tmp_path / "1" / "out"
    out.parent.mkdir()
    tt.stream(counts=ARRIVALS[:5], out=out, **options)

    def die(*arguments: Any, **named: Any) -> None:
        raise RuntimeError("the power failed")

    for place, folder in (
        ("tallytree.streams.publish.measure_arrivals", out),
        ("tallytree.releases.keeping.tell_measured", out),
        ("tallytree.releases.keeping.tell_measured", copy),
    ):
        if folder == copy:
            shutil.copytree(tmp_path / "0.begun", tmp_path / "1")
        with monkeypatch.context() as patch:
            patch.setattr(place, die)
            with pytest.raises(PaidNotFinishedError, match="the power failed"):
                tt.stream(counts=ARRIVALS[:9], out=folder, **options)
        if "measure_" in place:
            shutil.copytree(tmp_path / "0", tmp_path / "0.begun")
    assert tt.resume(copy).n_steps == 9
    with pytest.raises(RequestError, match="went on from step 5 with other noise"):
        tt.resume(out)
    assert tt.load(out).n_steps == 5
    assert tt.stream(counts=ARRIVALS[:12], out=copy, **options).n_steps == 12
    assert not check_history(history(options))


def test_a_stream_that_was_paid_for_goes_on_with_its_ledger_alone(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """Without it a copy could go on unseen."""
    tt.stream(counts=ARRIVALS[:5], out=tmp_path / "out", **options)
    free = {name: value for name, value in options.items() if name not in ("ledger", "dataset")}
    with pytest.raises(RequestError, match="name that account and its ledger"):
        tt.stream(counts=ARRIVALS[:6], out=tmp_path / "out", **free)


def test_two_copies_at_one_moment_leave_a_step_once(
    tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look before anything is claimed does not decide: the note does."""
    tt.stream(counts=ARRIVALS[:5], out=tmp_path / "one", **options)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    tt.stream(counts=ARRIVALS[:9], out=tmp_path / "one", **options)
    monkeypatch.setattr("tallytree.ledger.advance.refuse_behind", lambda *arguments: None)
    with pytest.raises(PaidNotFinishedError, match="copied or put back"):
        tt.stream(counts=ARRIVALS[:9], out=tmp_path / "two", **options)
    assert not list((tmp_path / ".two.tallytree" / "answers").iterdir())


@pytest.mark.parametrize("paid", [True, False])
def test_without_a_ledger_the_statement_says_what_is_assumed(
    paid: bool, tmp_path: Path, options: dict[str, Any]
) -> None:
    if not paid:
        del options["ledger"], options["dataset"]
    made = tt.stream(counts=ARRIVALS[:5], out=tmp_path / "out", **options)
    statement = made.manifest["privacy"]["statement"]
    assert ("goes on from its one folder, never from a copy" in statement) is not paid
    tt.verify(tmp_path / "out").raise_if_failed()


def test_a_forged_note_is_found(tmp_path: Path, options: dict[str, Any]) -> None:
    tt.stream(counts=ARRIVALS[:5], out=tmp_path / "out", **options)
    tt.stream(counts=ARRIVALS[:6], out=tmp_path / "out", **options)
    rows = [row.as_row() for row in history(options)]
    number = next(place for place, row in enumerate(rows) if row["kind"] == "advance")
    for change in ({"key": "5 another"}, {"key": "five"}, {"digest": "0"}):
        forged = [
            entry_from_row({**row, **(change if place == number else {})})
            for place, row in enumerate(rows)
        ]
        assert check_history(forged)

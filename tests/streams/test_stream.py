"""Streams in folders and in memory: what was released stays, what was paid is enough."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tallytree as tt
from tallytree.errors import (
    InputError,
    PaidNotFinishedError,
    RequestError,
    StorageError,
    TallytreeError,
)
from tallytree.kinds.verbs import verify_privacy
from tallytree.ledger.accounts import create_account, list_accounts
from tallytree.ledger.payment import Payment
from tallytree.privacy.budget import Budget
from tallytree.privacy.journal import _read
from tallytree.storage.folder import _write_table, write_manifest
from tallytree.storage.rename import move_new
from tallytree.storage.work import ANSWERS, REPLACED, claim, work_folder
from tests.forging import forge

ARRIVALS = np.random.default_rng(1).integers(0, 50, 60)
ONE = Budget("pure", Fraction(1))
LOSSES: dict[str, dict[str, Any]] = {
    "pure": {"epsilon": 1},
    "zcdp": {"rho": "1/2", "definition": "zcdp"},
}


def assert_starts_with(longer: pa.Table, shorter: pa.Table) -> None:
    assert longer.slice(0, shorter.num_rows).equals(shorter)


@pytest.mark.parametrize("horizon", [64, None])
@pytest.mark.parametrize("loss", LOSSES)
def test_three_runs_are_one_and_what_was_released_stays(
    loss: str, horizon: int | None, tmp_path: Path
) -> None:
    options = {"horizon": horizon, "insecure_seed": 7, **LOSSES[loss]}
    together = tt.stream(counts=ARRIVALS, **options)
    before: dict[str, pa.Table] = {}
    for stop in (1, 23, 60):
        made = tt.stream(counts=ARRIVALS[:stop], out=tmp_path / "out", **options)
        assert tt.load(tmp_path / "out").table().equals(made.table())
        tables = made.tables(noisy=True)
        for name, table in before.items():
            assert_starts_with(tables[name], table)
        before = tables
        tt.verify(tmp_path / "out").raise_if_failed()
    assert made.noisy is not None
    assert together.noisy is not None
    assert made.noisy.tolist() == together.noisy.tolist()
    np.testing.assert_allclose(made.estimates, together.estimates, rtol=1e-9)
    assert made.manifest == together.manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_new_rows_have_fresh_noise(tmp_path: Path) -> None:
    """Two streams that go on from the same folder differ from there on, and only there."""
    tt.stream(counts=ARRIVALS[:20], horizon=60, epsilon=1, out=tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = (
        tt.stream(counts=ARRIVALS, horizon=60, epsilon=1, out=tmp_path / name).tables(noisy=True)[
            "noisy.parquet"
        ]
        for name in ("one", "two")
    )
    step, same = one["step"].to_numpy(), one["value"].to_numpy() == two["value"].to_numpy()
    assert same[step < 20].all()
    assert same[step >= 20].mean() < 0.5  # 41 draws of a scale of 2 or more
    assert verify_privacy(tmp_path / "one")


def test_a_stream_is_paid_for_once(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "visits", ONE)
    options: dict[str, Any] = {"horizon": 60, "epsilon": 1, "out": tmp_path / "out"}
    for stop in (5, 10, 20):
        tt.stream(counts=ARRIVALS[:stop], ledger=Payment(ledger, "visits", key="v"), **options)
        (account,) = list_accounts(ledger)
        assert account.spent == 1
        assert not account.unfinished
    receipt = tt.load(tmp_path / "out").manifest["privacy"]["ledger"]
    made = tt.stream(counts=ARRIVALS[:30], ledger=ledger, dataset="visits", **options)
    assert made.manifest["privacy"]["ledger"] == receipt
    with pytest.raises(RequestError, match="started from the account 'visits'"):
        tt.stream(counts=ARRIVALS, **options)
    with pytest.raises(RequestError, match="started from the account 'visits'"):
        tt.stream(counts=ARRIVALS, ledger=ledger, dataset="others", **options)
    free = {**options, "out": tmp_path / "free"}
    tt.stream(counts=ARRIVALS[:2], **free)
    with pytest.raises(RequestError, match="started without a ledger"):
        tt.stream(counts=ARRIVALS[:3], ledger=ledger, dataset="visits", **free)


def die(*arguments: Any, **options: Any) -> None:
    raise RuntimeError("the power failed")


# Where a run dies, and whether its steps are in place by then.
DEATHS = {
    "tallytree.releases.keeping.build_folder": False,  # all rows are drawn and kept
    "tallytree.releases.keeping.finish": False,
    "tallytree.storage.work.Work.put_into_place": False,
    "tallytree.releases.keeping.report_release": True,
}


@pytest.mark.parametrize("where", DEATHS)
@pytest.mark.parametrize("before", [0, 3])
def test_what_a_run_that_died_has_drawn_is_released_by_the_next(
    where: str, before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the first run dies or a later one; and the next one goes further."""
    ledger, out = str(tmp_path / "ledger.db"), tmp_path / "out"
    create_account(ledger, "visits", ONE)
    options: dict[str, Any] = {
        "horizon": 60,
        "epsilon": 1,
        "out": out,
        "ledger": ledger,
        "dataset": "visits",
    }
    if before:
        tt.stream(counts=ARRIVALS[:before], **options)
    with monkeypatch.context() as patch:
        patch.setattr(
            "tallytree.streams.publish.finish" if where.endswith(".finish") else where, die
        )
        with pytest.raises(PaidNotFinishedError, match="tallytree resume"):
            tt.stream(counts=ARRIVALS[:9], **options)
    assert out.exists() == (DEATHS[where] or before > 0)
    answers = work_folder(out) / ANSWERS
    kept = np.concatenate([_read(file)[1] for file in sorted(answers.glob("*.answer"))])
    if where.endswith("build_folder"):
        with pytest.raises(PaidNotFinishedError, match="up to step 9 already"):
            tt.stream(counts=ARRIVALS[:8], **options)
    else:
        with pytest.raises(PaidNotFinishedError, match=r"measured already .* read on \d{4}-"):
            tt.stream(counts=ARRIVALS[:12], **options)
        assert tt.resume(out).n_steps == 9
    made = tt.stream(counts=ARRIVALS[:12], **options)
    rows = made.tables(noisy=True)["noisy.parquet"]
    drawn = rows.filter((pc.field("step") >= before) & (pc.field("step") < 9))["value"].to_pylist()
    assert sorted(drawn) == sorted(kept.tolist())
    (account,) = list_accounts(ledger)
    assert (account.spent, account.unfinished) == (1, ())
    tt.verify(out).raise_if_failed()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger.db", "out"]


def test_a_run_that_died_is_finished_without_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    first = tt.stream(counts=ARRIVALS[:5], horizon=60, epsilon=1, out=out)
    with monkeypatch.context() as patch:
        patch.setattr("tallytree.storage.work.Work.put_into_place", die)
        with pytest.raises(PaidNotFinishedError):
            tt.stream(counts=ARRIVALS[:9], horizon=60, epsilon=1, out=out)
    assert tt.load(out).table().equals(first.table())
    made = tt.resume(out)
    assert made.n_steps == 9
    assert_starts_with(tt.load(out).table(), first.table())
    assert_starts_with(
        tt.stream(counts=ARRIVALS[:20], horizon=60, epsilon=1, out=out).table(), made.table()
    )


def test_another_run_at_the_same_time_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    tt.stream(counts=ARRIVALS[:5], horizon=60, epsilon=1, out=out)
    kept = (out / "manifest.json").read_bytes()
    work = claim(out, overwrite=True)
    with pytest.raises(StorageError, match="Another run is writing"):
        tt.stream(counts=ARRIVALS[:6], horizon=60, epsilon=1, out=out)
    work.release()
    assert (out / "manifest.json").read_bytes() == kept
    assert tt.stream(counts=ARRIVALS[:6], horizon=60, epsilon=1, out=out).n_steps == 6


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "loss": ({"epsilon": 2}, "epsilon"),
    "definition": ({"epsilon": None, "rho": 1, "definition": "zcdp"}, "definition"),
    "horizon": ({"horizon": 61}, "horizon"),
    "no horizon": ({"horizon": None}, "horizon"),
    "start": ({"start": 2}, "start"),
    "unit": ({"contributions": 2}, "unit"),
    "name": ({"entity": "person"}, "unit"),
    "tree": ({"branching": 2}, "branching"),
    "inference": ({"inference": False}, "inference"),
    "objective": ({"objective": "largest"}, "objective"),
    "seed": ({"insecure_seed": 1}, "private"),
}


@pytest.mark.parametrize("case", CHANGED)
def test_another_request_is_refused(case: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"horizon": 60, "epsilon": 1, "out": tmp_path / "out"}
    tt.stream(counts=ARRIVALS[:5], **options)
    kept = (tmp_path / "out" / "manifest.json").read_bytes()
    change, named = CHANGED[case]
    with pytest.raises(RequestError, match=f"holds another stream: .*{named}.* differ"):
        tt.stream(counts=ARRIVALS[:6], **{**options, **change})
    assert (tmp_path / "out" / "manifest.json").read_bytes() == kept


def test_nothing_new_changes_nothing_and_going_back_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"horizon": 60, "epsilon": 1, "out": tmp_path / "out"}
    tt.stream(counts=ARRIVALS[:5], **options)
    kept = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    tt.stream(counts=ARRIVALS[:5], **options)
    with pytest.raises(RequestError, match="up to step 5 already"):
        tt.stream(counts=ARRIVALS[:4], **options)
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == kept


def rewritten(folder: Path, name: str, table: pa.Table) -> None:
    """A table changed as somebody would who knows the format: with checksums that fit."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = _write_table(folder / name, table)
    forge(folder, manifest)


def test_a_changed_row_is_found_and_no_stream_goes_on_from_it(tmp_path: Path) -> None:
    options: dict[str, Any] = {"horizon": 60, "epsilon": 1, "out": tmp_path / "out"}
    made = tt.stream(counts=ARRIVALS[:5], **options)
    tables = made.tables(noisy=True)
    for name, column, failed in (
        ("noisy.parquet", "value", "estimates follow from the noisy answers"),
        ("counts.parquet", "std_error", "standard errors follow from the noise"),
        ("counts.parquet", "count", "tables can be read"),
        ("noisy.parquet", "level", "tables can be read"),
    ):
        table = tables[name]
        values = table[column].to_numpy().copy()
        values[2] += 1
        changed = table.set_column(table.column_names.index(column), column, [values])
        (tmp_path / "out" / name).write_bytes(b"changed")
        assert [c.name for c in tt.verify(tmp_path / "out").checks if not c.passed] == [
            "files match their checksums"
        ]
        with pytest.raises(StorageError, match="was changed"):
            tt.stream(counts=ARRIVALS[:6], **options)
        rewritten(tmp_path / "out", name, changed)
        assert [check.name for check in tt.verify(tmp_path / "out").checks if not check.passed] == [
            failed
        ]
        with pytest.raises(TallytreeError):
            tt.stream(counts=ARRIVALS[:6], **options)
        rewritten(tmp_path / "out", name, table)
        assert tt.verify(tmp_path / "out")


@pytest.mark.parametrize(
    "route", ["fixed", "levels", "composition", "branching", "horizon", "n_steps", "grows"]
)
def test_a_forged_record_is_found(route: str, tmp_path: Path) -> None:
    folder = tt.stream(counts=ARRIVALS[:5], horizon=60, epsilon=1).save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    match route:
        case "fixed":
            manifest["privacy"]["fixed"] = []
        case "levels":
            manifest["privacy"]["levels"][0]["scale"] = "100"
        case "composition":
            manifest["privacy"]["composition"] = manifest["privacy"]["composition"]["parts"][0]
        case "branching":
            manifest["mechanism"]["branching"] = [2]
        case "horizon":
            manifest["mechanism"]["horizon"] = 4
        case "n_steps":
            manifest["n_steps"] = 4
        case "grows":
            manifest["grows"].append("privacy")
    write_manifest(folder, {name: value for name, value in manifest.items() if name != "sha256"})
    assert not tt.verify(folder)


def test_a_stream_that_was_set_aside_by_a_run_that_died_goes_on(tmp_path: Path) -> None:
    """Where the system cannot exchange folders: otherwise its rows would be drawn a second time."""
    out = tmp_path / "out"
    first = tt.stream(counts=ARRIVALS[:5], horizon=60, epsilon=1, out=out)
    work_folder(out).mkdir()
    out.rename(work_folder(out) / REPLACED)
    made = tt.stream(counts=ARRIVALS[:9], horizon=60, epsilon=1, out=out)
    assert_starts_with(made.table(), first.table())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_a_write_that_fails_leaves_the_stream_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system cannot exchange folders, and the disk is full when the old one is set aside."""
    out = tmp_path / "out"
    first = tt.stream(counts=ARRIVALS[:5], horizon=60, epsilon=1, out=out)
    moves = iter([OSError(28, "No space left on device")])

    def move(work: Path, target: Path) -> None:
        for error in moves:
            raise error
        move_new(work, target)

    with monkeypatch.context() as patch:
        patch.setattr("tallytree.storage.work.swap", lambda work, target: False)
        patch.setattr("tallytree.storage.work.move_new", move)
        with pytest.raises(PaidNotFinishedError, match="No space left"):
            tt.stream(counts=ARRIVALS[:9], horizon=60, epsilon=1, out=out)
    assert tt.load(out).table().equals(first.table())
    assert_starts_with(tt.resume(out).table(), first.table())


def test_a_stream_that_was_estimated_again_does_not_go_on(tmp_path: Path) -> None:
    """Its rows are those of another folder, and steps after them would be drawn in both."""
    tt.stream(counts=ARRIVALS[:5], horizon=60, epsilon=1, out=tmp_path / "out")
    tt.re_estimate(tmp_path / "out").save(tmp_path / "again")
    tt.verify(tmp_path / "again").raise_if_failed()
    with pytest.raises(RequestError, match="estimated again from another folder"):
        tt.stream(counts=ARRIVALS[:6], horizon=60, epsilon=1, out=tmp_path / "again")


def test_other_folders_are_not_touched(tmp_path: Path) -> None:
    tt.histogram([1, 2], epsilon=1).save(tmp_path / "out")
    with pytest.raises(StorageError, match="another kind"):
        tt.stream(counts=[1], horizon=4, epsilon=1, out=tmp_path / "out")
    tt.stream(counts=[1], horizon=4, epsilon=1).save(tmp_path / "bare", noisy=False)
    assert tt.verify(tmp_path / "bare")
    with pytest.raises(StorageError, match="without its noisy rows"):
        tt.stream(counts=[1, 2], horizon=4, epsilon=1, out=tmp_path / "bare")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either a table or counts"),
        ({"counts": [1], "source": [1]}, "either a table or counts"),
        ({"counts": [1], "until": 1}, "go with a table"),
        ({"counts": [1], "mechanism": "square-root", "branching": 2}, "are of trees"),
        ({"counts": [1], "mechanism": "square-root", "inference": False}, "are of trees"),
        ({"counts": [1], "unit": "who"}, "unit"),
        ({"counts": [1], "where": "a=b"}, "where"),
        ({"source": pa.table({"t": [1]})}, "needs column=, when a row came, and until="),
        ({"source": pa.table({"t": [1]}), "column": "t", "until": 0}, "No step is over"),
        ({"source": pa.table({"t": [1]}), "column": "t", "until": 5}, "more than its horizon of 4"),
        ({"counts": [1] * 5}, "more than its horizon of 4"),
    ],
)
def test_half_a_request_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        tt.stream(horizon=4, epsilon=1, **options)
    with pytest.raises(InputError, match="one dimension"):
        tt.stream(counts=[[1]], horizon=4, epsilon=1)


def test_ranges_of_steps_are_differences_with_errors_that_hold() -> None:
    """Intervals of 95 % over 100 seeded streams; of ranges that are often asked, under both
    strategies.
    """
    for loss in LOSSES.values():
        held, squared, stated = 0, 0.0, 0.0
        for seed in range(100):
            made = tt.stream(counts=ARRIVALS, horizon=60, insecure_seed=seed, **loss)
            for first, last in ((1, 7), (8, 14), (30, 60)):
                truth, answer = int(ARRIVALS[first - 1 : last].sum()), made.range(first, last)
                held += answer.low <= truth <= answer.high
                squared += (answer.estimate - truth) ** 2
                stated += answer.std_error**2
        assert 0.92 <= held / 300 <= 0.99
        assert squared / stated == pytest.approx(1, abs=0.2)
    whole, total = made.range(1, 60), made.total()
    assert (whole.estimate, whole.low, whole.high) == (total.estimate, total.low, total.high)
    assert whole.std_error == pytest.approx(total.std_error)
    for pair in ((0, 3), (3, 2), (1, 61)):
        with pytest.raises(RequestError, match="Ranges run from one step"):
            made.range(*pair)


def test_epsilon_and_delta_are_kept_and_stated(tmp_path: Path) -> None:
    made = tt.stream(counts=ARRIVALS, horizon=365, epsilon=1, delta="1e-6", out=tmp_path / "out")
    assert "(ε, δ)-differential privacy, ε = 1, δ = 1e-6" in made.manifest["privacy"]["statement"]
    assert made.mechanism == "scaled-root"
    assert verify_privacy(tmp_path / "out")
    stated = {"epsilon": 1, "delta": "1e-6"}
    for many in ({"contributions": 2**20 // 365 + 1, "horizon": 365}, {"contributions": 2}):
        with pytest.raises(RequestError, match="One unit may change"):
            tt.stream(counts=ARRIVALS, **stated, **many)
    assert (
        tt.stream(counts=ARRIVALS, **stated, contributions=2**20 // 365, horizon=365).n_steps == 60
    )


def test_dates_name_steps() -> None:
    made = tt.stream(
        counts=[5, 6, 7],
        start="2025-01-06",
        every="week",
        horizon=52,
        epsilon=1000,
        insecure_seed=1,
    )
    assert made.range("2025-01-13", "2025-01-26").estimate == 13
    assert [str(day) for day in made.table()["step"].to_pylist()] == [
        "2025-01-06",
        "2025-01-13",
        "2025-01-20",
    ]
    asked = tt.ask(made, ranges=["2025-01-06:2025-01-12"]).facts["answers"][0]
    assert asked["estimate"] == 5
    assert "18" in made._repr_html_()
    assert repr(made) == (
        "StreamRelease(3 steps, tree, epsilon = 1000, NOT PRIVATE: made with an insecure seed)"
    )


def test_a_counter_is_a_release_too(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "visits", ONE)
    with tt.StreamCounter(61, epsilon=1, ledger=ledger, dataset="visits") as counter:
        with pytest.raises(RequestError, match="No step was taken"):
            counter.release()
        answers = [counter.add(number) for number in ARRIVALS]
        folder = counter.release().save(tmp_path / "out")
    assert list_accounts(ledger)[0].spent == 1
    tt.verify(folder).raise_if_failed()
    assert verify_privacy(folder)
    loaded = tt.load(folder)
    np.testing.assert_allclose(loaded.estimates, [answer.estimate for answer in answers], atol=1e-6)
    with pytest.raises(RequestError, match="was forgotten"):
        counter.add(1)
    assert counter.count() == answers[-1]
    with pytest.raises(RequestError, match="holds another stream: rows differ"):
        tt.stream(counts=[*ARRIVALS], horizon=61, epsilon=1, out=folder)
    with pytest.raises(TallytreeError, match="left"):
        tt.StreamCounter(60, epsilon=1, ledger=ledger, dataset="visits")


def test_threads_share_a_counter() -> None:
    counter = tt.StreamCounter(400, rho=10**14, definition="zcdp", insecure_seed=1)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(counter.add, [1] * 400))
    assert counter.steps == 400
    np.testing.assert_allclose(
        sorted(answer.estimate for answer in answers), np.arange(1, 401), atol=1e-3
    )


def test_a_forked_process_cannot_count_on(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = tt.StreamCounter(8, epsilon=1)
    counter.add(1)
    own = os.getpid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: own + 1)
        with pytest.raises(RequestError, match="belongs to another process"):
            counter.add(1)
    assert counter.steps == 1
    counter.add(1)
    assert counter.release().n_steps == 2


def test_a_unit_that_comes_back_is_kept_checked_and_not_forged(tmp_path: Path) -> None:
    """A smaller noise than the gap allows, or a gap that was not asked for, is found."""
    rng = np.random.default_rng(1)
    visits = pa.table({"day": rng.integers(1, 41, 400), "who": rng.integers(0, 60, 400)})
    options: dict[str, Any] = {
        "column": "day",
        "unit": "who",
        "contributions": 3,
        "min_gap": 10,
        "horizon": 40,
        "out": tmp_path / "out",
        **LOSSES["zcdp"],
    }
    first = tt.stream(visits, until=20, **options)
    made = tt.stream(visits, until=40, **options)
    assert_starts_with(made.table(), first.table())
    assert "at most 3 are counted, at least 10 steps apart" in made.manifest["privacy"]["statement"]
    tt.verify(tmp_path / "out").raise_if_failed()
    assert verify_privacy(tmp_path / "out")
    with pytest.raises(RequestError, match=r"holds another stream: .*unit.* differ"):
        tt.stream(visits, until=40, **{**options, "min_gap": 11})
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    privacy = manifest["privacy"]
    forged = {**privacy, "unit": {**privacy["unit"], "min_gap": 20}}
    shutil.copytree(tmp_path / "out", tmp_path / "forged")
    forge(tmp_path / "forged", {**manifest, "privacy": forged})
    assert not verify_privacy(tmp_path / "forged")

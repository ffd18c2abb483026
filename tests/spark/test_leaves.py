"""Releases in part files: equal to those of one machine, whole or not there, and finished from what
was measured.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import PaidNotFinishedError, StorageError, VerificationError
from tallytree.group_sizes.release.tables import COUNTS_SCHEMA
from tallytree.group_sizes.release.written import WrittenRelease
from tallytree.kinds.verbs import clean, resume
from tallytree.ledger.accounts import create_account, read_history
from tallytree.privacy.budget import Budget
from tallytree.releases.opening import open_folder
from tallytree.spark import leaf_tasks, tasks
from tallytree.spark.counts import SparkCounts
from tallytree.storage.folder import MANIFEST, read_manifest, write_manifest, write_part
from tests.spark.in_process import held_in_process

READING: dict[str, Any] = {
    "group": "household",
    "levels": ["state", "county", "tract"],
    "root": "US",
    "public": "groups",
}
HOW: dict[str, Any] = {"epsilon": 1, "insecure_seed": 7}
ORDER = [(name, "ascending") for name in ("level", "query", "region", "index")]


def people(n_households: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(1)
    size = rng.geometric(0.4, n_households)
    size[0] = 900
    tract = np.repeat(rng.integers(0, 90, n_households), size)
    household = np.repeat(np.arange(n_households), size)
    labels = {
        "state": [f"s{t // 30}" for t in tract],
        "county": [f"c{t // 6:02d}" for t in tract],
        "tract": [f"t/{t:02d}%" for t in tract],
    }
    return pa.table({"household": household, **labels})


def counts_of(**more: Any) -> Any:
    return tt.read(people(), **{**READING, **more})


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> SparkCounts:
    return held_in_process(counts_of(), monkeypatch)


def noisy_table(folder: Path) -> pa.Table:
    return open_folder(folder).table("noisy.parquet").sort_by(ORDER)


@pytest.mark.parametrize("public", ["groups", "regions"])
@pytest.mark.parametrize("budget", ["auto", ["0", "0", "0", "1"]], ids=["auto", "leaves alone"])
def test_tables_are_those_of_one_machine(
    public: str, budget: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Released rows in the same order, and all answers; where leaves alone are measured they tell
    what is chosen once.
    """
    here = counts_of(public=public)
    local = tt.release(here, **HOW, budget=budget)
    local.save(tmp_path / "local")
    for parallelism in (1, 4):
        out = tmp_path / str(parallelism)
        made = held_in_process(here, monkeypatch, parallelism).release_to(out, **HOW, budget=budget)
        assert isinstance(made, WrittenRelease)
        assert made.verify()
        assert made.n_rows == local.n_rows
        assert made.table().equals(local.table())
        assert (
            open_folder(out)
            .table("counts.parquet")
            .equals(open_folder(tmp_path / "local").table("counts.parquet"))
        )
        assert noisy_table(out).equals(noisy_table(tmp_path / "local"))
        assert (out / "regions.parquet").read_bytes() == (
            tmp_path / "local" / "regions.parquet"
        ).read_bytes()
        assert tt.verify(out)
        assert tt.re_estimate(out).table().equals(local.table())
        assert not list(tmp_path.glob(".*"))


def test_tables_are_those_of_one_machine_under_zcdp(held: SparkCounts, tmp_path: Path) -> None:
    how = {"definition": "zcdp", "rho": "1/2", "insecure_seed": 7}
    local = tt.release(counts_of(), **how)
    local.save(tmp_path / "local")
    made = held.release_to(tmp_path / "out", **how)
    assert isinstance(made, WrittenRelease)
    assert made.table().equals(local.table())
    assert noisy_table(tmp_path / "out").equals(noisy_table(tmp_path / "local"))
    assert tt.verify(tmp_path / "out")


def test_confidential_numbers_of_groups_are_paid_for_once_though_a_run_dies(
    ledger: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file and on a server; the totals that the first run has measured are gone with its key."""
    create_account(ledger, "people", Budget("pure", Fraction(1)))
    private, out = counts_of(public="regions"), tmp_path / "out"
    paid = {"epsilon": 1, "ledger": ledger, "dataset": "people"}
    with monkeypatch.context() as patch:
        held = held_in_process(private, patch)
        dying(patch, tasks, "measure_leaves", 2)
        with pytest.raises(PaidNotFinishedError):
            held.release_to(out, **paid)
    assert not out.exists()
    with monkeypatch.context() as patch:
        assert isinstance(held_in_process(private, patch).release_to(out, **paid), WrittenRelease)
    assert tt.verify(out)
    kinds = [entry.kind for entry in read_history(ledger, "people")]
    assert kinds.count("reserve") == 1
    with pytest.raises(tt.errors.BudgetError):
        held_in_process(private, monkeypatch).release_to(tmp_path / "more", **paid)


def test_a_folder_has_a_part_for_every_piece_and_one_for_the_levels_above(
    held: SparkCounts, tmp_path: Path
) -> None:
    held.release_to(tmp_path / "out", **HOW)
    n_pieces = len(held.bounds) - 1
    assert n_pieces > 2
    files = read_manifest(tmp_path / "out")
    for table in ("counts", "noisy"):
        assert files["parts"][f"{table}.parquet"] == [
            f"{table}-{number:05d}.parquet" for number in range(1 + n_pieces)
        ]
    assert {file.name for file in (tmp_path / "out").iterdir()} == {MANIFEST, *files["files"]}


def test_every_command_reads_parts(
    held: SparkCounts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What commands say of a folder in parts is what they say of the same release in whole tables."""
    out, whole = tmp_path / "out", tmp_path / "whole"
    held.release_to(out, **HOW)
    tt.release(counts_of(), **HOW).save(whole)
    people_file = tmp_path / "people.parquet"
    pq.write_table(people(), people_file)
    truth = [
        "--group",
        "household",
        "--levels",
        "state,county,tract",
        "--root",
        "US",
        "--public",
        "groups",
    ]

    def said(folder: Path, *words: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main([words[0], str(folder), *words[1:]])
        assert not ended.value.code, capsys.readouterr().err
        return capsys.readouterr().out.replace(str(folder), "FOLDER")

    for words in (
        ("verify",),
        ("query", "--region", "US/s0", "--at-least", "2", "--json"),
        ("evaluate", str(people_file), *truth),
        ("compare", str(whole)),
        ("card",),
    ):
        assert said(out, *words) == said(whole, *words), words
    for folder in (out, whole):
        said(folder, "report", "--out", str(tmp_path / f"{folder.name}.html"))
        said(folder, "export", "--out", str(tmp_path / f"{folder.name}.csv"))
        said(folder, "re-estimate", "--out", str(tmp_path / f"{folder.name}-again"))
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    again = [tmp_path / f"{folder}-again" / "counts.parquet" for folder in ("out", "whole")]
    assert again[0].read_bytes() == again[1].read_bytes()


def test_without_raw_measurements(held: SparkCounts, tmp_path: Path) -> None:
    held.release_to(tmp_path / "out", **HOW, noisy=False)
    assert set(read_manifest(tmp_path / "out")["parts"]) == {"counts.parquet"}
    assert tt.verify(tmp_path / "out")


def test_a_copy_of_a_release_in_parts_has_whole_tables(held: SparkCounts, tmp_path: Path) -> None:
    made = held.release_to(tmp_path / "out", **HOW)
    assert made is not None
    made.save(tmp_path / "copy")
    assert "parts" not in read_manifest(tmp_path / "copy")
    assert tt.load(tmp_path / "copy").table().equals(tt.load(tmp_path / "out").table())
    assert tt.ask(made, at_least=3).facts == tt.ask(tt.load(tmp_path / "copy"), at_least=3).facts


@pytest.mark.parametrize("table", ["counts", "noisy"])
def test_verify_finds_a_flipped_bit_in_any_part(
    table: str, held: SparkCounts, tmp_path: Path
) -> None:
    held.release_to(tmp_path / "out", **HOW)
    for part in sorted((tmp_path / "out").glob(f"{table}-*.parquet")):
        whole = part.read_bytes()
        part.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
        assert not tt.verify(tmp_path / "out")
        part.unlink()
        assert f"{part.name} is missing" in str(tt.verify(tmp_path / "out").checks[0].detail)
        part.write_bytes(whole)
    assert tt.verify(tmp_path / "out")


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "one left out": lambda parts: parts["counts.parquet"].pop(),
    "one twice": lambda parts: parts["counts.parquet"].append(parts["counts.parquet"][1]),
    "one of another table": lambda parts: parts["counts.parquet"].append(parts["noisy.parquet"][1]),
    "one that is none": lambda parts: parts["counts.parquet"].append("counts-00099.parquet"),
    "out of the folder": lambda parts: parts["counts.parquet"].append(
        "../out/counts-00001.parquet"
    ),
    "none": lambda parts: parts.update({"counts.parquet": []}),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_verify_finds_lists_of_parts_that_were_changed(
    change: Callable[[dict[str, Any]], Any], held: SparkCounts, tmp_path: Path
) -> None:
    """The checksum of the manifest is made anew: the list is refused, or rows are missing or there
    twice.
    """
    held.release_to(tmp_path / "out", **HOW)
    manifest = read_manifest(tmp_path / "out")
    del manifest["sha256"]
    change(manifest["parts"])
    write_manifest(tmp_path / "out", manifest)
    with suppress(VerificationError):
        assert not tt.verify(tmp_path / "out")


def dying(
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    task: str,
    call: int,
    of: type[BaseException] = OSError,
) -> None:
    """Let a task die in one of its calls, as often as it is called from then on."""
    function, calls = getattr(module, task), 0

    def dies(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls >= call:
            raise of("lost")
        return function(*arguments)

    monkeypatch.setattr(module, task, dies)


def work_of(out: Path) -> Path:
    return out.parent / f".{out.name}.tallytree"


def test_a_run_that_dies_while_it_measures_leaves_nothing_that_loads_and_no_answers_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of two keys for one payment would double the loss: those of the first are gone before
    there is another key.
    """
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        held = held_in_process(counts_of(), patch)
        dying(patch, tasks, "measure_leaves", 2)
        with pytest.raises(PaidNotFinishedError):
            held.release_to(out, epsilon=1)
    assert not out.exists()
    with pytest.raises(PaidNotFinishedError, match="still to be measured"):
        resume(out)
    left = [file for place in work_of(out).glob("parts-*") for file in place.iterdir()]
    assert left
    assert all(
        not (work_of(out).stat().st_mode | file.parent.stat().st_mode) & 0o077 for file in left
    )
    seen: list[bool] = []
    original = tasks.measure_look

    def look(*arguments: Any) -> bytes:
        seen.append(any(file.exists() for file in left))
        return original(*arguments)

    with monkeypatch.context() as patch:
        held = held_in_process(counts_of(), patch)
        patch.setattr(tasks, "measure_look", look)
        held.release_to(out, epsilon=1)
    assert seen == [False]
    assert tt.verify(out)


@pytest.mark.parametrize("task", ["tell_about_leaves", "release_leaves"])
def test_a_run_that_dies_after_it_measured_is_finished_from_its_answers(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On one machine; the same command again draws nothing."""
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        held = held_in_process(counts_of(), patch)
        dying(patch, leaf_tasks, task, 2)
        with pytest.raises(PaidNotFinishedError):
            held.release_to(out, **HOW)
        with pytest.raises(PaidNotFinishedError, match="and the data are not read again"):
            held.release_to(out, **HOW)
    assert not out.exists()
    made = resume(out)
    assert made.table().equals(tt.release(counts_of(), **HOW).table())
    assert tt.verify(out)
    assert not work_of(out).exists()


@pytest.mark.parametrize(
    ("module", "task"), [(tasks, "measure_leaves"), (leaf_tasks, "release_leaves")]
)
def test_a_driver_that_is_stopped_while_executors_write_leaves_what_can_be_dropped(
    module: Any, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        held = held_in_process(counts_of(), patch)
        dying(patch, module, task, 2, KeyboardInterrupt)
        with pytest.raises(PaidNotFinishedError, match="It was stopped"):
            held.release_to(out, **HOW)
    with pytest.raises(StorageError):
        tt.load(out)
    assert clean(out)["state"] == ("paid" if module is tasks else "measured")
    assert not list(tmp_path.iterdir())


def test_a_task_that_outlives_its_run_writes_nothing(tmp_path: Path) -> None:
    """Its folder is gone; the next run has another one."""
    folder = tmp_path / "parts-1"
    folder.mkdir()
    shutil.rmtree(folder)
    with pytest.raises(OSError, match="parts-1"):
        write_part(
            folder, "counts-00001.parquet", pa.RecordBatchReader.from_batches(COUNTS_SCHEMA, [])
        )
    assert not folder.exists()


def test_where_executors_do_not_share_the_folder_the_driver_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = held_in_process(counts_of(), monkeypatch)
    monkeypatch.setattr("tallytree.spark.counts.share_folder", lambda frame, folder: False)
    made = held.release_to(tmp_path / "out", **HOW)
    assert isinstance(made, tt.Release)
    assert "parts" not in read_manifest(tmp_path / "out")
    assert made.table().equals(tt.release(counts_of(), **HOW).table())


def test_addresses_of_object_stores_are_refused_before_anything_is_paid(held: SparkCounts) -> None:
    with pytest.raises(StorageError, match="hadoop fs -put"):
        held.release_to("hdfs://name/out", **HOW)

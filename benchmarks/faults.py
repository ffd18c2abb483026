"""A fault at every change of the disk, whichever library makes it: full, killed, or without power.

A run is watched by its calls of the system, so the writes of Arrow and SQLite are hit as well as
those of Python. After each fault the run is finished as its message says; every payment must then
have ended in one complete release. Runs that replace a release must leave one of the two where it
was, and say which.
"""

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.releases.power_cuts import ForgetfulDisk

import benchmarks
import tallytree as tt
from benchmarks import forked, traced

LEDGER, DATASET = "ledger.db", "census"
FAULTS = ("full once", "full for good", "killed")
# Of the changes that a run makes, every so many are hit.
EVERY = 12


def main() -> dict[str, Any]:
    if not traced.can_watch():
        print("   processes cannot be watched here")
        return {}
    forked.import_everything()
    figures: dict[str, Any] = {}
    for what, look in _cases(1 if benchmarks.FULL else EVERY):
        figures[what] = look()
        print(f"   {what}: {figures[what]}", flush=True)
    return figures


def _cases(every: int) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """What is hit, and how."""
    for name in ("histogram", "adaptive") if benchmarks.FULL else ("histogram",):
        for replacing in (False, True):
            what = f"{name}{', replacing a release' if replacing else ''}"
            for fault in FAULTS:
                yield (
                    f"{what}: {fault}",
                    partial(hit_changes, name, fault, replacing=replacing, every=every),
                )
            for names in (False, True):
                cuts = partial(
                    cut_power, name, replacing=replacing, names=names, every=max(1, every // 2)
                )
                yield (
                    f"{what}: power cut, names that were not flushed are "
                    f"{'kept' if names else 'lost'}",
                    cuts,
                )


def hit_changes(
    name: str, fault: str, *, replacing: bool, every: int = 1, first: int = 1
) -> dict[str, Any]:
    """Hit every so many changes that a run makes, one in each run, from the first on."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        prepared = _prepare(home / "prepared", name, replacing=replacing)
        n_changes = _count(
            prepared, home / "counting", name, replacing=replacing, room=fault != "killed"
        )
        seen, wrong = Counter[str](), []
        for number in range(first, n_changes + 1, every):
            case = Path(shutil.copytree(prepared, home / f"case-{number}"))
            wrong += [
                f"change {number}: {what}"
                for what in _hit(case, name, fault, number, seen, replacing=replacing)
            ]
            forked.drop(case)
    return {
        "changes": n_changes,
        "hit": len(range(first, n_changes + 1, every)),
        "then": dict(seen),
        "wrong": wrong,
    }


def cut_power(name: str, *, replacing: bool, names: bool, every: int = 1) -> dict[str, Any]:
    """Cut the power before every so many flushes of one run, and after the last."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        place = _prepare(home / "run", name, replacing=replacing)
        cuts: list[Path] = []

        def cut(number: int) -> None:
            if number % every == 0:
                cuts.append(home / f"cut-{number}")
                disk.leave(cuts[-1], names=names)

        def decide(change: traced.Change) -> traced.Decision:
            if change.flushes:
                disk.flush(change.file)
            return "pass"

        disk = ForgetfulDisk(place, cut)
        code = _run(place, name, decide, replacing=replacing)
        disk.leave(home / "cut-at-the-end", names=names)
        seen, wrong = Counter[str](), [] if code == 0 else [f"without any fault: exit code {code}"]
        for left in (*cuts, home / "cut-at-the-end"):
            wrong += [
                f"{left.name}: {what}" for what in _finished(left, name, seen, replacing=replacing)
            ]
    return {"flushes": disk.n_flushed, "cuts": len(cuts) + 1, "then": dict(seen), "wrong": wrong}


def _command(name: str, *, replacing: bool) -> list[str]:
    return [
        *forked.RELEASES[name],
        *forked.paid(LEDGER, DATASET),
        *(["--overwrite"] if replacing else []),
    ]


def _prepare(folder: Path, name: str, *, replacing: bool) -> Path:
    """Data, an account, and where it will be replaced a release."""
    forked.in_child(lambda: forked.new_case(folder, LEDGER, DATASET))
    if replacing:
        assert forked.run(_command(name, replacing=False), folder) == 0
        shutil.copytree(folder / forked.OUT, folder / "before")
    return folder


def _run(folder: Path, name: str, decide: Any, *, replacing: bool) -> int:
    command = _command(name, replacing=replacing)
    return traced.watch(
        forked.start(command, folder, "log.txt", traced.stop_to_be_watched), folder, decide
    )


def _count(prepared: Path, folder: Path, name: str, *, replacing: bool, room: bool) -> int:
    """How many changes a run makes that may be hit."""
    shutil.copytree(prepared, folder)
    changes = []

    def decide(change: traced.Change) -> traced.Decision:
        changes.extend([change] * (change.needs_room or not room))
        return "pass"

    code = _run(folder, name, decide, replacing=replacing)
    assert code == 0, (folder / "log.txt").read_text()
    return len(changes)


def _hit(
    case: Path, name: str, fault: str, number: int, seen: Counter[str], *, replacing: bool
) -> list[str]:
    reached = 0

    def decide(change: traced.Change) -> traced.Decision:
        nonlocal reached
        reached += change.needs_room or fault == "killed"
        if fault == "killed":
            return "kill" if reached == number else "pass"
        full = reached >= number if fault == "full for good" else reached == number
        return "full" if full and change.needs_room else "pass"

    code = _run(case, name, decide, replacing=replacing)
    before = forked.in_child(lambda: forked.paid_before(case, LEDGER, DATASET))
    wrong = []
    unfinished = before["reserved"] - before["complete"]
    allowed = {-9} if fault == "killed" else {4} if unfinished else {0, 2, 4}
    if code not in allowed:
        wrong.append(
            f"exit code {code}, {unfinished} paid and unfinished: "
            f"{(case / 'log.txt').read_text()[-500:]}"
        )
    return wrong + _finished(case, name, seen, replacing=replacing)


def _finished(case: Path, name: str, seen: Counter[str], *, replacing: bool) -> list[str]:
    """What is wrong before and after a run that was hit is finished."""
    wrong = []
    if replacing:
        stands = forked.in_child(lambda: _standing(case))
        seen[str(stands["stands"]) if "stands" in stands else "neither"] += 1
        wrong += [stands["error"]] if "error" in stands else []
        said = _told(case)
        if (case / forked.WORK / "note.json").exists() and not _says(
            said, str(stands.get("stands"))
        ):
            wrong.append(f"{stands} stands, and doctor said {said}")
    before = (case / "before" / "manifest.json").read_bytes() if replacing else None
    _, code = forked.finish(case, _command(name, replacing=replacing), LEDGER, before)
    after = forked.in_child(lambda: forked.state_of(case, LEDGER, DATASET, 2 if replacing else 1))
    if code or after.get("error") or after["wrong"]:
        wrong.append(f"finished with {code}: {after}; {(case / 'log.txt').read_text()[-700:]}")
    else:
        seen["finished"] += 1
    return wrong


def _standing(case: Path) -> dict[str, str]:
    """Which release is at the target: the one before, or the new one; it must be whole."""
    tt.verify(case / forked.OUT).raise_if_failed()
    old = (case / "before" / "manifest.json").read_bytes()
    return {
        "stands": "the one before"
        if (case / forked.OUT / "manifest.json").read_bytes() == old
        else "the new one"
    }


def _told(case: Path) -> str:
    (case / "doctor.txt").unlink(missing_ok=True)
    forked.run(["doctor", "--json"], case, "doctor.txt")
    try:
        found = json.loads((case / "doctor.txt").read_text().partition("{")[2].join(["{", ""]))
    except ValueError:
        return (case / "doctor.txt").read_text()
    return str(
        [finding for finding in found.get("findings", []) if finding.get("what") == str(forked.OUT)]
    )


def _says(said: str, stands: str) -> bool:
    return (
        "still holds the release that was to be replaced"
        if stands == "the one before"
        else "new release"
    ) in said


if __name__ == "__main__":
    benchmarks.FULL = "--full" in sys.argv
    main()

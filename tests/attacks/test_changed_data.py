"""A run that died and is repeated after its data changed: what mixing the two would lose, and that
they are never mixed.
"""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import PaidNotFinishedError
from tallytree.kinds.verbs import clean, resume
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.journal import Journal
from tallytree.releases.keeping import PaidNoise
from tallytree.storage.work import Work, work_folder
from tallytree.streams.publish import stream
from tests.attacks.transcript import Asked, Question, listen, loss_between, replay, standing_in
from tests.fuzz.small import by_hats

N_HOUSEHOLDS = 2_000


class Killed(BaseException):
    """The process ends here."""


def town(*members: int) -> Any:
    """Households of one to six, and one of as many members as are named."""
    sizes = [*(1 + number % 6 for number in range(N_HOUSEHOLDS - 1)), *members]
    table = pa.table({"size": sizes, "state": [f"s{number % 4}" for number in range(len(sizes))]})
    return tt.read(table, size="size", levels=["state"], public="groups")


def released(counts: Any, **how: Any) -> Any:
    return tt.release(counts, **({"epsilon": 1, "insecure_seed": 1} | how))


def mixed(first: Any, then: Any, n_first: int, given: list[Asked] | None = None) -> list[Asked]:
    """The transcript of a release whose first questions are answered from one data set and all
    others from another.

    The answers are those of another transcript, or have a little noise.
    """
    asked: list[Asked] = []

    def run(counts: Any, stop: int | None) -> None:
        place = 0

        def answer(question: Question, truth: Any) -> Any:
            nonlocal place
            if place == stop:
                raise Killed
            if place == len(asked):
                noise = np.random.default_rng(place).integers(-2, 3, truth.shape)
                assert given is None or given[place].question == question
                asked.append(
                    Asked(question, truth, truth + noise if given is None else given[place].given)
                )
            place += 1
            return asked[place - 1].given

        with standing_in(answer), suppress(Killed):
            released(counts)

    run(first, n_first)
    run(then, None)
    return asked


def test_two_data_sets_in_one_release_would_lose_more_than_is_stated() -> None:
    """Why they are never mixed: an entity fills one cell of one staircase, but one cell each of
    two.
    """
    n_questions = len(mixed(town(3), town(3), 0))
    worst = Fraction(0)
    for n_first in range(n_questions):
        script = mixed(town(3), town(303), n_first)
        worst = max(worst, loss_between(script, mixed(town(2), town(302), n_first, script), "pure"))
    assert worst > Fraction(18, 10)
    script = mixed(town(3), town(3), 0)
    assert loss_between(script, mixed(town(2), town(2), 0, script), "pure") <= 1


def people(n_first: int, **read: Any) -> Any:
    """Rows of members of households, of which one household has as many as are named."""
    sizes = [n_first, 1, 3, 3, 7, 2, 30]
    rows = {
        "household": [number for number, size in enumerate(sizes) for _ in range(size)],
        "state": [
            "GA" if number % 2 else "NY" for number, size in enumerate(sizes) for _ in range(size)
        ],
        "sex": ["f" if row % 2 else "m" for row in range(sum(sizes))],
        "miles": [1 + row % 3 for row in range(sum(sizes))],
        "person": [row // 2 for row in range(sum(sizes))],
    }
    return tt.read(
        pa.table(rows), **({"group": "household", "levels": ["state"], "public": "groups"} | read)
    )


def drawn(n: int, mechanism: str, **how: Any) -> Any:
    """A map of eight cells."""
    return tt.spatial(counts=[[n, *CELLS[:3]], CELLS[4:]], mechanism=mechanism, epsilon=1, **how)


ZCDP: dict[str, Any] = {"epsilon": None, "rho": 1, "definition": "zcdp"}
CELLS = [9, 2, 0, 4, 30, 1, 1, 0]
CASES: dict[str, Callable[..., Any]] = {
    "adaptive": lambda n, **how: released(people(n), **how),
    "adaptive, zcdp": lambda n, **how: released(people(n), **ZCDP, **how),
    "adaptive, quantities": lambda n, **how: released(
        people(n, quantity="miles", max_quantity=3), **how
    ),
    "adaptive, units": lambda n, **how: released(
        people(n, unit="person", contributions=2, public="regions"), **how
    ),
    "adaptive, private groups": lambda n, **how: released(people(n, public="regions"), **how),
    "adaptive, classes": lambda n, **how: released(people(n, classes="1,2-3,4+"), **how),
    "adaptive, people": lambda n, **how: released(people(n, people={"sex": ["f", "m"]}), **how),
    "hybrid": lambda n, **how: released(people(n), view="hybrid", **how),
    "whole groups": lambda n, **how: released(
        people(n, unit="group", public="regions"), max_size=40, **how
    ),
    "whole groups, zcdp": lambda n, **how: released(
        people(n, unit="group", public="regions"), max_size=40, **ZCDP, **how
    ),
    "histogram": lambda n, **how: tt.histogram(
        [n, *CELLS], mechanism="hierarchical", branching=3, epsilon=1, **how
    ),
    "histogram by hats": lambda n, **how: by_hats(np.array([n, *CELLS]), epsilon=1, **how),
    "histogram of boxes": lambda n, **how: tt.histogram(
        [n, *CELLS], mechanism="adaptive", epsilon=1, **how
    ),
    "degrees of private groups": lambda n, **how: tt.degrees(
        people(n, public="regions"), epsilon=1, **how
    ),
    "quadtree": lambda n, **how: drawn(n, "quadtree", **how),
    "kd-tree": lambda n, **how: drawn(n, "kd-tree", depth=2, **how),
    "adaptive-grid": lambda n, **how: drawn(n, "adaptive-grid", **how),
    "dawa": lambda n, **how: drawn(n, "dawa", **how),
    "privtree": lambda n, **how: drawn(n, "privtree", **how),
}


def killed_after(n_answers: int, make: Callable[..., Any], n: int, folder: Path) -> int:
    """Run until so many answers are kept; how many there are in all, where it does not come so far."""
    keep, kept = Journal._keep, []

    def counted(journal: Journal, *arguments: Any) -> None:
        if len(kept) == n_answers:
            raise Killed
        keep(journal, *arguments)
        kept.append(arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_keep", counted)
        patch.setattr(PaidNoise, "measured", killing)
        with pytest.raises(Killed):
            make(n, out=folder)
    return len(kept)


def killing(*arguments: Any, **options: Any) -> Any:
    raise Killed


def drawing(*arguments: Any, **options: Any) -> Any:
    pytest.fail("something was asked")


@pytest.mark.parametrize("case", CASES)
def test_going_on_with_other_data_is_refused_at_every_moment(case: str, tmp_path: Path) -> None:
    make, n_answers = CASES[case], 0
    while True:
        folder = tmp_path / str(n_answers)
        there = killed_after(n_answers, make, 3, folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "_keep", drawing if there else Journal._keep)
            if there:
                with pytest.raises(
                    PaidNotFinishedError, match=r"from other data .* tallytree clean"
                ) as refused:
                    make(9, out=folder)
                assert "303" not in str(refused.value)
            else:  # nothing was drawn, so nothing is mixed
                make(9, out=folder)
        if there:
            make(3, out=folder)
        assert tt.verify(folder)
        if there < n_answers:
            break
        n_answers += 1
    assert n_answers > 1
    assert all(not path.name.startswith(".") for path in tmp_path.iterdir())


def test_a_release_of_changed_households_loses_what_it_states(tmp_path: Path) -> None:
    """Killed after any round and repeated with 303 members instead of 3: refused; with the data of
    before: ε = 1.
    """
    killed_after(3, lambda n, **how: released(town(n), **how), 3, tmp_path / "out")
    with pytest.raises(PaidNotFinishedError, match="Put the data back as they were"):
        released(town(303), out=tmp_path / "out")
    made = released(town(3), out=tmp_path / "out")
    script = listen(lambda: released(town(3)), np.random.default_rng(1))[1]
    loss = loss_between(script, replay(lambda: released(town(2)), script)[1], "pure")
    assert loss <= written_fraction(made.manifest["privacy"]["epsilon"]) == 1


@pytest.mark.parametrize("moment", ["before the note", "before it is deleted", "before estimating"])
def test_once_all_is_measured_the_data_are_not_read_again(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    doors = {
        "before the note": (
            Work,
            "write_note",
            lambda work, facts: facts.get("state") == "measured",
        ),
        "before it is deleted": ("tallytree.releases.keeping", "forget_reading", lambda *_: True),
        "before estimating": ("tallytree.releases.keeping", "tell_measured", lambda *_: True),
    }
    owner, name, dies = doors[moment]
    with monkeypatch.context() as patch:
        door = f"{owner}.{name}" if isinstance(owner, str) else None
        original = getattr(Work, name, None)

        def dying(*arguments: Any) -> Any:
            if dies(*arguments):
                raise Killed
            return original(*arguments)  # type: ignore[misc]

        patch.setattr(door, dying) if door else patch.setattr(owner, name, dying)
        with pytest.raises(Killed):
            CASES["hybrid"](3, out=target)
    reading = work_folder(target) / "reading"
    assert reading.exists() == (moment != "before estimating")
    if moment == "before the note":
        with pytest.raises(PaidNotFinishedError, match="from other data"):
            CASES["hybrid"](9, out=target)
        CASES["hybrid"](3, out=target)
        return
    with pytest.raises(
        PaidNotFinishedError, match=r"read on \d{4}-\d\d-\d\d .*tallytree resume"
    ) as told:
        tt.histogram(tmp_path / "no file", column="x", bins=2, bounds=(0, 1), epsilon=1, out=target)
    assert not reading.exists()
    assert str(target) in str(told.value)
    assert resume(target).verify()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("harm", ["missing", "cut short", "one bit", "empty"])
def test_answers_without_a_fingerprint_are_not_gone_on_with(harm: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    killed_after(2, CASES["adaptive"], 3, target)
    file = work_folder(target) / "reading"
    whole = file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    if harm == "missing":
        file.unlink()
    else:
        flipped = bytes([*whole[:-1], whole[-1] ^ 1])
        file.write_bytes({"cut short": whole[:-1], "one bit": flipped, "empty": b""}[harm])
    with pytest.raises(PaidNotFinishedError, match=r"is missing or damaged, .* tallytree clean"):
        CASES["adaptive"](3, out=target)
    file.write_bytes(whole)
    CASES["adaptive"](3, out=target)


def test_the_fingerprint_and_its_salt_stand_nowhere_else(tmp_path: Path) -> None:
    """Whoever has both can test a guess at the data; two runs on the same data have nothing in
    common.
    """
    seen = []
    for name in ("one", "two"):
        target = tmp_path / name
        killed_after(2, CASES["adaptive"], 3, target)
        file = work_folder(target) / "reading"
        secret = file.read_bytes()
        seen.append(
            {secret[place : place + 16] for place in range(len(secret) - 96, len(secret) - 16)}
        )
        for path in tmp_path.rglob("*"):
            if path.is_file() and path != file and path.parent == work_folder(target):
                assert not any(part in path.read_bytes() for part in seen[-1])
        clean(target) if name == "one" else CASES["adaptive"](3, out=target)
        assert not file.exists()
    assert not seen[0] & seen[1]


def test_a_stream_goes_on_with_the_steps_as_they_were(tmp_path: Path) -> None:
    """Steps of one run are answered from one reading; those that come later are new by design."""

    def run(*arrivals: int) -> Any:
        return tt.stream(
            counts=list(arrivals),
            horizon=16,
            epsilon=1,
            mechanism="tree",
            branching=2,
            out=str(tmp_path / "out"),
        )

    run(3, 1)
    keep, kept = Journal._keep, []

    def counted(journal: Journal, *arguments: Any) -> None:
        if kept:
            raise Killed
        keep(journal, *arguments)
        kept.append(arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Journal, "_keep", counted)
        with pytest.raises(Killed):
            run(3, 1, 4, 1)
    with pytest.raises(PaidNotFinishedError, match="from other data"):
        run(3, 1, 4, 2, 7)
    assert run(3, 1, 4, 1, 7).n_steps == 5


def test_an_arrival_that_moves_between_two_runs_of_a_stream_loses_more(tmp_path: Path) -> None:
    """What is read again at each run has no fingerprint: it would lie beside the stream for ever.
    So the statement says what is assumed.
    """
    first = [5] * 7

    def losing(to: int) -> Fraction:
        """Of one entity that is in step 0 at the first run and in step ``to`` at the second."""
        scripts: list[list[Asked]] = []
        for number, there in enumerate((1, 0)):
            before, after = np.array(first), np.array([5] * 15)
            before[0] += there
            after[to] += there

            def run(before: Any = before, after: Any = after, number: int = number) -> Any:
                how: dict[str, Any] = {
                    **{"horizon": 16, "epsilon": 1, "mechanism": "tree", "branching": 2},
                    **{"insecure_seed": 1, "out": tmp_path / f"{to} {number}"},
                }
                stream(counts=before, **how)
                return stream(counts=after, **how)

            asked = (
                listen(run, np.random.default_rng(1)) if not scripts else replay(run, scripts[0])
            )
            scripts.append(asked[1])
        return loss_between(*scripts, "pure")

    assert losing(0) <= 1
    assert max(losing(to) for to in (7, 11)) == Fraction(14, 10)
    statement = tt.stream(counts=first, horizon=16, epsilon=1).manifest["privacy"]["statement"]
    assert "that a row stays in the step in which it was first counted" in statement


def test_tables_that_are_damaged_are_made_again_from_the_answers_and_nothing_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("tallytree.releases.keeping.tell_measured", killing)
        with pytest.raises(Killed):
            CASES["adaptive"](3, out=target)
    (work_folder(target) / "measured" / "noisy.parquet").write_bytes(b"")
    with pytest.raises(PaidNotFinishedError, match=r"is damaged\. Run the same command again"):
        resume(target)
    answers = sorted((work_folder(target) / "answers").iterdir())
    last = answers[-1].read_bytes()
    answers[-1].unlink()
    monkeypatch.setattr(Journal, "_keep", drawing)
    with pytest.raises(
        PaidNotFinishedError, match="lacks an answer that this run asks for, and no other is drawn"
    ):
        CASES["adaptive"](3, out=target)
    answers[-1].write_bytes(last)
    CASES["adaptive"](3, out=target)
    assert tt.verify(target)

"""A run that died and went on reveals what one run reveals: every answer is drawn once, and the
replayed loss is the same.
"""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import PaidNotFinishedError
from tallytree.group_sizes.publish import (
    release as release_counts,
)  # with all that measures, before anything stands in
from tallytree.privacy import noise
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.journal import Journal
from tallytree.privacy.journal import Question as Kept
from tallytree.privacy.randomness import Places
from tests.attacks.inputs import Households
from tests.attacks.transcript import Asked, Question, loss_between, replay, standing_in

HOUSEHOLDS = Households(((0, 2), (0, 1), (1, 3), (2, 1)))
CASES: dict[str, dict[str, Any]] = {
    "adaptive": {"epsilon": 1},
    "adaptive, zcdp": {"rho": 1, "definition": "zcdp"},
    "hybrid": {"epsilon": 1, "view": "hybrid"},
}


class DiedError(Exception):
    """The run is over, as by a kill."""


def release(households: Households, case: str) -> Any:
    return release_counts(households.counts(), insecure_seed=1, **CASES[case])


def run_until(
    case: str, folder: Path, dies_after: int | None, drawn: list[Asked], rng: np.random.Generator
) -> Any:
    """One run over a journal, which dies once so many answers were drawn in it."""
    journal, before = Journal(folder), len(drawn)

    def answer(question: Question, truth: Any) -> Any:
        def draw() -> Any:
            if len(drawn) - before == dies_after:
                raise DiedError
            assert not any(asked.question == question for asked in drawn), (
                "an answer that is kept was drawn again"
            )
            given = truth.reshape(-1) + np.rint(
                rng.laplace(0, max(question.law.std, 0.1), truth.size)
            ).astype(np.int64)
            drawn.append(Asked(question, truth, given.reshape(truth.shape)))
            return given

        asked = Kept(f"{question.level}: {question.query}, {question.place}", question.about)
        return journal.answer(asked, truth.size, draw).reshape(truth.shape)

    with standing_in(answer):
        return release(HOUSEHOLDS, case)


@pytest.mark.parametrize("case", CASES)
def test_the_transcript_of_a_resumed_run_has_the_loss_of_one_run(case: str, tmp_path: Path) -> None:
    neighbours = list(islice(HOUSEHOLDS.neighbours(), 3))
    for dies_after in range(5):
        folder = tmp_path / str(dies_after)
        folder.mkdir()
        drawn: list[Asked] = []
        rng = np.random.default_rng(dies_after)
        with pytest.raises(DiedError):
            run_until(case, folder, dies_after, drawn, rng)
        assert len(drawn) == dies_after
        resumed = run_until(case, folder, None, drawn, rng)
        assert len(Journal(folder)) == len(drawn) > dies_after
        privacy = resumed.manifest["privacy"]
        stated = written_fraction(privacy["epsilon" if privacy["definition"] == "pure" else "rho"])
        worst = []
        for neighbour in neighbours:
            other, there = replay(lambda neighbour=neighbour: release(neighbour, case), drawn)
            assert other.table().equals(resumed.table())
            worst.append(loss_between(drawn, there, privacy["definition"]))
        assert 0 < max(worst) <= stated


def test_nothing_that_is_kept_is_drawn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_draw, draws = noise.draws_at, []

    def draw(law: Any, stream: Any, places: Places) -> Any:
        if len(draws) == limit:
            raise DiedError
        draws.append(places.name)
        return true_draw(law, stream, places)

    monkeypatch.setattr(noise, "draws_at", draw)
    for limit in (0, 1, 2, 3):
        draws.clear()
        folder = tmp_path / str(limit)
        with pytest.raises(PaidNotFinishedError):
            release_counts(HOUSEHOLDS.counts(), epsilon=1, out=folder)
        done, limit = limit, -1
        release_counts(HOUSEHOLDS.counts(), epsilon=1, out=folder)
        assert len(set(draws)) == len(draws) > done
        assert tt.verify(folder)

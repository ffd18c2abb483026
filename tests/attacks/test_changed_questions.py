"""A run that goes on asks the questions that were asked before it died: others, are refused."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.boxes import measure as spatial
from tallytree.boxes.measure import PrivateSurvey
from tallytree.errors import PaidNotFinishedError, VerificationError
from tallytree.group_sizes.measure import size_bins, staircases
from tallytree.privacy.journal import Journal, Question
from tallytree.storage.work import work_folder
from tallytree.streams import measure as stream
from tests.attacks.test_changed_data import CASES, drawing, killed_after

REFUSED = r"are to other questions than this run asks.*It was begun on \S+ with .*tallytree.* tallytree clean"


def arrivals(n: int, **how: Any) -> Any:
    """A stream of four steps, measured in one go."""
    return tt.stream(counts=[n, 1, 4, 1], horizon=16, **how)


MADE: dict[str, Callable[..., Any]] = CASES | {
    "optimised": lambda n, **how: tt.histogram([n, 5, 9], mechanism="optimised", epsilon=1, **how),
    "stream of square roots": lambda n, **how: arrivals(
        n, rho=1, definition="zcdp", mechanism="square-root", **how
    ),
    "stream of scaled roots": lambda n, **how: arrivals(n, rho=1, definition="zcdp", **how),
    "stream of trees": lambda n, **how: arrivals(
        n, epsilon=1, mechanism="tree", branching=2, **how
    ),
}


def answers_of(target: Path) -> list[Path]:
    return sorted((work_folder(target) / "answers").glob("*.answer"))


def asked_as_another_version_would(file: Path) -> None:
    """The same place and values, and a digest of another question, whole by its checksum."""
    magic, _, asked, values = file.read_bytes().split(b"\n", 3)
    place, digest = json.loads(asked)
    body = json.dumps([place, digest[::-1]]).encode() + b"\n" + values
    file.write_bytes(b"\n".join([magic, hashlib.sha256(body).hexdigest().encode(), body]))


@pytest.mark.parametrize("case", MADE)
def test_every_kept_answer_says_what_was_asked(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, target = MADE[case], tmp_path / "out"
    n_answers = killed_after(1_000, make, 3, target)
    monkeypatch.setattr(Journal, "_keep", drawing)
    assert n_answers == len(answers_of(target)) > 0
    for file in answers_of(target)[:3]:
        whole = file.read_bytes()
        asked_as_another_version_would(file)
        with pytest.raises(PaidNotFinishedError, match=REFUSED):
            make(3, out=target)
        file.write_bytes(whole)
    make(3, out=target)
    assert tt.verify(target)


def moved_ends(prior: Any, predictions: Any, *rest: Any) -> Any:
    """Blocks as another processor might find them: as many, and the first of a region ends one size
    earlier.
    """
    offsets, ends, known = NEXT_BLOCKS(prior, predictions, *rest)
    first = offsets[:-1][np.diff(offsets) > 0]
    ends[first] = ends[first] - 1
    return offsets, ends, known


def moved_edge(*arguments: Any, **options: Any) -> Any:
    bins = SINGLE_SIZES(*arguments, **options)
    edges = bins.edges.copy()
    edges[-2] = edges[-2] - 1
    return replace(bins, edges=edges)


def other_factors(name: str) -> Callable[[Any], Any]:
    """The last weight, row or column one less, as another version might round it."""

    def asked(factors: Any) -> Any:
        moved = getattr(factors, name).copy()
        moved[-1] -= 1
        return ASKED(replace(factors, **{name: moved}))

    return asked


NEXT_BLOCKS, SINGLE_SIZES = staircases.next_blocks, size_bins.single_sizes
ASKED = stream._asked
COUNT, PARTS, CUT = PrivateSurvey.count, PrivateSurvey.parts, PrivateSurvey.cut
CHANGES: list[tuple[str, Any, str, Any]] = [
    ("adaptive", staircases, "next_blocks", moved_ends),
    ("adaptive, zcdp", staircases, "next_blocks", moved_ends),
    ("whole groups", size_bins, "single_sizes", moved_edge),
    (
        "quadtree",
        PrivateSurvey,
        "count",
        lambda own, low, high, *rest: COUNT(own, low[::-1], high[::-1], *rest),
    ),
    (
        "kd-tree",
        PrivateSurvey,
        "cut",
        lambda own, low, high, *rest: CUT(own, low[::-1], high[::-1], *rest),
    ),
    (
        "dawa",
        PrivateSurvey,
        "parts",
        lambda own, tree, share, name, price: PARTS(own, tree, share, name, price + 1),
    ),
    ("privtree", spatial, "level_bias", lambda noise, dimensions: 1),
    ("stream of square roots", stream, "_asked", other_factors("weights")),
    ("stream of scaled roots", stream, "_asked", other_factors("weights")),
    ("stream of scaled roots", stream, "_asked", other_factors("rows")),
    ("stream of scaled roots", stream, "_asked", other_factors("columns")),
]


@pytest.mark.parametrize(
    ("case", "owner", "name", "changed"), CHANGES, ids=[case for case, *_ in CHANGES]
)
def test_a_version_that_asks_otherwise_is_refused(
    case: str, owner: Any, name: str, changed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places, noise and numbers of answers are the same; ends of blocks, bins, boxes, prices or
    weights are not.
    """
    target = tmp_path / "out"
    killed_after(1_000, MADE[case], 3, target)
    kept = [file.read_bytes() for file in answers_of(target)]
    monkeypatch.setattr(Journal, "_keep", drawing)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, changed)
        with pytest.raises(PaidNotFinishedError, match=REFUSED):
            MADE[case](3, out=target)
    assert [file.read_bytes() for file in answers_of(target)] == kept
    MADE[case](3, out=target)
    assert tt.verify(target)


def test_questions_are_asked_in_their_order(tmp_path: Path) -> None:
    """No kept answer is passed over, whatever place is asked for; what lacks one in between is
    damaged.
    """
    questions = [Question(f"0: q{number}, from region 0, draw 0", "d") for number in range(3)]
    first = Journal(tmp_path)
    for number, question in enumerate(questions):
        first.answer(question, 1, lambda number=number: np.array([number]))  # type: ignore[misc]
    second = Journal(tmp_path, owner="What to do.")
    assert second.answer(questions[0], 1, drawing).tolist() == [0]
    for other in (
        questions[2],
        questions[0],
        Question("elsewhere", "d"),
        Question(questions[1].place, "e"),
    ):
        with pytest.raises(PaidNotFinishedError, match=r"other questions .* What to do\."):
            second.answer(other, 1, drawing)
    assert second.answer(questions[1], 1, drawing).tolist() == [1]
    (tmp_path / "000001.answer").unlink()
    with pytest.raises(VerificationError, match=r"lacks 000001\.answer"):
        Journal(tmp_path)

"""One place of the key stream, one draw: whatever attributes are called, no two answers share
noise.
"""

from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.group_sizes.measure import people as measuring_people
from tallytree.group_sizes.measure import staircases as measuring_staircases
from tallytree.group_sizes.plan.plan import LevelPlan
from tallytree.privacy.comparisons import exceed_zero
from tallytree.privacy.exponential import choose_candidates
from tallytree.privacy.journal import Journal
from tallytree.privacy.noise import DiscreteLaplace, add_noise, draw_noise
from tallytree.privacy.randomness import ClaimedPlaces, KeyStream, Places

# Each name could be what other names look like when they are joined.
ODD = ("a", "b", "a, b")


def households() -> Any:
    """Forty households with three attributes, whose numbers per combination of values are public."""
    rows = [
        (["GA", "NY"][i % 2], "xy"[i % 2], "uv"[i // 2 % 2], "pq"[i // 4 % 2], 1 + i % 5)
        for i in range(40)
    ]
    columns = ("state", *ODD, "size")
    table = pa.table(dict(zip(columns, map(list, zip(*rows)))))
    return tt.read(table, levels=["state"], size="size", by=list(ODD), public="cells")


def test_no_two_tables_share_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exact difference of two counts could be read off noisy ones that have the same noise, at
    any ε.
    """
    noises: dict[tuple[int, str], list[dict[tuple[int, int], int]]] = {}

    def overheard(
        values: Any, noise: Any, stream: Any, *, level: int, query: str, **where: Any
    ) -> Any:
        found = add_noise(values, noise, stream, level=level, query=query, **where)
        offsets = where.get("offsets", np.array([0, values.size]))
        drawn = (found - values).ravel()
        region = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)) + where.get(
            "first_region", 0
        )
        number = np.arange(len(drawn)) - np.repeat(offsets[:-1], np.diff(offsets))
        by_place = dict(zip(zip(region.tolist(), number.tolist()), drawn.tolist()))
        noises.setdefault((level, query.partition(" by ")[0]), []).append(by_place)
        return found

    for module in (measuring_staircases, measuring_people):
        monkeypatch.setattr(module, "add_noise", overheard)
    made = tt.release(households(), epsilon="0.001", budget=["1/16"] * 16, insecure_seed=1)
    assert made.manifest["privacy"]["epsilon"] == "1/1000"
    shared = equal = 0
    for answers in noises.values():
        for one, other in combinations(answers, 2):
            both = one.keys() & other.keys()
            shared += len(both)
            equal += sum(one[at] == other[at] for at in both)
    assert shared > 100
    # Of 16 tables with a scale of 16,000 each; two draws agree less than once in 30,000.
    assert equal == 0, f"{equal} of {shared} answers to different questions have the same noise"


names = st.lists(st.text(" ,\"[]\\'/%ab\u00e9byntail", max_size=6), max_size=3, unique=True).map(
    tuple
)
questions = st.sampled_from(["tail", "people", "bins", "blocks", "blocks from 0", "blocks from 32"])
asked = st.tuples(st.integers(0, 2), names, questions)


@settings(max_examples=1000)
@given(one=asked, other=asked)
def test_no_two_questions_share_a_place(one: Any, other: Any) -> None:
    """Whatever attributes are called: level, attributes and question can be read off the place."""

    def place(level: int, by: tuple[str, ...], question: str) -> tuple[int, str]:
        plan = LevelPlan(level, "county", "staircase", 1, Fraction(1), None, by)
        return plan.level, plan.question(question)

    assert (place(*one) == place(*other)) == (one == other)
    level, by, question = one
    for cut in range(len(by)):  # names that look like several ones, joined
        joined = (*by[:cut], ", ".join(by[cut:]))
        assert (place(level, joined, question) == place(*one)) == (joined == by)


ANY = DiscreteLaplace(Fraction(2))
TWO = np.array([0, 2])


@pytest.mark.parametrize(
    "ask",
    [
        lambda stream: add_noise(np.arange(2), ANY, stream, level=0, query="q"),
        lambda stream: draw_noise(ANY, stream, level=0, query="q", offsets=TWO),
        lambda stream: choose_candidates(
            np.arange(2), TWO, Fraction(1), stream, level=0, query="q"
        ),
        lambda stream: exceed_zero(np.arange(2), ANY, stream, level=0, query="q"),
        lambda stream: stream.words(0, "q", offsets=TWO),
    ],
)
def test_a_place_is_drawn_once(ask: Any) -> None:
    stream = KeyStream.from_system()
    ask(stream)
    with pytest.raises(RequestError, match="was drawn before"):
        ask(stream)
    ask(KeyStream.from_system())  # another key is another run


def test_a_place_is_asked_for_once_where_answers_are_kept(tmp_path: Path) -> None:
    """A run that goes on gets each answer that was kept, once; a second question is refused, not
    given the same answer.
    """

    def ask(stream: KeyStream) -> Any:
        return add_noise(np.arange(2), ANY, stream, level=0, query="q")

    first = KeyStream.from_system(Journal(tmp_path))
    answered = ask(first)
    going_on = KeyStream.from_system(Journal(tmp_path))
    assert np.array_equal(ask(going_on), answered)
    for stream in (first, going_on):
        with pytest.raises(RequestError, match="was drawn before"):
            ask(stream)


def test_the_key_is_lent_once_for_each_work() -> None:
    stream = KeyStream.from_system()
    assert stream.lend_key("level 1") == stream.lend_key("level 2")
    with pytest.raises(RequestError, match="lent for level 1 before"):
        stream.lend_key("level 1")


regions = st.tuples(
    st.integers(0, 6), st.integers(0, 3), st.lists(st.integers(0, 3), min_size=1, max_size=4)
)


@settings(max_examples=500)
@given(st.lists(regions, max_size=8))
def test_claims_refuse_every_place_that_was_drawn(
    requests: list[tuple[int, int, list[int]]],
) -> None:
    """Beside a set with every single draw; a region is left behind when the one after it begins."""
    claimed, drawn = ClaimedPlaces(), set[tuple[int, int]]()
    for first_region, first_draw, lengths in requests:
        places = Places(0, "q", np.cumsum([0, *lengths]), first_region, first_draw)
        region, number = places.locate(np.arange(places.n_draws))
        own = set(zip(region.tolist(), number.tolist()))
        try:
            claimed.claim(places)
        except RequestError:
            continue
        assert not own & drawn
        drawn |= own


def test_what_was_not_drawn_is_not_refused_and_takes_little_room() -> None:
    claimed = ClaimedPlaces()
    for start in range(0, 3000, 3):  # a stream that goes on step by step
        claimed.claim(Places(5, "stream", np.arange(4), first_region=start))
    for number in range(2):  # another level, another question
        claimed.claim(Places(6 + number, "stream", np.arange(4)))
        claimed.claim(Places(5, f"q{number}", np.arange(4)))
    for piece in (0, 1, 2):  # a region too large to draw at once
        claimed.claim(Places(9, "q", np.array([0, 100]), first_draw=100 * piece))
    for first in (40, 20, 0):  # pieces of a level in any order
        claimed.claim(Places(10, "q", np.arange(21), first_region=first))
    assert sorted(len(starts) for starts, _ in claimed._runs.values()) == [1, 1, 1, 1, 1, 1, 3]

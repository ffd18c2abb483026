"""What is protected, as releases of every kind state it."""

from typing import Any

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.privacy.guarantee import false_claims
from tallytree.streams.manifest import same_stream


@pytest.mark.parametrize("kind", ["histogram", "map", "stream"])
def test_group_is_a_reserved_unit(kind: str) -> None:
    """A column of that name is given as ``column:group``, and no kind without groups takes the word
    for the column.
    """
    table = pa.table({"group": ["a", "a", "b"], "day": [1, 2, 3]})
    make: dict[str, Any] = {
        "histogram": lambda **how: tt.histogram(
            table, column="day", width=1, bounds=(0, 4), mechanism="flat", **how
        ),
        "map": lambda **how: tt.spatial(table, columns=["day"], box=[(0, 4)], resolution=4, **how),
        "stream": lambda **how: tt.stream(table, column="day", until=3, horizon=3, **how),
    }
    asked = {"epsilon": 1, "contributions": 1}
    with pytest.raises(RequestError, match="column:group"):
        make[kind](unit="group", **asked)
    unit = make[kind](unit="column:group", **asked).manifest["privacy"]["unit"]
    assert (unit["column"], unit["name"]) == ("group", "column:group")
    assert unit["words"] == "all rows of one group (of which at most 1 are counted)"


def test_rows_without_a_name_are_any_rows() -> None:
    made = tt.histogram(
        [1, 2], width=1, bounds=(0, 4), mechanism="flat", epsilon=1, contributions=3
    )
    assert made.manifest["privacy"]["statement"].startswith(
        "Adding or removing up to 3 rows makes any outcome"
    )
    assert false_claims(made.manifest["privacy"]) == []
    wrong = made.manifest["privacy"]["statement"].replace("up to 3", "up to 30")
    assert false_claims({**made.manifest["privacy"], "statement": wrong}) == ["statement"]


def test_numbers_of_classes_are_not_released_as_degrees() -> None:
    people = pa.table({"household": [1, 1, 2, 3]})
    counts = tt.read(people, group="household", public="groups", classes="0-1,2+")
    with pytest.raises(RequestError, match="without classes"):
        tt.degrees(counts, epsilon=1)


TABLE = pa.table({"x": [1, 2, 3], "n": [50, 1, 7]})
COUNTED: dict[str, Any] = {
    "histogram": lambda **how: tt.histogram(
        TABLE, column="x", count="n", width=1, bounds=(0, 4), mechanism="flat", **how
    ),
    "counts": lambda **how: tt.histogram(counts=[5, 6], mechanism="flat", **how),
    "values that are counts": lambda **how: tt.histogram([5, 6], mechanism="flat", **how),
    "map": lambda **how: tt.spatial(
        TABLE, columns=["x"], count="n", box=[(0, 4)], resolution=4, **how
    ),
    "map of counts": lambda **how: tt.spatial(counts=[[5, 6], [1, 2]], **how),
    "stream": lambda **how: tt.stream(TABLE, column="x", count="n", until=3, horizon=3, **how),
    "arrivals": lambda **how: tt.stream(counts=[5, 6], horizon=3, **how),
    "degrees": lambda **how: tt.degrees([5, 6], **how),
}


@pytest.mark.parametrize("kind", COUNTED)
def test_a_row_that_stands_for_many_entities_is_not_called_protected(kind: str) -> None:
    """With counts, a row is fifty people: one of them is hidden, and the statement must not say
    that the row is.
    """
    words = COUNTED[kind](epsilon=1).manifest["privacy"]["unit"]["words"]
    assert words == "one entity"
    if kind != "degrees":
        assert (
            COUNTED[kind](epsilon=1, entity="person").manifest["privacy"]["unit"]["words"]
            == "one person"
        )
    assert (
        COUNTED[kind](epsilon=1, contributions=3).manifest["privacy"]["unit"]["words"]
        == "up to 3 entities"
    )


def test_a_stream_goes_on_whatever_its_rows_were_called() -> None:
    """Streams of older versions say "row" where a row stands for many entities."""
    asked: dict[str, Any] = {
        "column": "x",
        "count": "n",
        "horizon": 3,
        "epsilon": 1,
        "insecure_seed": 1,
    }
    older = {"entity": "row", "words": "one row"}
    started = tt.stream(TABLE, until=2, **asked).manifest
    renamed = {
        **started,
        "privacy": {**started["privacy"], "unit": {**started["privacy"]["unit"], **older}},
    }
    assert same_stream(started, renamed) == []
    other = {**started["privacy"]["unit"], "entity": "person", "name": "person"}
    assert same_stream(started, {**started, "privacy": {**started["privacy"], "unit": other}}) == [
        "unit"
    ]


def test_degrees_do_not_claim_to_protect_whole_groups() -> None:
    """Their noise hides one entity; a group of fifty would change the sorted sizes by fifty."""
    people = pa.table({"household": [1] * 50 + [2, 3]})
    counts = tt.read(people, group="household", unit="group", public="regions")
    with pytest.raises(RequestError, match="unit='group'"):
        tt.degrees(counts, epsilon=1)

"""What pages and cards say: plain words first, notes where they belong, levels as people call them."""

from typing import Any

import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.degree_sequences.report import degrees_payload
from tallytree.errors import RequestError
from tallytree.group_sizes.report import group_sizes_payload
from tallytree.kinds.showing import report_html
from tallytree.maps.report import map_payload
from tallytree.options.asking import PageOptions
from tallytree.options.card import CardOptions
from tallytree.releases.card import card_json
from tallytree.releases.report.facts import USE, common_facts
from tallytree.releases.report.words import in_full, level_words, note_sentences
from tests.group_sizes.test_comparison import released
from tests.kinds.test_kinds import MAKERS


def people(public: str, **options: Any) -> tt.Release:
    rows = [(group, state) for group, state in enumerate("aabbbab")]
    table = pa.table(
        {"household": [group for group, _ in rows], "state": [state for _, state in rows]}
    )
    counts = tt.read(table, group="household", levels=["state"], public=public, **options)
    return tt.release(counts, epsilon="1", insecure_seed=1)


def test_what_is_not_public_stands_apart_on_page_and_card() -> None:
    made = people("regions")
    page = common_facts(made.manifest, made.verify().checks)
    assert page["public"] == ["Regions: the regions were read off the data and declared public."]
    assert page["confidential"] == ["Numbers of groups: not public; estimated from noisy totals."]
    assert page["counting"] == []
    card = card_json(made.manifest, CardOptions(), "0")["deployment"]
    assert "not public" not in card["dp_variant"]["unprotected_quantities"]
    known = common_facts(people("groups").manifest, [])
    assert known["confidential"] == []
    assert len(known["public"]) == 2


@pytest.mark.parametrize("kind", MAKERS)
def test_nothing_that_is_called_public_says_that_it_is_not(kind: str) -> None:
    made = MAKERS[kind]()
    page = common_facts(made.manifest, [])
    assert not [
        text
        for text in page["public"]
        if "not public" in text or "confidential" in text or "left out" in text
    ]
    notes = [text for text in made.manifest["public"].values() if isinstance(text, str)]
    assert len(page["public"]) + len(page["confidential"]) + len(page["counting"]) == len(notes)


def test_what_is_done_to_rows_is_no_public_fact() -> None:
    made = tt.histogram([1, 5, 30], edges=[0, 10, 20], outside="drop", epsilon=1, insecure_seed=1)
    page = common_facts(made.manifest, [])
    assert page["counting"] == ["Outside: values outside the bins are left out."]
    card = card_json(made.manifest, CardOptions(), "0")["deployment"]
    done = card["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert done.startswith("Values outside the bins are left out. ")
    assert "left out" not in card["dp_variant"]["unprotected_quantities"]


def test_the_guarantee_is_said_in_plain_words_first() -> None:
    privacy = people("groups").manifest["privacy"] | {"private": True}
    bet, letter = in_full(privacy)
    # Even odds become e : 1 at most, 2.718 in 3.718.
    assert bet == (
        "Take any one row: whoever bets on whether the data include that wins half of the time "
        "without these numbers, and at "
        "most 73.1 % of the time with them."
    )
    assert letter == f"To the letter: {privacy['statement']}"


@pytest.mark.parametrize(
    "options", [{"neighbours": "replace"}, {"epsilon": None, "rho": "0.5", "definition": "zcdp"}]
)
def test_no_bet_is_stated_where_it_would_not_hold(options: dict[str, Any]) -> None:
    counts = tt.read(pa.table({"g": [1, 2, 2]}), group="g", levels=[], public="groups")
    made = tt.release(
        counts, **{"epsilon": "1", "insecure_seed": 1, "mechanism": "matching", **options}
    )
    assert [text[:14] for text in in_full(made.manifest["privacy"])] == ["To the letter:"]


def test_options_of_the_program_are_left_out_of_notes() -> None:
    notes = {"group_totals": 'groups were read off (public="groups")'}
    assert note_sentences(notes, "homes") == ["Numbers of homes: homes were read off."]


def test_levels_are_called_as_told() -> None:
    payload = group_sizes_payload(
        released(0.0, 1), None, PageOptions(level_names=["state=Land/Länder"])
    )
    assert payload["lead"].endswith(" and its parts: 2 Länder, 8 counties.")
    assert [part["name"] for part in payload["budget"]][:3] == ["total", "Länder", "counties"]


@pytest.mark.parametrize("told", ["land=country", "state", "state="])
def test_a_name_of_no_level_is_refused(told: str) -> None:
    with pytest.raises(
        RequestError,
        match="LEVEL=ONE/MANY, for example county=county/counties; levels are US, state, county",
    ):
        level_words([told], ["US", "state", "county"])


def test_a_release_without_levels_takes_no_names_for_them() -> None:
    with pytest.raises(RequestError, match="--level-name"):
        report_html(MAKERS["histogram"](), None, PageOptions(level_names=["state=state"]))


FITS = "Numbers fit together: parts add up to the whole."


def test_how_to_read_a_page_is_said_for_each_kind() -> None:
    """Lines on bars only where there are some, and sums only where parts add up."""
    sizes, degrees = MAKERS["group-sizes"](), MAKERS["degrees"]()
    read = group_sizes_payload(sizes, None, PageOptions())["read"]
    assert len(read) == 4
    assert read[-1] == FITS
    assert "thin line" not in read[0]
    assert FITS not in degrees_payload(degrees)["read"]
    with_lines = group_sizes_payload(tt.with_intervals(sizes, copies=2), None, PageOptions())[
        "read"
    ]
    assert with_lines[0] == f"{read[0]} The thin line on a bar shows how far off it may be."


def test_how_to_use_the_numbers_of_a_map() -> None:
    page = map_payload(MAKERS["map"]())
    sums = "A box is the sum of its parts, but its error is smaller than the sum of theirs."
    assert page["use"][:4] == [USE[0], USE[1], sums, USE[3]]


def test_classes_are_told_with_their_ends() -> None:
    table = pa.table({"state": ["a", "b"], "small": [3, 4], "large": [2, 0]})
    counts = tt.read(
        table, sizes={"small": "1-4", "large": "5+"}, levels=["state"], public="groups"
    )
    words = group_sizes_payload(
        tt.release(counts, epsilon=1, insecure_seed=1), None, PageOptions()
    )["words"]
    assert words["spans"] == [[1, 4], [5, None]]
    assert words["bin"] == ["1-4", "5+"]

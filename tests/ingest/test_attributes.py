"""Reading attributes of groups: values, "other", public tables, and what is refused."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError

PEOPLE = pa.table(
    {
        "hh": [1, 1, 2, 3, 4, 4, 4],
        "state": ["GA", "GA", "GA", "NY", "NY", "NY", "NY"],
        "tenure": ["own", "own", "rent", None, "own", "own", "own"],
        "rooms": [3, 3, 1, 2, 3, 3, 3],
    }
)
READ: dict[str, Any] = {"group": "hh", "levels": ["state"], "root": "US"}


def cells(counts: Any) -> list[list[int]]:
    """Numbers of groups per leaf and combination of values; a test may look."""
    return counts.cell_counts.n_groups().reshape(counts.hierarchy.n_leaves, -1).tolist()


def test_values_are_those_of_the_public_cells_and_missing_ones_are_other() -> None:
    counts = tt.read(PEOPLE, by=["tenure"], public="cells", **READ)
    assert counts.public.attributes.values == (("own", "rent", "other"),)
    assert cells(counts) == [[1, 1, 0], [1, 0, 1]]
    assert counts.n_groups.tolist() == [2, 2]
    assert counts.public.groups_public
    assert "tenure" in repr(counts)
    assert "own" not in repr(counts)


def test_numbers_are_labels_and_combinations_are_cells() -> None:
    counts = tt.read(PEOPLE, by=["tenure", "rooms"], public="cells", **READ)
    assert counts.public.attributes.values[1] == ("1", "2", "3", "other")
    assert np.flatnonzero(cells(counts)[0]).tolist() == [2, 4]  # own × 3 rooms, rent × 1 room
    assert counts.counts_of(
        tt.read(PEOPLE, by="tenure", public="cells", **READ).lattice.families[0]
    ).n_groups() == [4]


@pytest.mark.parametrize(
    "by", [["tenure=own,boat"], {"tenure": ["own", "boat"]}, "tenure=own,boat"]
)
def test_values_outside_a_list_are_other(by: Any) -> None:
    counts = tt.read(PEOPLE, by=by, public="cells", **READ)
    assert counts.public.attributes.values == (("own", "boat", "other"),)
    assert cells(counts) == [[1, 0, 1], [1, 0, 1]]


def test_whole_groups_need_a_list_and_take_it_where_no_group_has_a_value() -> None:
    counts = tt.read(PEOPLE, by=["tenure=own,boat"], unit="group", public="regions", **READ)
    assert (cells(counts), counts.public.groups_public) == ([[1, 0, 1], [1, 0, 1]], False)
    with pytest.raises(RequestError, match="cannot be read off the data"):
        tt.read(PEOPLE, by=["tenure"], unit="group", public="regions", **READ)
    with pytest.raises(RequestError, match="regions"):
        tt.read(PEOPLE, by=["tenure=own"], unit="group", public="cells", **READ)


def test_regions_may_come_from_a_hierarchy_table_or_be_the_root_alone() -> None:
    states = pa.table({"state": ["GA", "NY", "WY"], "land": ["US", "US", "US"]})
    counts = tt.read(
        PEOPLE, by=["tenure=own"], unit="group", hierarchy=states, **{**READ, "root": "world"}
    )
    assert cells(counts) == [[1, 1], [1, 1], [0, 0]]
    alone = tt.read(PEOPLE, group="hh", by=["tenure=own"], unit="group", public="regions")
    assert cells(alone) == [[2, 2]]


def test_a_table_of_groups_gives_values_to_rows_that_have_none() -> None:
    table = pa.table(
        {"hh": [1, 2, 3, 4, 5], "state": ["GA", "GA", "NY", "NY", "WY"], "tenure": list("abaac")}
    )
    counts = tt.read(PEOPLE.select(["hh"]), by=["tenure"], groups=table, **READ)
    assert counts.public.attributes.values == (("a", "b", "c", "other"),)
    assert cells(counts) == [[1, 1, 0, 0], [2, 0, 0, 0], [0, 0, 1, 0]]
    assert counts.leaf_counts.n_entities().tolist() == [3, 4, 0]


def test_a_table_of_totals_brings_cells_that_the_data_do_not_have() -> None:
    totals = pa.table(
        {
            "state": ["GA", "GA", "NY", "NY", "WY"],
            "tenure": ["own", "rent", "other", "own", "boat"],
            "groups": [1, 4, 3, 1, 7],
        }
    )
    counts = tt.read(PEOPLE, by=["tenure"], group_totals=totals, **READ)
    assert counts.public.attributes.values == (("boat", "own", "rent", "other"),)
    assert cells(counts) == [[0, 1, 4, 0], [0, 1, 0, 3], [7, 0, 0, 0]]
    too_few = totals.set_column(2, "groups", pa.array([1, 4, 0, 1, 7]))
    with pytest.raises(InputError, match="more groups"):
        tt.read(PEOPLE, by=["tenure"], group_totals=too_few, **READ)


def test_rows_that_are_groups_or_stand_for_several() -> None:
    table = pa.table(
        {
            "state": ["GA", "GA", "NY"],
            "size": [2, 2, 5],
            "n": [3, 4, 1],
            "tenure": ["own", "rent", "own"],
        }
    )
    counts = tt.read(table, levels=["state"], size="size", count="n", by="tenure", public="cells")
    assert cells(counts) == [[3, 4, 0], [1, 0, 0]]


@pytest.mark.parametrize("public", ["groups", "regions"])
def test_single_entities_need_public_cells_and_are_told_why(public: str) -> None:
    with pytest.raises(RequestError, match=r"follows from the rows.*unit='group'"):
        tt.read(PEOPLE, by=["tenure"], public=public, **READ)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(RequestError, match="goes with by="):
        tt.read(PEOPLE, public="cells", **READ)
    with pytest.raises(RequestError, match="given twice"):
        tt.read(PEOPLE, by=["state"], public="cells", **READ)
    with pytest.raises(RequestError, match="empty or a repeated"):
        tt.read(PEOPLE, by=["tenure=own,,rent"], public="cells", **READ)
    with pytest.raises(InputError, match="no column 'tenur'"):
        tt.read(PEOPLE, by=["tenur"], public="cells", **READ)
    two = pa.table({"hh": [1, 1], "state": ["GA", "GA"], "tenure": ["own", "rent"]})
    with pytest.raises(InputError, match="two values of an attribute"):
        tt.read(two, by=["tenure"], public="cells", **READ)

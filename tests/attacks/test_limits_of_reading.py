"""How many groups are read: a cap on one number of groups would break sums over sizes, so more are
refused.
"""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import InputError
from tallytree.ingest.read import read
from tallytree.model.limits import MOST_GROUPS
from tests.attacks.transcript import listen, loss_between, replay


def counted(*groups: int) -> pa.Table:
    """Groups of size 100, 101 … in one state."""
    return pa.table(
        {"state": ["a"] * len(groups), "size": range(100, 100 + len(groups)), "n": groups}
    )


def kept(*groups: int) -> object:
    return read(counted(*groups), size="size", count="n", levels=["state"], public="groups")


def loss(before: tuple[int, ...], after: tuple[int, ...]) -> float:
    """Of one entity that joins a group of size 100, exactly, on both levels together; 1 is stated."""
    release = partial(
        tt.release,
        epsilon=1,
        mechanism="bottom-up",
        view="cumulative",
        max_size=110,
        insecure_seed=1,
    )
    _, script = listen(lambda: release(kept(*before)), np.random.default_rng(1))
    return float(loss_between(script, replay(lambda: release(kept(*after)), script)[1], "pure"))


def test_numbers_of_groups_are_counted_exactly_up_to_the_limit() -> None:
    """With size 100 cut off at 2^32, the joining of one entity changed 101 cumulative counts: a
    loss of 101.
    """
    assert loss((2**31, 7), (2**31 - 1, 8)) == 1


@pytest.mark.parametrize("public", ["groups", "regions"])
@pytest.mark.parametrize(
    "groups", [(2**32 + 100, 7), (2**32 + 99, 8), (2**63 - 1, 2**63 - 1), (MOST_GROUPS, 1)]
)
def test_more_groups_are_refused_when_they_are_read(groups: tuple[int, ...], public: str) -> None:
    with pytest.raises(InputError, match="more than 3,037,000,499 groups"):
        read(counted(*groups), size="size", count="n", levels=["state"], public=public)


def test_every_reader_refuses_them() -> None:
    polars = pytest.importorskip("polars")
    many = counted(2**32, 7)
    wide = pa.table({"state": ["a", "b"], "one": [2**31, 1], "two": [2**31, 1]})
    totals = pa.table({"state": ["a"], "groups": [2**33]})
    by_size = {"size": "size", "count": "n", "levels": ["state"]}
    for table, shape in (
        (many.to_pandas(), by_size | {"public": "groups"}),
        (polars.from_arrow(many), by_size | {"public": "groups"}),
        (polars.from_arrow(many).lazy(), by_size | {"public": "regions"}),
        (many, by_size | {"public": "regions", "unit": "group"}),
        (many, by_size | {"public": "regions", "classes": ["1-99", "100+"]}),
        (wide, {"sizes": {"one": 1, "two": 2}, "levels": ["state"], "public": "groups"}),
        (counted(1), by_size | {"group_totals": totals}),
    ):
        with pytest.raises(InputError, match="groups"):
            read(table, **shape)


def test_degrees_of_too_many_groups_are_refused_before_payment() -> None:
    with pytest.raises(InputError, match="134,217,728"):
        tt.degrees(kept(2**28), epsilon=1, insecure_seed=1)

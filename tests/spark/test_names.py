"""Leaves that come from Spark in a stream: the same regions as from a table of all of them, with
their names on disk.
"""

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.ingest.regions import regions_from_leaves
from tallytree.model.hierarchy import Hierarchy
from tallytree.releases.region_tables import path_array, regions_reader
from tallytree.spark.names import NamedOnDisk, regions_from_stream

LABELS = st.text(alphabet="a/%é𝔸\0", min_size=0, max_size=2)


@st.composite
def leaves(draw: st.DrawFn) -> tuple[pa.Table, int]:
    """Leaves in the order of their labels, with keys and hashes of their own labels, and how many
    come at a time.
    """
    n_levels = draw(st.integers(1, 3))
    found = draw(st.sets(st.tuples(*[LABELS] * n_levels), min_size=1, max_size=12))
    rows = sorted(found, key=lambda labels: [label.encode() for label in labels])
    texts = {
        f"t{level}": pa.array([row[level] for row in rows], pa.string())
        for level in range(n_levels)
    }
    weak = draw(st.booleans())  # hashes that may agree where labels do not
    own = [len(row[-1]) if weak else int.from_bytes(row[-1].encode()[:7], "big") for row in rows]
    table = pa.table(
        {"k0": pa.array(range(100, 100 + len(rows))), **texts, "own": pa.array(own, pa.int64())}
    )
    return table, draw(st.integers(1, 5))


def streamed(table: pa.Table, at_once: int) -> list[pa.Table]:
    return [table.slice(start, at_once) for start in range(0, len(table), at_once)]


def named(table: pa.Table) -> tuple[str, ...]:
    return tuple(f"level {name}" for name in table.column_names if name.startswith("t"))


@given(leaves())
def test_regions_are_those_of_the_whole_table(given: tuple[pa.Table, int]) -> None:
    table, at_once = given
    found = regions_from_stream(streamed(table, at_once), named(table), "US")
    whole = regions_from_leaves(table.drop_columns(["own"]), named(table), "US")
    assert found is not None
    assert isinstance(found.hierarchy, NamedOnDisk)
    assert found.leaf_of_key.equals(whole.leaf_of_key)
    assert found.remarks == whole.remarks
    tree, plain = found.hierarchy, whole.hierarchy
    assert tree.fingerprint == plain.fingerprint
    assert tree.above_leaves() == plain.above_leaves()
    for start in range(tree.n_regions):
        for stop in range(start, tree.n_regions + 1):
            assert tree.labels_of(slice(start, stop)).tolist() == plain.labels[start:stop].tolist()
    groups = np.arange(tree.n_regions)
    assert regions_reader(tree, groups).read_all().equals(regions_reader(plain, groups).read_all())
    assert tree.labels.tolist() == plain.labels.tolist()
    assert tree.paths.tolist() == plain.paths.tolist()
    copied = pickle.loads(pickle.dumps(tree))
    assert type(copied) is Hierarchy
    assert copied == plain


@given(leaves(), st.integers(1, 4))
def test_regions_are_written_alike_however_many_are_named_at_once(
    given: tuple[pa.Table, int], at_once: int
) -> None:
    tree = regions_from_leaves(given[0].drop_columns(["own"]), named(given[0]), "US").hierarchy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tallytree.releases.region_tables.LABELS_AT_ONCE", at_once)
        table = regions_reader(tree, np.arange(tree.n_regions)).read_all()
    assert table["region"].to_pylist() == path_array(tree).to_pylist()
    assert table["level"].to_pylist() == tree.level_of.tolist()
    assert table["label"].to_pylist() == tree.labels.tolist()


WRONG = {
    "no leaves": [],
    "a key twice": [("a", "b", 1), ("a", "c", 1)],
    "a leaf twice": [("a", "b", 1), ("a", "b", 2)],
    "a label is missing": [("a", "b", 1), ("a", None, 2)],
}


@pytest.mark.parametrize("rows", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("at_once", [1, 2])
def test_what_is_wrong_with_leaves_is_left_to_who_can_say_it(
    rows: list[tuple[str, str, int]], at_once: int
) -> None:
    t0, t1, keys = zip(*rows) if rows else ((), (), ())
    texts = {"t0": pa.array(t0, pa.string()), "t1": pa.array(t1, pa.string())}
    table = pa.table({"k0": pa.array(keys, pa.int64()), **texts, "own": pa.array(range(len(rows)))})
    assert regions_from_stream(streamed(table, at_once), ("state", "county"), "US") is None

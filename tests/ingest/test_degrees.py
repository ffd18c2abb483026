"""Nodes by degree from a list of edges."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import InputError, RequestError
from tallytree.ingest import read_degrees
from tallytree.model.confidential import ConfidentialDegrees
from tests.ingest.formats import SOME_FORMATS, in_format

# 1-2 three times, a loop at 9, and 3 only as a target.
EDGES = pa.table({"from": [1, 2, 1, 1, 9], "to": [2, 1, 2, 3, 9]})


def by_degree(degrees: ConfidentialDegrees) -> dict[int, int]:
    return dict(zip(degrees.counts.size.tolist(), degrees.counts.count.tolist()))


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_every_format_gives_the_same_degrees(form: str, tmp_path: Path) -> None:
    source, options = in_format(EDGES, form, tmp_path)
    assert by_degree(read_degrees(source, "from", "to", **options)) == {0: 1, 1: 2, 2: 1}


def test_directed_edges_count_at_their_source() -> None:
    degrees = read_degrees(EDGES, "from", "to", directed=True)
    assert by_degree(degrees) == {0: 2, 1: 1, 2: 1}
    assert degrees.directed


@pytest.mark.parametrize("form", ["parquet", "csv", "polars", "ibis sqlite"])
def test_nodes_without_edges_come_from_the_table_of_nodes(form: str, tmp_path: Path) -> None:
    nodes, _ = in_format(pa.table({"id": [1, 2, 3, 4, 5, 9]}), form, tmp_path)
    degrees = read_degrees(EDGES, "from", "to", nodes=nodes)
    assert by_degree(degrees) == {0: 3, 1: 2, 2: 1}
    assert degrees.nodes_note == "the nodes are those of a public table"
    assert repr(degrees) == "ConfidentialDegrees(values hidden)"


def test_nodes_of_different_types_are_compared_as_text() -> None:
    edges = pa.table({"from": [1, 2], "to": ["2", "3"]})
    assert by_degree(read_degrees(edges, "from", "to")) == {1: 2, 2: 1}


@settings(max_examples=20)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25),
    st.booleans(),
)
def test_agrees_with_counting_in_python(edges: list[tuple[int, int]], directed: bool) -> None:
    degree = Counter({node: 0 for edge in edges for node in edge})
    for a, b in {edge if directed else tuple(sorted(edge)) for edge in edges if edge[0] != edge[1]}:
        degree[a] += 1
        degree[b] += not directed
    table = pa.table({"a": [a for a, _ in edges], "b": [b for _, b in edges]})
    assert by_degree(read_degrees(table, "a", "b", directed=directed)) == Counter(degree.values())


def test_bad_edges() -> None:
    with pytest.raises(RequestError, match="two columns"):
        read_degrees(EDGES, "from", "from")
    with pytest.raises(InputError, match="no column 'target'"):
        read_degrees(EDGES, "from", "target")
    with pytest.raises(InputError, match="every edge needs two nodes"):
        read_degrees(pa.table({"a": [1, None], "b": [2, 3]}), "a", "b")
    with pytest.raises(InputError, match="no rows"):
        read_degrees(EDGES.slice(0, 0), "from", "to")
    for nodes, message in (
        ([1, 2, 3], "is missing from"),
        ([1, 2, 3, 9, 9], "listed twice"),
        ([1, 2, 3, 9, None], "missing values"),
    ):
        with pytest.raises(InputError, match=message):
            read_degrees(EDGES, "from", "to", nodes=pa.table({"id": nodes}))

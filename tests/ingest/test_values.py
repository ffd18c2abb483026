"""Counts of values per bin and of points per cell."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.errors import InputError, RequestError
from tallytree.ingest import read_points, read_values
from tests.ingest.formats import SOME_FORMATS, in_format

AGES = pa.table(
    {
        "age": [0, 17, 18, 18, 64, 65, -3, 90],
        "sex": ["f", "m", "f", "x", "f", "m", "m", "f"],
        "n": [1, 2, 3, 4, 5, 6, 7, 8],
    }
)


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_every_format_gives_the_same_bins(form: str, tmp_path: Path) -> None:
    source, options = in_format(AGES, form, tmp_path)
    values = read_values(source, "age", edges=[0, 18, 65], **options)
    assert values.counts.tolist() == [2, 4]
    assert values.outside.tolist() == [1, 1]
    assert (values.n_missing, values.n_unlisted) == (0, 0)


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_every_format_gives_the_same_categories(form: str, tmp_path: Path) -> None:
    source, options = in_format(AGES, form, tmp_path)
    values = read_values(source, "sex", categories=["m", "f", "other"], count="n", **options)
    assert values.counts.tolist() == [15, 17, 0]
    assert (values.n_missing, values.n_unlisted) == (0, 4)


@pytest.mark.parametrize("form", SOME_FORMATS)
def test_every_format_gives_the_same_grid(form: str, tmp_path: Path) -> None:
    source, options = in_format(AGES, form, tmp_path)
    points = read_points(source, ["age", "n"], [(0, 90), (1, 9)], [3, 2], **options)
    assert points.counts.tolist() == [[4, 0], [0, 0], [0, 3]]
    assert points.outside.tolist() == [[0, 1], [0, 0], [0, 0]]


def test_policies_for_values_outside() -> None:
    values = read_values(AGES, "age", edges=[0, 18, 65])
    assert values.settle("clip").tolist() == [3, 5]
    assert values.settle("drop").tolist() == [2, 4]
    with pytest.raises(InputError, match="lie outside the bins"):
        values.settle("error")
    with pytest.raises(RequestError, match="error, clip, drop"):
        values.settle("keep")  # type: ignore[arg-type]
    unlisted = read_values(AGES, "sex", categories=["f", "m"])
    assert unlisted.settle("drop").tolist() == unlisted.settle("clip").tolist() == [4, 3]
    with pytest.raises(InputError):
        unlisted.settle("error")


def test_missing_values_are_refused_under_every_policy() -> None:
    for column in ([1.0, None], [1.0, math.nan]):
        values = read_values(pa.table({"x": column}), "x", edges=[0, 2])
        assert values.n_missing == 1
        for policy in ("error", "clip", "drop"):
            with pytest.raises(InputError, match="missing values"):
                values.settle(policy)
    assert read_values(pa.table({"x": ["a", None]}), "x", categories=["a"]).n_missing == 1
    assert (
        read_points(
            pa.table({"x": [1.0, 1.0], "y": [math.nan, 1.0]}), ["x", "y"], [(0, 1)] * 2, [1, 1]
        ).n_missing
        == 1
    )


def test_nothing_is_shown() -> None:
    values = read_values(AGES, "age", edges=[0, 18, 65])
    assert repr(values) == "BinnedValues(2 bins, values hidden)"
    with pytest.raises(TypeError):
        pickle.dumps(values)


numbers = st.one_of(
    st.integers(-20, 20).map(float),
    st.floats(allow_nan=False, width=32),
    st.sampled_from([math.inf, -math.inf]),
)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(numbers, st.integers(0, 5)), min_size=1, max_size=30),
    st.lists(st.integers(-20, 20), min_size=2, max_size=8, unique=True).map(sorted),
)
def test_agrees_with_numpy(drawn: list[tuple[float, int]], edges: list[int]) -> None:
    x, weight = np.array([x for x, _ in drawn]), np.array([n for _, n in drawn])
    values = read_values(pa.table({"x": x, "n": weight}), "x", edges=edges, count="n")
    assert values.counts.tolist() == np.histogram(x, edges, weights=weight)[0].tolist()
    below, above = weight[x < edges[0]].sum(), weight[x > edges[-1]].sum()
    expected = np.zeros(len(edges) - 1, dtype=int)
    expected[0] += below
    expected[-1] += above
    assert values.outside.tolist() == expected.tolist()


@settings(max_examples=25)
@given(
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30),
    st.integers(1, 7),
    st.integers(1, 5),
)
def test_grid_agrees_with_counting_in_python(
    drawn: list[tuple[float, float]], width: int, height: int
) -> None:
    box = [(-10.0, 10.0), (0.0, 7.0)]
    counts, outside = np.zeros((width, height), dtype=int), np.zeros((width, height), dtype=int)
    places = [point for point in drawn if all(math.isfinite(x) for x in point)]
    for point in places:
        cell = []
        for x, (low, high), cells in zip(point, box, (width, height)):
            clipped = min(max(x, low), high)
            cell.append(min(math.floor((clipped - low) * cells / (high - low)), cells - 1))
        inside = all(low <= x <= high for x, (low, high) in zip(point, box))
        (counts if inside else outside)[tuple(cell)] += 1
    table = pa.table({"x": [x for x, _ in drawn], "y": [y for _, y in drawn]})
    found = read_points(table, ["x", "y"], box, [width, height])
    assert found.counts.tolist() == counts.tolist()
    assert found.outside.tolist() == outside.tolist()
    assert found.n_missing == len(drawn) - len(places)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "edges="),
        ({"edges": [0, 1], "categories": ["a"]}, "edges="),
        ({"edges": [1]}, "strictly increasing"),
        ({"edges": [1, 1]}, "strictly increasing"),
        ({"edges": [0, math.nan]}, "strictly increasing"),
        ({"edges": [0, math.inf]}, "strictly increasing"),
        ({"edges": ["a", "b"]}, "strictly increasing"),
        ({"categories": []}, "each once"),
        ({"categories": ["a", "a"]}, "each once"),
    ],
)
def test_bins_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        read_values(AGES, "age", **options)


@pytest.mark.parametrize(
    ("box", "shape"),
    [
        ([(0, 1)], [1, 1]),
        ([(0, 0), (0, 1)], [1, 1]),
        ([(0, math.inf), (0, 1)], [1, 1]),
        ([(0, 1)] * 2, [0, 1]),
        ([(0, 1)] * 2, [2**20] * 2),
    ],
)
def test_grids_that_make_no_sense(box: list[tuple[float, float]], shape: list[int]) -> None:
    with pytest.raises(RequestError):
        read_points(AGES, ["age", "n"], box, shape)


def test_bad_columns() -> None:
    bad = pa.table(
        {"text": ["1", "SECRET"], "list": [[1], [2]], "n": [1, -987654], "x": [1.5, 2.5]}
    )
    with pytest.raises(
        InputError,
        match=r"'text' of the Arrow table has text that is not a number; numbers are needed\.$",
    ):
        read_values(bad, "text", edges=[0, 1])
    with pytest.raises(
        InputError, match="'x' or 'text' of the Arrow table has text that is not a number"
    ):
        read_points(bad, ["x", "text"], [(0, 1)] * 2, [1, 1])
    with pytest.raises(InputError, match="numbers are needed"):
        read_values(bad, "list", edges=[0, 1])
    with pytest.raises(
        InputError, match="'n' of the Arrow table has negative values; whole numbers of at least 0"
    ):
        read_values(bad, "x", edges=[0, 1], count="n")
    with pytest.raises(InputError, match="no column 'y'"):
        read_points(bad, ["x", "y"], [(0, 1)] * 2, [1, 1])
    assert read_values(bad.slice(0, 0), "x", edges=[0, 1]).settle("error").tolist() == [0]
    assert read_values(bad, "text", categories=["1"]).n_unlisted == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_coordinates_that_are_no_numbers_are_found_in_parquet_files_too(
    bad: float | None, tmp_path: Path
) -> None:
    # The file's statistics say that the largest x is 2.
    pq.write_table(
        pa.table({"x": [1.0, 2.0, bad], "y": [1.0, 2.0, 3.0]}), tmp_path / "points.parquet"
    )
    found = read_points(str(tmp_path / "points.parquet"), ["x", "y"], [(0, 9), (0, 9)], [3, 3])
    assert found.n_missing == 1
    assert int(found.counts.sum()) == 2
    with pytest.raises(InputError, match="missing values"):
        found.settle("clip")

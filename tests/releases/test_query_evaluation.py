"""Errors of histograms, histograms of several columns and degrees, beside values worked out by
hand.
"""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.releases.metrics import query_errors
from tallytree.releases.query_evaluation import spread_classes

HUGE = 10**6
EDGES = [0, 10, 20, 30, 40]
TRUTH = [1] * 4 + [12] * 8 + [25] * 2 + [31] * 6  # 4, 8, 2, 6 per bin
PUBLISHED = [4, 5, 2, 9]


def exact_histogram(counts, **options):
    """A histogram that publishes what it is given: at this ε there is no noise."""
    return tt.histogram(
        counts=counts, edges=EDGES, mechanism="flat", epsilon=HUGE, insecure_seed=1, **options
    )


def test_every_measure_by_hand():
    found = query_errors(
        "x", [12, 3, 7, 100], [10, 0, 8, 90], total=200, threshold=5, std_errors=[1, 1, 1, 5]
    )
    assert (found.name, found.queries, found.mean_count) == ("x", 4, 27)
    assert found.mean_error == (2 + 3 + 1 + 10) / 4
    assert found.mean_squared_error == (4 + 9 + 1 + 100) / 4
    assert found.root_mean_square == math.sqrt(28.5)
    assert found.mean_relative_error == pytest.approx((2 / 10 + 3 / 5 + 1 / 8 + 10 / 90) / 4)
    assert found.scaled_error == 4 / 200
    assert found.median_error == 2.5
    assert found.error_90 == pytest.approx(
        3 + 0.7 * 7
    )  # between the third and the fourth of 1, 2, 3, 10
    assert found.error_99 == pytest.approx(3 + 0.97 * 7)
    assert found.std_error == 2
    assert found.within_two == 3 / 4
    assert query_errors("x", [1], [0], total=5000).mean_relative_error == 1 / 5
    assert query_errors("x", [1], [0], total=5).within_two is None


def test_ranges_of_a_histogram_by_hand():
    result = {one.name: one for one in tt.evaluate(exact_histogram(PUBLISHED), TRUTH).classes}
    assert set(result) == {
        "everything", "large ranges", "medium ranges", "small ranges", "single cells", "all ranges",
    }  # fmt: skip
    # Bins are wrong by 0, -3, 0, +3; ranges of two by -3, -3, 3; of three by -3, 0; everything by
    # 0.
    assert result["everything"].mean_error == 0
    assert result["everything"].mean_count == 20
    assert result["single cells"].mean_error == 6 / 4
    assert result["single cells"].mean_count == 5
    every = result["all ranges"]
    assert (every.queries, every.mean_error, every.mean_squared_error) == (
        10,
        (6 + 9 + 3) / 10,
        54 / 10,
    )
    assert every.scaled_error == pytest.approx(1.8 / 20)
    # Large ranges have one or two of the four bins, half of them each: 5 and 10 are the mean
    # counts.
    assert result["large ranges"].mean_count == pytest.approx((5 + 10) / 2, rel=0.02)
    assert result["small ranges"].mean_count == pytest.approx(5, rel=0.02)


def test_given_ranges_counts_and_tables(tmp_path: Path):
    made = exact_histogram(PUBLISHED)
    (given,) = tt.evaluate(made, TRUTH, ranges=[(0, 20), (20, 40)], threshold=10).classes
    assert (given.name, given.queries, given.mean_error) == ("given ranges", 2, 3)
    assert given.mean_relative_error == pytest.approx((3 / 12 + 3 / 10) / 2)
    assert tt.evaluate(made, [4, 8, 2, 6], counts=True) == tt.evaluate(made, TRUTH)
    pq.write_table(pa.table({"age": TRUTH, "n": [1] * 20}), tmp_path / "people.parquet")
    place = str(tmp_path / "people.parquet")
    assert tt.evaluate(made, place, column="age", count="n") == tt.evaluate(made, TRUTH)
    with pytest.raises(RequestError, match="--column"):
        tt.evaluate(made, place)
    with pytest.raises(RequestError, match="To compare a histogram, say column"):
        tt.evaluate(made, TRUTH, group="age")
    with pytest.raises(RequestError, match="must be equal"):
        tt.evaluate(made, [1, 2], counts=True)


def test_stated_std_errors_are_those_of_the_answers():
    made = tt.histogram(
        TRUTH, edges=EDGES, mechanism="hierarchical", branching=2, epsilon=1, insecure_seed=3
    )
    (one,) = tt.evaluate(made, TRUTH, ranges=[(10, 30)]).classes
    answer = made.range(10, 30)
    assert one.std_error == pytest.approx(answer.std_error)
    assert one.mean_error == abs(answer.estimate - 10)


def test_boxes_of_a_map_by_hand():
    truth = np.array([[3, 0], [1, 6]])
    made = tt.spatial(counts=[[3, 1], [1, 8]], mechanism="flat", epsilon=HUGE, insecure_seed=1)
    result = {one.name: one for one in tt.evaluate(made, truth, counts=True).classes}
    assert result["everything"].mean_error == 3
    assert result["single cells"].mean_error == 3 / 4
    (column,) = tt.evaluate(made, truth, counts=True, ranges=[[(0, 2), (1, 2)]]).classes
    assert (column.mean_count, column.mean_error) == (6, 3)
    with pytest.raises(RequestError, match="on lines of the map's fine grid"):
        tt.evaluate(made, truth, counts=True, ranges=[[(0, 1.5), (1, 2)]])


def test_counts_so_far_by_hand():
    made = tt.stream(counts=[3, 4, 5], horizon=4, epsilon=HUGE, insecure_seed=1)
    (so_far,) = tt.evaluate(made, [3, 2, 6]).classes
    # 3, 7, 12 against 3, 5, 11.
    assert (so_far.name, so_far.queries, so_far.mean_error, so_far.mean_count) == (
        "counts so far",
        3,
        1,
        19 / 3,
    )
    (given,) = tt.evaluate(made, [3, 2, 6], ranges=[(2, 3)], threshold=1).classes
    assert (given.mean_count, given.mean_error, given.mean_relative_error) == (8, 1, 1 / 8)
    with pytest.raises(RequestError, match="one count for each"):
        tt.evaluate(made, [1])


def test_degrees_by_hand(tmp_path: Path):
    made = tt.degrees([1, 1, 2, 5], epsilon=HUGE, insecure_seed=1)
    order, nodes = tt.evaluate(made, [5, 3, 1, 0]).classes
    # 1 1 2 5 against 0 1 3 5.
    assert (order.queries, order.mean_error, order.mean_squared_error) == (4, 2 / 4, 2 / 4)
    assert order.scaled_error == pytest.approx(0.5 / 9)
    # Degrees 0, 1, 2, 3, 5: 0, 2, 1, 0, 1 nodes against 1, 1, 0, 1, 1.
    assert (nodes.queries, nodes.mean_error, nodes.std_error) == (5, 4 / 5, None)
    pq.write_table(
        pa.table({"a": ["p", "p", "q"], "b": ["q", "r", "s"]}), tmp_path / "edges.parquet"
    )
    order, _ = tt.evaluate(made, str(tmp_path / "edges.parquet"), edges=["a", "b"]).classes
    assert order.mean_error == 3 / 4  # p and q have two edges, r and s one: 1 1 2 5 against 1 1 2 2
    with pytest.raises(RequestError, match="equally many"):
        tt.evaluate(made, [1])


def test_classes_cover_small_domains_and_leave_large_ones_out():
    assert spread_classes((5,), "ranges")["all ranges"][0].shape == (15, 1)
    assert "all ranges" not in spread_classes((2000,), "ranges")
    assert spread_classes((2000,), "ranges")["single cells"][0].shape == (1000, 1)
    assert spread_classes((2, 3), "boxes")["single cells"][0].shape == (6, 2)

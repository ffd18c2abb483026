import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tallytree.errors import InputError
from tallytree.ingest.binning import check_counts, count_values
from tallytree.model.bins import bins_from_edges, bins_of_categories

BINS = bins_from_edges([0, 10, 20])


@pytest.mark.parametrize(
    "values",
    [
        [0, 9.9, 10, 20],
        np.array([0, 9, 10, 20]),
        pd.Series([0, 9.5, 10, 20]),
        pa.array([0, 9, 10, 20]),
    ],
    ids=type,
)
def test_values_are_counted_in_half_open_bins_with_the_last_one_closed(values):
    np.testing.assert_array_equal(count_values(values, BINS), [2, 2])


def test_weights_repeat_values():
    np.testing.assert_array_equal(
        count_values([1, 11, 12], BINS, weights=np.array([5, 0, 2])), [5, 2]
    )
    np.testing.assert_array_equal(
        count_values([1, 30], BINS, weights=np.array([5, 7]), outside="drop"), [5, 0]
    )


def test_values_outside_follow_the_stated_policy():
    values = [-1, 5, 21, float("inf"), -float("inf")]
    np.testing.assert_array_equal(count_values(values, BINS, outside="clip"), [3, 2])
    np.testing.assert_array_equal(count_values(values, BINS, outside="drop"), [1, 0])
    with pytest.raises(InputError, match="outside='clip' or 'drop'") as refusal:
        count_values(values, BINS)
    assert "21" not in str(refusal.value)


def test_categories_are_counted_by_name():
    bins = bins_of_categories(["a", 2, "c"])
    np.testing.assert_array_equal(
        count_values(np.array(["a", "2", "a"], dtype=object), bins), [2, 1, 0]
    )
    np.testing.assert_array_equal(count_values([2, 2], bins), [0, 2, 0])
    for policy in ("drop", "clip"):  # what is no category has no nearest one
        np.testing.assert_array_equal(count_values(["a", "z"], bins, outside=policy), [1, 0, 0])
    with pytest.raises(InputError, match="outside the bins"):
        count_values(["a", "z"], bins)
    with pytest.raises(InputError, match="missing"):
        count_values(np.array(["a", None], dtype=object), bins)


@pytest.mark.parametrize("policy", ["error", "clip", "drop"])
@pytest.mark.parametrize(
    "values",
    [[1.0, float("nan")], np.array([1.0, None], dtype=object), pa.array([1, None])],
    ids=type,
)
def test_missing_values_are_refused_whatever_the_policy(values, policy):
    with pytest.raises(InputError, match="missing"):
        count_values(values, BINS, outside=policy)


@pytest.mark.parametrize(
    "values",
    [["a", "b"], [True], "text", None, [[1, 2]], np.array([object()])],
    ids=["text values", "truth", "text", "nothing", "rows", "objects"],
)
def test_refuses_values_that_are_no_numbers(values):
    with pytest.raises(InputError):
        count_values(values, BINS)


TOO_LARGE = np.array([2**63], dtype=np.uint64)


@pytest.mark.parametrize(
    "counts", [[1.0, 2.0], [0.5], ["1"], [-1, 2], [], 5, None, "12", TOO_LARGE], ids=repr
)
def test_refuses_counts_that_are_no_whole_numbers(counts):
    with pytest.raises(InputError):
        check_counts(counts)


def test_accepts_whole_counts_of_any_width():
    assert check_counts(np.array([1, 2], dtype=np.uint8)).dtype == np.int64
    assert check_counts([[1, 2], [3, 4]]).shape == (2, 2)

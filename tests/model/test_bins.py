import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.model.bins import (
    bins_from_edges,
    bins_of_categories,
    bins_of_width,
    equal_bins,
    numbered_bins,
)


def test_spans_of_numbers_run_from_edge_to_edge():
    bins = bins_from_edges([0, 10, 25, 100])
    assert bins.span(0, 25) == (0, 2)
    assert bins.span(10, 100) == (1, 3)
    first, last = bins.spans(np.array([[0, 10], [10, 100]]))
    np.testing.assert_array_equal(first, [0, 1])
    np.testing.assert_array_equal(last, [1, 3])


def test_spans_of_categories_include_both_ends():
    bins = bins_of_categories(["low", "middle", "high"])
    assert bins.span("low", "low") == (0, 1)
    assert bins.span("low", "high") == (0, 3)


def test_widths_are_taken_as_decimals():
    bins = bins_of_width(0.1, (0, 1))
    assert bins.n_bins == 10
    assert bins.span(0.3, 0.7) == (3, 7)
    np.testing.assert_array_equal(equal_bins(4, (-1, 1)).edges, [-1, -0.5, 0, 0.5, 1])


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (25, 10, "from low to high"),
        (10, 10, "from low to high"),
        (-1, 10, "outside the bins"),
        (0, 101, "outside the bins"),
        (0, 12, "Use 10 or 25"),
        ("a", 10, "are numbers"),
        (float("nan"), 10, "outside the bins"),
        (True, 10, "are numbers"),
    ],
)
def test_refuses_ranges_out_of_order_or_out_of_domain(low, high, message):
    bins = bins_from_edges([0, 10, 25, 100])
    with pytest.raises(RequestError, match=message):
        bins.span(low, high)
    with pytest.raises(RequestError, match=message):
        bins.spans([(0, 10), (low, high)])


def test_refuses_unknown_categories_and_pairs_that_are_none():
    bins = bins_of_categories(["a", "b", "c", "d", "e", "x"])
    with pytest.raises(RequestError, match="There is no category"):
        bins.span("a", "zz")
    with pytest.raises(RequestError, match="pair of low and high"):
        numbered_bins(3).spans([(0, 1, 2)])
    with pytest.raises(RequestError, match="from low to high"):
        bins.span("x", "a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bins_from_edges([0, 0, 1]), "strictly increasing"),
        (lambda: bins_from_edges([0, 2, 1]), "strictly increasing"),
        (lambda: bins_from_edges([0, float("nan")]), "finite"),
        (lambda: bins_from_edges([0, float("inf")]), "finite"),
        (lambda: bins_from_edges([1]), "at least one bin"),
        (lambda: bins_from_edges([]), "at least one bin"),
        (lambda: bins_from_edges(["a", "b"]), "list of numbers"),
        (lambda: numbered_bins(0), "at least one bin"),
        (lambda: equal_bins(0, (0, 1)), "at least 1"),
        (lambda: equal_bins(10**400, (0, 1)), "at most 16,777,216 bins"),
        (lambda: bins_of_width(1e-8, (0, 1)), "at most 16,777,216 bins"),
        (lambda: equal_bins(2.5, (0, 1)), "whole number"),
        (lambda: equal_bins(2, (1, 1)), "lower bound"),
        (lambda: equal_bins(2, (0, float("inf"))), "finite"),
        (lambda: bins_of_width(0, (0, 1)), "greater than 0"),
        (lambda: bins_of_width(3, (0, 10)), "Use bounds up to 12"),
        (lambda: bins_of_width(3, 10), "pair of numbers"),
        (lambda: bins_of_categories([]), "at least one category"),
        (lambda: bins_of_categories(["a", "a"]), "distinct"),
        (lambda: bins_of_categories("ab"), "list of names"),
    ],
)
def test_refuses_bins_that_are_none(make, message):
    with pytest.raises(RequestError, match=message):
        make()


def test_equal_bins_are_equal_and_shown_in_short():
    assert numbered_bins(3) == bins_from_edges([0, 1, 2, 3])
    assert hash(numbered_bins(3)) == hash(bins_from_edges([0, 1, 2, 3]))
    assert numbered_bins(3) != bins_of_categories(["a", "b", "c"])
    assert repr(numbered_bins(1000)) == "Bins(1,000 from 0 to 1000)"
    assert repr(bins_of_categories(["a"])) == "Bins(1 categories)"

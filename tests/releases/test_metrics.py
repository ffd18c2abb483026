import pytest

from tallytree.errors import RequestError
from tallytree.releases.metrics import mean_absolute_error, mean_relative_error, mean_squared_error


def test_errors_of_answers():
    answers, truth = [12, 3, 0], [10, 0, 4]
    assert mean_absolute_error(answers, truth) == 3
    assert mean_squared_error(answers, truth) == pytest.approx((4 + 9 + 16) / 3)
    assert mean_relative_error(answers, truth, threshold=2) == pytest.approx((0.2 + 1.5 + 1.0) / 3)


def test_refuses_what_has_no_error():
    with pytest.raises(RequestError, match="as many answers"):
        mean_absolute_error([1, 2], [1])
    with pytest.raises(RequestError, match="at least one"):
        mean_squared_error([], [])
    for threshold in (0, -1, float("nan")):
        with pytest.raises(RequestError, match="threshold"):
            mean_relative_error([1], [1], threshold)

"""Accuracy is pinned: whoever moves an error by more than a tenth, on any level of any set, has to
say so.
"""

import json

import numpy as np
import pytest

from tests.golden import accuracy

GOLDEN = json.loads(accuracy.FILE.read_text(encoding="utf-8"))
SPLITS = json.loads(accuracy.SPLITS.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", accuracy.cases())
def test_errors_are_what_they_were(case: str) -> None:
    np.testing.assert_allclose(accuracy.errors(case), GOLDEN[case], rtol=0.1)


@pytest.mark.parametrize("case", accuracy.split_cases())
def test_splits_are_what_they_were(case: str) -> None:
    # Two steps of the planner's grid: where two splits are as good, rounding of another processor
    # may prefer the other.
    np.testing.assert_allclose(accuracy.split(case), SPLITS[case], rtol=0, atol=0.0101)


def test_every_golden_figure_is_tested() -> None:
    assert sorted(GOLDEN) == sorted(accuracy.cases())
    assert sorted(SPLITS) == sorted(accuracy.split_cases())

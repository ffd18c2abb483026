"""The step of largest-remainder rounding, against sorting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from tallytree.kernels.rounding import raise_largest


@given(st.lists(st.integers(0, 5), max_size=12), st.data())
def test_raise_largest_takes_the_first_of_ties(keys: list[int], data: st.DataObject) -> None:
    n_raised = data.draw(st.integers(0, len(keys)))
    whole = np.zeros(len(keys), dtype=np.int64)
    raise_largest(np.array(keys, dtype=np.int64), n_raised, whole)
    chosen = sorted(range(len(keys)), key=lambda i: (-keys[i], i))[:n_raised]
    assert_array_equal(np.flatnonzero(whole), sorted(chosen))

"""The order of numbers from large to small."""

import numba
import numpy as np
import pytest

from tallytree.group_sizes.kernels.quicksort import order_falling


@numba.njit
def as_numba_sorts(keys):  # type: ignore[no-untyped-def]
    return np.argsort(-keys)


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 100, 3_000])
@pytest.mark.parametrize("n_different", [1, 3, 10**9])
def test_keys_fall_and_ties_lie_as_numba_puts_them(n: int, n_different: int) -> None:
    # Released numbers follow the order of ties, and were first made with np.argsort inside a
    # kernel.
    keys = np.random.default_rng(n).integers(0, n_different, n).astype(np.float64)
    order = np.empty(n, dtype=np.int64)
    order_falling(keys, order)
    assert sorted(order.tolist()) == list(range(n))
    assert (np.diff(keys[order]) <= 0).all()
    assert order.tolist() == as_numba_sorts(keys).tolist()


@pytest.mark.parametrize("shape", ["rising", "falling", "organ pipe"])
def test_long_sorted_keys_need_no_deep_stack(shape: str) -> None:
    n = 200_000
    rising = np.arange(n, dtype=np.float64)
    keys = {
        "rising": rising,
        "falling": rising[::-1].copy(),
        "organ pipe": np.minimum(rising, rising[::-1]),
    }[shape]
    order = np.empty(n, dtype=np.int64)
    order_falling(keys, order)
    assert (np.diff(keys[order]) <= 0).all()

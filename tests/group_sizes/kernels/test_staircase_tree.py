import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.group_sizes.kernels.tree import allocate, make_falling, share_out


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 8))
def test_allocated_children_are_whole_falling_and_add_up(
    seed: int, n_children: int, n_sizes: int
) -> None:
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 9, n_children)
    parent = np.sort(rng.integers(0, groups.sum() + 1, n_sizes))[::-1][None].copy()
    wish = rng.normal(3, 4, (n_children, n_sizes))
    least = np.zeros(n_children, dtype=np.int64)
    for _ in range(int(parent[0, -1])):
        child = rng.integers(n_children)
        least[child] += least[child] < groups[child]
    out = allocate(parent, groups, least, wish, np.array([0, n_children]))
    assert (out.sum(axis=0) == parent[0]).all()
    assert (np.diff(out, axis=1, prepend=groups[:, None]) <= 0).all()
    assert (out >= least[:, None]).all()


def test_whole_wishes_that_add_up_are_granted() -> None:
    rng = np.random.default_rng(3)
    children = np.sort(rng.integers(0, 50, (7, 12)), axis=1)[:, ::-1].copy()
    groups = children[:, 0] + rng.integers(0, 5, 7)
    parent = children.sum(axis=0)[None]
    out = allocate(
        parent, groups, np.zeros(7, dtype=np.int64), children.astype(float), np.array([0, 7])
    )
    assert (out == children).all()


def test_rounding_does_not_add_up() -> None:
    """A hundred children that expect a hundredth of a group at each of a hundred sizes end within
    one group of it.
    """
    n = 100
    parent = (100 - np.arange(1, n + 1))[None]
    wish = np.tile(1 - np.arange(1, n + 1) / n, (n, 1))
    out = allocate(
        parent, np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64), wish, np.array([0, n])
    )
    assert (np.abs(out - wish) <= 1).all()


def test_what_is_missing_goes_to_the_unsure() -> None:
    height = np.array([[4.0, 2.0], [6.0, 2.0]])
    variance = np.array([[1.0, 0.0], [3.0, 2.0]])
    share_out(np.array([[14.0, 3.0]]), height, variance, np.array([0, 2]))
    np.testing.assert_allclose(height, [[5, 2], [9, 1]])


def test_make_falling_respects_bounds() -> None:
    height = np.array([[12.0, 3.0, 5.0, -2.0]])
    make_falling(np.array([10]), height, np.ones((1, 4)))
    np.testing.assert_allclose(height, [[10, 4, 4, 0]], atol=1e-6)


def test_children_round_to_the_nearest_size_that_their_parent_has() -> None:
    """The parent has groups at sizes 1 and 9 alone: a child whose group seems to have 3 gets the 1,
    one with 7 the 9.
    """
    parent = np.array([[2] + [1] * 8 + [0]])
    height = np.array([[1.0] * 3 + [0.0] * 7, [1.0] * 7 + [0.0] * 3])
    out = allocate(
        parent, np.ones(2, dtype=np.int64), np.zeros(2, dtype=np.int64), height, np.array([0, 2])
    )
    assert out[0].tolist() == [1] + [0] * 9
    assert out[1].tolist() == [1] * 9 + [0]

import numpy as np

from tallytree.group_sizes.plan.first_look import FirstLook, first_look, look_ends
from tallytree.tuning.look import LARGEST_LOOK


def look_at(sizes: np.ndarray, noise_std: float, seed: int = 0) -> FirstLook:
    """A look at groups of these sizes, with rounded Gaussian noise."""
    ends = look_ends()
    starts = np.append(0, ends[:-1])
    exact = np.array(
        [
            np.clip(sizes - start, 0, end - start).sum()
            for start, end in zip(starts, ends, strict=True)
        ]
    )
    noise = np.rint(np.random.default_rng(seed).normal(0, noise_std, len(ends))).astype(np.int64)
    return first_look(exact + noise, len(sizes), noise_std)


def test_blocks_are_single_sizes_first_and_reach_far() -> None:
    ends = look_ends()
    assert ends[:9].tolist() == list(range(1, 10))
    assert ends[-1] >= LARGEST_LOOK
    widths = np.diff(ends, prepend=0)
    assert (widths[1:] <= np.maximum(1, 0.2 * ends[:-1])).all()


def test_a_look_without_noise_shows_the_curve() -> None:
    sizes = np.repeat([1, 2, 3, 8], [40, 30, 20, 10])
    look = look_at(sizes, 0.0)
    assert look.height[:9].tolist() == [100, 60, 30, 10, 10, 10, 10, 10, 0]
    height, _ = look.curve(9)
    np.testing.assert_allclose(height[:8], look.height[:8])
    assert look.cells_beyond(2) == 20 * 1 + 10 * 6


def test_a_noisy_look_falls_between_its_bounds() -> None:
    look = look_at(np.random.default_rng(0).geometric(0.3, 500), 300.0)
    assert (np.diff(look.height) <= 0).all()
    assert look.height[0] <= 500
    assert look.height[-1] >= 0


def test_sizes_to_tell_apart_end_before_single_outliers() -> None:
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.geometric(0.4, 100_000), rng.integers(1_000, 10_000, 20)])
    look = look_at(sizes, 30.0)
    # Few enough groups lie beyond to measure one by one, and no outlier draws the table out.
    found = look.n_sizes(2.0, 10**6)
    assert 20 <= (sizes > found).sum() < 100
    assert found < 100
    assert look.n_sizes(2.0, 16) <= 16
    assert look.n_sizes(2.0, 1) >= 8


def test_usual_sizes_are_told_apart_unless_memory_is_short() -> None:
    look = look_at(np.full(1000, 3), 50.0)
    assert look.n_sizes(1.0, most=10**6) >= 53  # the last end of a block up to 64
    assert look.n_sizes(1.0, most=40) <= 16
    assert look.n_sizes(1.0, most=1) <= 8


def test_sizes_that_answers_told_apart_stay_told_apart_as_far_as_memory_goes() -> None:
    look = look_at(np.full(1000, 3), 50.0)
    now = look.n_sizes(1.0, most=10**6)
    assert look.n_sizes(1.0, most=10**6, told=now) == now
    assert 1_000 <= look.n_sizes(1.0, most=10**6, told=1_000) <= 1_200
    assert look.n_sizes(1.0, most=500, told=10**12) <= 500


def test_a_look_rarely_sees_groups_where_there_are_none() -> None:
    sizes = np.random.default_rng(2).integers(1, 9, 20_000)
    ends = look_ends()
    exact = np.array(
        [
            np.clip(sizes - start, 0, end - start).sum()
            for start, end in zip(np.append(0, ends), ends)
        ]
    )
    noise = np.rint(np.random.default_rng(3).laplace(0, 33, (400, len(ends)))).astype(np.int64)
    looks = [first_look(exact + drawn, len(sizes), 33 * np.sqrt(2)) for drawn in noise]
    farthest = np.array([look.ends[look.n_seen - 1] for look in looks])
    assert (farthest > 12).mean() < 0.015
    assert farthest.min() >= 8


def test_where_a_look_sees_nothing_falls_are_those_of_geometric_sizes() -> None:
    """The mean excess of geometric sizes is the same from every size on; of a heavy tail it grows."""
    geometric = look_at(np.random.default_rng(3).geometric(0.25, 50_000), 1.0)
    fall, variance = geometric.usual_falls(64)
    np.testing.assert_allclose(fall[1:10], 0.25, rtol=0.1)
    np.testing.assert_allclose(fall[40:], fall[40], rtol=1e-12)
    np.testing.assert_allclose(variance, fall**2)
    heavy = look_at(
        np.ceil(np.random.default_rng(4).pareto(1.5, 50_000)).astype(np.int64), 1.0
    ).usual_falls(64)[0]
    assert heavy[30] < heavy[3] / 3


def test_the_far_tail_says_nothing_about_falls_that_are_seen() -> None:
    """Sizes i^-1.2 up to a million: the mean excess over the whole tail is tens of thousands."""
    sizes = np.arange(1, 10**6 + 1)
    share = sizes**-1.2 / (sizes**-1.2).sum()
    look = look_at(np.random.default_rng(5).choice(sizes, size=30_000, p=share), 100.0)
    fall = look.usual_falls(64)[0]
    true = np.append(0, share / share[::-1].cumsum()[::-1])
    np.testing.assert_allclose(np.log(fall[2:40] / true[2:40]), 0, atol=np.log(2))


def test_few_groups_end_the_sizes_told_apart_only_where_they_lie_far_out() -> None:
    rng = np.random.default_rng(6)
    common = rng.geometric(1 / 30, 50_000)
    near, far = rng.integers(200, 600, 60), rng.integers(20_000, 90_000, 60)
    found = [look_at(np.append(common, few), 500.0).n_sizes(200.0, 10**6) for few in (near, far)]
    assert found[0] > 300 > found[1] >= 53

"""Sizes that a combination of values does not have: judged as dense normal laws judge, and left out
of every region.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.group_sizes.estimate.heads import _gains, with_empty_heads
from tallytree.group_sizes.estimate.staircases import MeasuredLevel
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.noisy import NoisyLevel, NoisyQuery
from tallytree.group_sizes.reconcile import staircases
from tallytree.privacy.noise import DiscreteLaplace
from tallytree.tuning.blocks import ROUGHNESS

FALL = np.array([0.02, 0.3, 0.4, 0.5, 0.6])
FALL_VARIANCE = np.array([1e-4, 1e-3, 1e-3, 1e-3, 1e-3])
NOISE = DiscreteLaplace(Fraction(4))
ENDS = (1, 2, 5)


def measured(groups: list[int], answers: list[list[float]]) -> MeasuredLevel:
    offsets = np.arange(len(groups) + 1) * len(ENDS)
    values = np.array(answers, dtype=np.int64).ravel()
    ends = NoisyQuery("block ends", None, offsets, np.tile(ENDS, len(groups)))  # type: ignore[arg-type]
    queries = (NoisyQuery("blocks", NOISE, offsets, values), ends)
    prior = Prior(
        FALL[None], FALL_VARIANCE[None], np.ones((1, 5)), np.zeros(len(groups), dtype=np.int64)
    )
    return MeasuredLevel(NoisyLevel(0, queries, ("couple",)), np.array(groups), prior)


def dense_gain(groups: float, start: int, end: int, answer: float) -> float:
    """Log-likelihood of a block's answer if nothing falls, less that if N falls as the prior says
    from N = groups on.
    """
    mean, covariance, height = [], np.zeros((end - start, end - start)), groups
    for i, at in enumerate(range(start, end)):
        falling = height * FALL[at]
        covariance[i, :i] = (1 - FALL[at]) * covariance[i - 1, :i] if i else 0.0
        covariance[:i, i] = covariance[i, :i]
        before = covariance[i - 1, i - 1] if i else 0.0
        own = falling + (ROUGHNESS * falling) ** 2 + height**2 * FALL_VARIANCE[at]
        covariance[i, i] = (1 - FALL[at]) ** 2 * before + own
        height -= falling
        mean.append(height)
    variance = NOISE.variance

    def log_density(expected: float, spread: float) -> float:
        return -0.5 * (np.log(2 * np.pi * spread) + (answer - expected) ** 2 / spread)

    return log_density(groups * (end - start), variance) - log_density(
        sum(mean), covariance.sum() + variance
    )


@pytest.mark.parametrize("answers", [[1003, 998, 2100], [995, 1004, 3006], [990, 1010, 2990]])
def test_heads_are_as_much_likelier_as_normal_laws_say(answers: list[float]) -> None:
    until, gain = _gains(measured([1000], [answers]), 0, FALL, FALL_VARIANCE)
    spans = list(zip((0, *ENDS), ENDS))[: len(until)]
    expected = np.cumsum([dense_gain(1000, *span, answer) for span, answer in zip(spans, answers)])
    assert until.tolist() == list(ENDS)[: len(until)]
    assert np.allclose(gain, expected)


def test_a_head_is_empty_where_the_curve_stays_at_the_number_of_groups() -> None:
    """Of three rows the first has none of size 0 or 1, the second many of size 1, the third no
    groups at all.
    """
    found = with_empty_heads(
        measured([5000, 3000, 0], [[5004, 4995, 9000], [3001, 1400, 2000], [2, -3, 5]])
    )
    falls = found.prior.fall[found.prior.row]
    assert falls[0].tolist() == [0, 0, *FALL[2:]]
    assert falls[1].tolist() == [0, *FALL[1:]]
    assert found.prior.fall_variance[0, :2].tolist() == [0, 0]


def households(empty: float) -> Any:
    """Couples, of two and more, and others, of one and more; some have nobody."""
    rng = np.random.default_rng(3)
    n = 20_000
    couple = rng.random(n) < 0.5
    size = np.where(rng.random(n) < empty, 0, 1 + couple + rng.poisson(0.8, n))
    table = pa.table(
        {
            "state": [f"s{i}" for i in rng.integers(0, 10, n)],
            "couple": np.where(couple, "yes", "no"),
            "size": size,
        }
    )
    return tt.read(table, levels=["state"], size="size", by=["couple"], public="cells")


@pytest.mark.parametrize("seed", range(3))
def test_no_region_has_couples_that_live_alone(seed: int) -> None:
    counts = households(0.0)
    made = tt.release(counts, epsilon="0.5", insecure_seed=seed).table(by=["couple"]).to_pylist()
    assert min(row["size"] for row in made if row["couple"] == "yes") == 2
    assert min(row["size"] for row in made if row["couple"] == "no") == 1


def test_groups_that_are_empty_stay() -> None:
    counts = households(0.03)
    made = tt.release(counts, epsilon=1, insecure_seed=1).table(by=["couple"]).to_pylist()
    empty = sum(row["count"] for row in made if row["size"] == 0 and row["level"] == 0)
    exact = counts.leaf_counts.count[counts.leaf_counts.size == 0].sum()
    # Noise on the two rows of the whole has a scale of some 3.4 each.
    assert abs(empty - exact) < 60


def test_cells_do_not_depend_on_the_pieces_that_they_are_estimated_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = households(0.01)
    how: dict[str, Any] = {"epsilon": 1, "insecure_seed": 2, "budget": ["0", "0", "1/2", "1/2"]}
    whole = tt.release(counts, **how).table(by=["couple"])
    monkeypatch.setattr(staircases, "PIECE_CELLS", 64)
    assert tt.release(counts, **how).table(by=["couple"]).equals(whole)

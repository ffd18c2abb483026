"""Nothing is measured between root and leaves: sums of leaves have the error of independent noise,
not of a shared bias.
"""

import math

import numpy as np
import pytest
from benchmarks.accuracy.data import Dials, made_up

import tallytree as tt
from tallytree.group_sizes.reconcile import staircases

# Nine counties that differ from each other, 300 zones each, households of one to four.
ZONES = made_up(
    Dials(
        fan_outs=(9, 300),
        groups=135_000,
        mean=1.0,
        shape="poisson",
        largest=4,
        unlike=0.1,
        uneven=0.3,
        regional=0.3,
    )
)


def middle_error(epsilon: str) -> float:
    made = [
        tt.release(
            ZONES,
            epsilon=epsilon,
            mechanism="adaptive",
            budget=["0.3", "0", "0.7"],
            insecure_seed=seed,
        )
        for seed in range(3)
    ]
    return float(np.mean([tt.evaluate(one, ZONES).levels[1].emd for one in made]))


@pytest.mark.parametrize("epsilon", ["0.3", "0.1"])
def test_sums_of_leaves_are_as_good_as_independent_noise(
    monkeypatch: pytest.MonkeyPatch, epsilon: str
) -> None:
    std = math.sqrt(2) / (0.97 * 0.7 * float(epsilon))
    # √(2/π) standard deviations for each of the four sizes.
    independent = 4 * math.sqrt(2 / math.pi) * std * math.sqrt(300)
    assert middle_error(epsilon) < 1.3 * independent
    monkeypatch.setattr(
        staircases, "_without_bias", lambda n_groups, summed, answered, spread: summed
    )
    assert middle_error(epsilon) > 1.3 * independent

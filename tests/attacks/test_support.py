"""Floating point has no say: noise does not depend on values, so neighbours have the same possible
outputs.
"""

from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.privacy.noise import VALUE_LIMIT, DiscreteGaussian, DiscreteLaplace, Noise, add_noise
from tallytree.privacy.randomness import KeyStream
from tests.attacks.inputs import random_households

NOISES = [
    DiscreteLaplace(Fraction(1, 3)),
    DiscreteLaplace(Fraction(10**6, 7)),
    DiscreteGaussian(Fraction(5, 2)),
]
VALUES = [0, 1, -1, 7, 2**31, 2**53, 2**53 + 1, -(2**60)]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_noise_is_the_same_whatever_it_is_added_to(noise: Noise) -> None:
    def noisy_value(value: int) -> np.ndarray:
        stream = KeyStream.from_insecure_seed(3)
        return add_noise(np.full(1000, value), noise, stream, level=0, query="q")

    zero = noisy_value(0)
    for value in VALUES:
        noisy = noisy_value(value)
        # As Python integers: no value is too large for the difference to be exact.
        assert [int(x) - value for x in noisy] == zero.tolist()


def test_outputs_of_neighbours_cover_the_same_whole_numbers() -> None:
    stream = KeyStream.from_system()
    noise = DiscreteLaplace(Fraction(3))
    one, other = (
        set(add_noise(np.full(200_000, value), noise, stream, level=value, query="q").tolist())
        for value in (2**53, 2**53 + 1)
    )
    window = set(range(2**53 - 12, 2**53 + 13))  # a float could not even tell these apart
    assert window <= one
    assert window <= other


def test_values_at_the_limit_neither_fail_nor_wrap_around() -> None:
    stream = KeyStream.from_system()
    extremes = np.array([np.iinfo(np.int64).max, VALUE_LIMIT, -VALUE_LIMIT, np.iinfo(np.int64).min])
    noisy = add_noise(extremes, DiscreteLaplace(Fraction(1000)), stream, level=0, query="q")
    assert (np.sign(noisy) == np.sign(extremes)).all()
    assert (np.abs(noisy) <= VALUE_LIMIT).all()


@pytest.mark.parametrize("view", ["naive", "sizes", "cumulative"])
def test_a_release_shifts_by_whole_numbers_between_neighbours(view: str) -> None:
    """The same key, two neighbours: every noisy answer moves by the true change, so the noise was
    the same.
    """
    households = random_households(np.random.default_rng(2))
    neighbour = next(iter(households.neighbours()))
    noisy = [
        tt.release(one.counts(), epsilon=1, view=view, max_size=45, insecure_seed=5).noisy
        for one in (households, neighbour)
    ]
    for before, after in zip(noisy[0].levels, noisy[1].levels, strict=True):  # type: ignore[union-attr]
        change = after.queries[0].values - before.queries[0].values
        assert change.dtype == np.int64
        assert 1 <= np.abs(change).sum() <= 2


def test_raw_measurements_are_stored_as_whole_numbers(tmp_path: object) -> None:
    folder = tt.release(random_households(np.random.default_rng(2)).counts(), epsilon=1).save(
        f"{tmp_path}/out"
    )
    table = pq.read_table(folder / "noisy.parquet")
    assert {str(table.schema.field(name).type) for name in ("level", "index", "value")} <= {
        "int64",
        "int32",
        "int16",
        "int8",
    }

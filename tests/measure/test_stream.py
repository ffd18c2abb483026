import pickle

import numpy as np
import pytest

from tallytree.errors import InputError, RequestError
from tallytree.measure.stream import StreamCounter


def test_counts_are_exact_without_noise():
    counter = StreamCounter(100, epsilon=10_000)
    arrivals = np.random.default_rng(1).integers(0, 50, 100)
    found = [counter.add(int(number)).estimate for number in arrivals]
    np.testing.assert_allclose(found, np.cumsum(arrivals))
    with pytest.raises(RequestError, match="horizon of 100 steps"):
        counter.add(1)


@pytest.mark.parametrize("inference", [True, False])
def test_errors_are_as_stated_and_intervals_hold_the_truth(inference):
    arrivals = [5] * 37
    squared, held, answers = np.zeros(37), np.zeros(37), []
    runs = 300
    for seed in range(runs):
        counter = StreamCounter(64, epsilon=1, inference=inference, insecure_seed=seed)
        answers = [counter.add(number) for number in arrivals]
        errors = np.array([answer.estimate for answer in answers]) - np.cumsum(arrivals)
        squared += errors**2
        held += [answer.low <= truth <= answer.high for answer, truth in zip(answers, np.cumsum(arrivals))]
    stated = np.array([answer.standard_error**2 for answer in answers])
    assert (squared / runs / stated).mean() == pytest.approx(1, abs=0.1)
    assert held.mean() / runs == pytest.approx(0.95, abs=0.015)


def test_the_papers_variance_is_one_block_per_binary_digit():
    counter = StreamCounter(127, epsilon=1, inference=False, insecure_seed=1)
    for step in range(1, 100):
        answer = counter.add(0)
        assert answer.standard_error**2 == pytest.approx(bin(step).count("1") * counter.noise.variance)
    assert counter.noise.scale == 7


def test_inference_nearly_halves_the_variance_of_large_blocks():
    raw, smart = (StreamCounter(1024, epsilon=1, inference=inference, insecure_seed=1) for inference in (False, True))
    for _ in range(512):
        before, after = raw.add(1), smart.add(1)
    assert after.standard_error**2 / before.standard_error**2 == pytest.approx(0.5, abs=0.01)


def test_asking_again_gives_the_same_answer():
    counter = StreamCounter(8, rho=0.5, definition="zcdp", insecure_seed=1)
    assert counter.count().estimate == 0
    assert counter.add(3) == counter.count() == counter.count(level=0.95)
    assert counter.count(level=0.5).high <= counter.count().high


def test_counters_hide_what_they_hold():
    counter = StreamCounter(8, epsilon=1)
    counter.add(123456)
    assert repr(counter) == "StreamCounter(1 of 8 steps, epsilon = 1, counts hidden)"
    assert counter.private
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(counter)


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True, "8"])
def test_refuses_horizons_that_are_none(horizon):
    with pytest.raises(RequestError, match="horizon"):
        StreamCounter(horizon, epsilon=1)


@pytest.mark.parametrize("arrivals", [-1, 1.5, True, None])
def test_refuses_arrivals_that_are_none(arrivals):
    with pytest.raises(InputError, match="Arrivals"):
        StreamCounter(8, epsilon=1).add(arrivals)

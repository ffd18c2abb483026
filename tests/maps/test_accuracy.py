import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.maps.accuracy import compare_maps, predict_map
from tallytree.maps.assumed import points_like

RNG = np.random.default_rng(3)
POINTS = np.concatenate(
    [RNG.normal(0.3, 0.05, size=(20_000, 2)), RNG.uniform(size=(5000, 2))]
).clip(0, 1)
EARLIER = tt.spatial(POINTS, box=[(0, 1), (0, 1)], resolution=64, epsilon=1, insecure_seed=1)


def test_assumed_points_are_those_of_the_earlier_map():
    assumed = points_like(EARLIER)
    assert abs(assumed.counts.sum() - 25_000) < 1000
    corner = assumed.counts[10:30, 10:30].sum()
    assert abs(corner - EARLIER.range([(10 / 64, 30 / 64)] * 2).estimate) < 6 * np.sqrt(corner)


def test_a_prediction_comes_near_what_a_release_of_the_real_points_has():
    predicted = tt.plan(EARLIER, epsilon=0.1, runs=4)
    real = [
        tt.evaluate(
            tt.spatial(
                POINTS, box=[(0, 1), (0, 1)], resolution=64, epsilon=0.1, insecure_seed=seed
            ),
            POINTS,
        )
        for seed in range(100, 104)
    ]
    for place in (1, 2, 3):
        truth = np.mean([one.classes[place].mean_error for one in real])
        assert 0.6 < predicted.classes[place].mean_error / truth < 1.6
    assert "auto" in repr(predicted)
    assert "No confidential data" in predicted._repr_html_()


def test_methods_are_compared_on_the_same_points():
    steps = []
    found = compare_maps(
        points_like(EARLIER),
        ["auto", "flat"],
        epsilon=0.1,
        runs=1,
        progress=lambda *step: steps.append(step),
    )
    assert [one.name for one in found] == ["auto", "flat"]
    assert found[0].classes[1].mean_error < found[1].classes[1].mean_error
    assert found[0] == predict_map(points_like(EARLIER), epsilon=0.1, runs=1)
    assert len(steps) == 2


def test_a_map_takes_no_target():
    with pytest.raises(RequestError, match="no target"):
        tt.plan(EARLIER, target="county: emd<=20")
    with pytest.raises(RequestError, match="mechanism 'best' is not known"):
        tt.plan(EARLIER, epsilon=1, mechanism="best")

import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.maps.evaluate import evaluate_map
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.releases.query_evaluation import CLASSES, N_BOXES, spread_boxes
from tests.reference.boxes import box_count

POINTS = np.random.default_rng(1).normal(0.5, 0.15, size=(5000, 2)).clip(0, 1)
BOX = [(0, 1), (0, 1)]


def made(**options):
    return tt.spatial(POINTS, box=BOX, resolution=64, insecure_seed=1, **{"epsilon": 1, **options})


def test_no_noise_and_single_cells_have_no_error():
    """At a huge ε the flat method publishes the truth."""
    result = tt.evaluate(made(mechanism="flat", epsilon=1000), POINTS)
    assert [one.name for one in result.classes] == [
        "everything",
        *(f"{size} boxes" for size in CLASSES),
        "single cells",
    ]
    assert all(one.mean_error == 0 and one.within_two == 1 for one in result.classes)
    assert result.classes[0].mean_count == 5000


def test_errors_are_those_of_the_boxes():
    release = made()
    result = tt.evaluate(release, POINTS)
    for one, part in zip(result.classes[1:], CLASSES.values()):
        low, high = spread_boxes((64, 64), part)
        errors = []
        for a, b in zip(low / 64, high / 64):
            inside = np.all(
                (a <= POINTS) & ((b > POINTS) | ((b == 1) & (POINTS == 1))), axis=1
            ).sum()
            errors.append(abs(release.range(list(zip(a, b))).estimate - inside))
        np.testing.assert_allclose(one.mean_error, np.mean(errors), rtol=1e-9)
        np.testing.assert_allclose(
            one.root_mean_square, np.sqrt(np.mean(np.square(errors))), rtol=1e-9
        )
        np.testing.assert_allclose(one.scaled_error, np.mean(errors) / 5000)


def test_more_budget_means_smaller_errors_and_honest_standard_errors_of_large_boxes():
    rough, fine = (
        tt.evaluate(
            made(mechanism="flat", epsilon=epsilon, nonnegative=False, integers=False), POINTS
        )
        for epsilon in (0.1, 1)
    )
    for a, b in zip(rough.classes[1:], fine.classes[1:]):
        assert a.mean_error > 5 * b.mean_error
        assert 0.85 < a.within_two <= 1
        assert 0.6 < a.mean_error / a.std_error < 1


@pytest.mark.parametrize("part", CLASSES.values())
@pytest.mark.parametrize("shape", [(64, 64), (5, 300), (4, 4, 4), (100,)])
def test_spread_boxes_lie_on_the_map(part, shape):
    low, high = spread_boxes(shape, part)
    assert low.shape == (N_BOXES, len(shape))
    assert np.all(low >= 0)
    assert np.all(low < high)
    assert np.all(high <= shape)
    assert np.all(high - low <= np.maximum(1, np.ceil(np.array(shape) * part)))


def test_other_data_are_refused():
    grid = ConfidentialGrid(
        np.zeros((8, 8), dtype=np.int64), PublicGrid(((0.0, 1.0),) * 2, ("x", "y"), (8, 8))
    )
    with pytest.raises(RequestError, match="must be equal"):
        evaluate_map(made(), grid)
    with pytest.raises(RequestError, match="got box"):
        tt.evaluate(made(), POINTS, box=BOX)
    with pytest.raises(RequestError, match="A release is expected"):
        tt.evaluate(made().estimates, POINTS)


def test_a_ready_grid_and_a_json_summary():
    counts = np.random.default_rng(1).poisson(2, size=(32, 32))
    release = tt.spatial(counts=counts, epsilon=1, insecure_seed=1)
    result = tt.evaluate(release, counts, counts=True)
    assert result.classes[0].mean_count == box_count(counts, (0, 0), (32, 32))
    facts = result.to_json()
    assert "not private" in facts["warning"]
    assert "NOT PRIVATE" in repr(result)
    assert "do not publish" in result._repr_html_()

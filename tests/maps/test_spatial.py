import json

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.boxes.methods import NAMES, method_named
from tallytree.errors import InputError, RequestError
from tallytree.ingest.grids import bin_points
from tallytree.model.box_tree import box_sums, prefix_sums
from tallytree.model.frame import Frame
from tests.forging import forge
from tests.reference.boxes import leaf_weights

RNG = np.random.default_rng(7)
POINTS = np.clip(
    np.concatenate([RNG.normal((2, 3), 0.3, size=(4000, 2)), RNG.uniform(0, 10, size=(2000, 2))]),
    0,
    10,
)
BOX = [(0, 10), (0, 10)]


def small_map(method="auto", **options):
    options = {"epsilon": 1, "insecure_seed": 1, "resolution": 64} | options
    return tt.spatial(POINTS, box=BOX, mechanism=method, **options)


@pytest.mark.parametrize(
    "method", ["auto", *(method for method in NAMES if not method_named(method).one_column)]
)
def test_every_method_saves_loads_and_verifies(method, tmp_path):
    made = small_map(method)
    assert made.verify(), made.verify()
    made.save(tmp_path / "map")
    assert tt.verify(tmp_path / "map")
    loaded = tt.load(tmp_path / "map")
    boxes = np.sort(np.random.default_rng(8).uniform(0, 10, size=(20, 2, 2)), axis=2)
    before, after = made.ranges(boxes), loaded.ranges(boxes)
    np.testing.assert_allclose(after.estimate, before.estimate)
    np.testing.assert_allclose(after.std_error, before.std_error)
    assert loaded.mechanism == made.mechanism
    assert made.estimates.published.min() >= 0
    assert made.estimates.published.dtype == np.int64
    total = made.total()
    assert total.estimate == pytest.approx(6000, abs=10 * total.std_error + 1)


def test_auto_is_chosen_by_the_size_of_the_grid_alone():
    assert small_map(resolution=32).mechanism == "flat"
    assert small_map(resolution=33).mechanism == "adaptive"
    assert small_map(resolution=33, epsilon="0.001").mechanism == "adaptive"


def test_shares_and_noise_of_every_step_stand_in_the_manifest(tmp_path):
    made = small_map("kd-tree", depth=2)
    steps = made.manifest["privacy"]["steps"]
    assert [step["query"] for step in steps][:3] == ["level 0", "median 0 0", "median 0 1"]
    assert all("scale" in step or "rate" in step for step in steps)
    assert made.manifest["privacy"]["epsilon"] == "1"
    assert not made.private
    assert "NOT PRIVATE" in repr(made)


def test_a_step_that_costs_more_than_it_states_is_found(tmp_path):
    made = small_map("quadtree", depth=2)
    made.save(tmp_path / "map")
    manifest = json.loads((tmp_path / "map" / "manifest.json").read_text())
    manifest["privacy"]["steps"][0]["scale"] = "2"
    forge(tmp_path / "map", manifest)
    failed = [check.name for check in tt.verify(tmp_path / "map").checks if not check.passed]
    assert any("cost what the manifest states" in name for name in failed)


def test_answers_are_sums_over_boxes_by_area():
    made = small_map("adaptive-grid")
    box = [(1.3, 7.77), (0.0, 5.01)]
    low, high = np.array([1.3, 0.0]) * 6.4, np.array([7.77, 5.01]) * 6.4
    leaves = made.estimates.leaves
    weights = leaf_weights(made.estimates.tree, leaves, low, high)
    values = made.estimates.published[leaves]
    answer = made.range(box)
    assert answer.estimate == pytest.approx(weights @ values)
    assert answer.by_area == pytest.approx((weights * (weights < 1)) @ values)
    assert made.ranges([box])[0].by_area > 0
    assert made.total().by_area == pytest.approx(0, abs=1e-6)
    assert "evenly spread" in made.note


def test_grid_adds_up_whatever_its_resolution():
    made = small_map("quad-opt")
    for resolution in (1, 7, 32, (5, 64)):
        assert made.grid(resolution).sum() == pytest.approx(made.total().estimate)
    np.testing.assert_allclose(made.grid(64), made.surface.density, atol=1e-6)
    assert made.grid((2, 3))[1, 2] == pytest.approx(made.range([(5, 10), (20 / 3, 10)]).estimate)


def test_errors_of_unbiased_answers_are_as_large_as_stated():
    truth = prefix_sums(
        bin_points(list(POINTS.T), Frame(((0.0, 10.0),) * 2, (32, 32))).settle("error")
    )
    low = np.array([[0, 0], [3, 8], [10, 1], [5, 5]])
    high = np.array([[16, 16], [21, 13], [11, 30], [32, 32]])
    boxes = np.stack([low, high], axis=2) / 3.2
    for method in ("quadtree", "flat", "hierarchical"):
        scores = []
        for seed in range(40):
            made = small_map(
                method, resolution=32, insecure_seed=seed, nonnegative=False, integers=False
            )
            answers = made.ranges(boxes)
            scores.append((answers.estimate - box_sums(truth, low, high)) / answers.std_error)
        assert np.mean(np.square(scores), axis=0) == pytest.approx(np.ones(4), abs=0.7), method
        assert np.mean(np.square(scores)) == pytest.approx(1, abs=0.3), method


def test_pruning_merges_boxes_with_low_counts():
    plain, pruned = small_map("quadtree"), small_map("quadtree", prune=20)
    assert pruned.estimates.leaves.sum() < plain.estimates.leaves.sum() / 2
    assert pruned.total().estimate == plain.total().estimate
    assert pruned.verify()


def test_points_arrive_in_every_form(tmp_path):
    table = pa.table({"lon": POINTS[:, 0], "lat": POINTS[:, 1]})
    ways = [
        tt.spatial(POINTS, box=BOX, epsilon=1, insecure_seed=1, resolution=16),
        tt.spatial(
            (POINTS[:, 0], POINTS[:, 1]), box=BOX, epsilon=1, insecure_seed=1, resolution=16
        ),
        tt.spatial(POINTS.tolist(), box=BOX, epsilon=1, insecure_seed=1, resolution=16),
        tt.spatial(
            table, columns=["lon", "lat"], box=BOX, epsilon=1, insecure_seed=1, resolution=16
        ),
    ]
    counts = np.histogram2d(POINTS[:, 0], POINTS[:, 1], bins=16, range=BOX)[0].astype(np.int64)
    ways.append(tt.spatial(counts=counts, box=BOX, epsilon=1, insecure_seed=1))
    for way in ways[1:]:
        np.testing.assert_array_equal(way.estimates.published, ways[0].estimates.published)
    assert ways[3].columns == ("lon", "lat")


def test_three_dimensions_and_zcdp():
    points = np.random.default_rng(9).uniform(0, 1, size=(3000, 3))
    made = tt.spatial(
        points,
        box=[(0, 1)] * 3,
        rho="0.5",
        definition="zcdp",
        mechanism="kd-tree",
        resolution=16,
        insecure_seed=2,
    )
    assert made.verify()
    assert made.range([(0, 0.5)] * 3).estimate == pytest.approx(375, abs=150)


def test_policies_for_points_outside():
    far = np.concatenate([POINTS, [[-5.0, 3.0], [11.0, 11.0]]])
    clipped = tt.spatial(far, box=BOX, epsilon=1000, insecure_seed=1, resolution=16, outside="clip")
    dropped = tt.spatial(far, box=BOX, epsilon=1000, insecure_seed=1, resolution=16, outside="drop")
    assert clipped.total().estimate == 6002
    assert dropped.total().estimate == 6000
    assert "left out" in dropped.manifest["public"]["outside"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"points": POINTS + 20, "outside": "error"}, "outside the box"),
        ({"points": np.array([[0.5, np.nan]])}, "NaN or infinite"),
        ({"points": np.array([[0.5, np.inf]])}, "NaN or infinite"),
        ({"points": POINTS[:, 0]}, "2 sides for 1 columns"),
        ({"points": POINTS[None]}, "one column per dimension"),
        ({"points": POINTS, "box": [(0, 10), (5, 5)]}, "no area"),
        ({"points": POINTS, "box": [(0, 10), (7, 5)]}, "no area"),
        ({"points": POINTS, "box": [(0, 10)]}, "1 sides for 2 columns"),
        ({"points": POINTS, "box": None}, "must be public"),
        ({"points": POINTS, "outside": "ignore"}, "outside .ignore. is not known"),
        ({"points": POINTS, "alpha": 1.5, "mechanism": "adaptive-grid"}, "alpha"),
        ({"points": POINTS, "mechanism": "octree"}, "mechanism .octree. is not known"),
        ({"points": POINTS, "resolution": 100_000}, "GiB"),
        ({"points": POINTS, "resolution": (4, 4, 4)}, "one per column"),
        ({"points": POINTS, "epsilon": 0}, "greater than 0"),
        ({"points": POINTS, "columns": ["a", "a"]}, "different column names"),
        ({"points": "nowhere.parquet", "columns": ["a", "b"]}, "nowhere"),
        ({"points": [["a", "b"]]}, "rows of numbers"),
        ({"counts": np.array([[1, -1]])}, "at least 0"),
        ({"counts": np.array([[1.5, 2]])}, "whole numbers"),
        ({"counts": np.arange(5)}, "2 sides for 1 columns"),
        ({"points": POINTS, "counts": np.ones((2, 2), dtype=int)}, "one of the two"),
        ({}, "one of the two"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(options, says):
    with pytest.raises((InputError, RequestError, OSError), match=says):
        tt.spatial(**({"box": BOX, "epsilon": 1} | options))


@pytest.mark.parametrize(
    "box",
    [[(0, 11), (0, 1)], [(3, 3), (0, 1)], [(4, 2), (0, 1)], [(0, 1)], [(0, np.nan), (0, 1)], "all"],
)
def test_bad_queries_are_refused(box):
    made = small_map("uniform-grid")
    with pytest.raises(RequestError):
        made.range(box)


def test_a_picture_is_a_png_that_shows_where_points_are(tmp_path):
    made = small_map()
    file = made.picture(tmp_path / "map.png", size=320)
    octets = file.read_bytes()
    assert octets.startswith(b"\x89PNG")
    with pytest.raises(RequestError, match="png"):
        made.picture(tmp_path / "map.jpg")

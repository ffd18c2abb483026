"""Maps of ready counts and stated edges: what was a kind of its own, in any number of columns."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError
from tallytree.ledger.accounts import create_account, read_history
from tallytree.ledger.chain import summarise
from tallytree.options.maps import MapOptions
from tallytree.privacy.budget import Budget
from tallytree.releases.questions import Question

COUNTS = np.random.default_rng(3).poisson(40, (12, 18))
WORKERS = pa.table({"age": [30, 50], "shift": ["day", "night"]})
AGES, SHIFTS = [0, 18, 40, 65, 120], ["day", "evening", "night"]


@pytest.mark.parametrize("method", ["hierarchical", "quadtree", "kd-hybrid"])
def test_errors_and_intervals_are_as_stated(method):
    boxes = [[(0, 12), (0, 18)], [(0, 6), (0, 9)], [(0, 12), (9, 18)]]
    truth = np.array([COUNTS[a:b, c:d].sum() for (a, b), (c, d) in boxes])
    squared, held, given, runs = np.zeros(3), np.zeros(3), np.zeros(3), 300
    for seed in range(runs):
        options = MapOptions(
            epsilon=1, mechanism=method, nonnegative="no", integers=False, insecure_seed=seed
        )
        answers = tt.spatial(None, options, counts=COUNTS).ranges(boxes)
        squared += (answers.estimate - truth) ** 2 * np.isfinite(answers.low)
        held += (answers.low <= truth) & (truth <= answers.high)
        given += np.isfinite(answers.low)
    assert given[0] == runs
    often = given > 100
    np.testing.assert_allclose((squared / given)[often], answers.std_error[often] ** 2, rtol=0.45)
    assert np.all(np.abs(held / given - 0.95)[often] < 0.05)


def test_intervals_are_normal_where_boxes_are_cut_or_follow_from_noisy_counts():
    flat = tt.spatial(
        counts=COUNTS,
        epsilon=1,
        mechanism="flat",
        nonnegative="no",
        integers=False,
        insecure_seed=1,
    )
    methods = ("adaptive-grid", "adaptive-tree", "uniform-grid")
    others = [
        tt.spatial(counts=COUNTS, epsilon=1, mechanism=method, insecure_seed=1)
        for method in methods
    ]
    pruned = tt.spatial(counts=COUNTS, epsilon=1, mechanism="quadtree", prune=10, insecure_seed=1)
    for answer in (flat.range([(0, 11.5), (0, 18)]), *(made.total() for made in (*others, pruned))):
        assert 0 < answer.low <= answer.estimate <= answer.high
        assert answer.high - answer.low == pytest.approx(2 * 1.96 * answer.std_error, abs=2)
    assert flat.range([(0, 0.5), (0, 1)]).std_error > flat.range([(0, 1), (0, 1)]).std_error / 2


def test_wider_confidence_wider_intervals():
    flat = tt.spatial(counts=COUNTS, epsilon=1, mechanism="flat", insecure_seed=1)
    narrow, wide = (flat.total(confidence=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low <= narrow.high < wide.high
    with pytest.raises(RequestError, match="between 0 and 1"):
        flat.total(confidence=95)


def test_one_column_agrees_with_the_range_histogram():
    counts = np.random.default_rng(4).poisson(50, 60)
    line = tt.histogram(counts, epsilon=1, mechanism="flat", insecure_seed=2).range(5, 40)
    grid = tt.spatial(counts=counts, epsilon=1, mechanism="flat", insecure_seed=2).range([(5, 40)])
    assert grid.std_error == pytest.approx(line.std_error)
    assert grid.high - grid.low == pytest.approx(line.high - line.low, abs=1)


@pytest.mark.parametrize("columns", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["flat", "hierarchical", "adaptive-tree", "kd-tree"])
def test_any_number_of_columns(method, columns, tmp_path):
    counts = np.random.default_rng(columns).poisson(20, (5,) * columns)
    made = tt.spatial(counts=counts, epsilon=2, mechanism=method, insecure_seed=1)
    assert made.verify(), made.verify()
    assert made.total().estimate == pytest.approx(counts.sum(), abs=6 * made.total().std_error + 2)
    made.save(tmp_path / "map")
    assert tt.verify(tmp_path / "map")
    assert tt.load(tmp_path / "map").table().equals(made.table())


@pytest.mark.parametrize("noisy", [True, False])
def test_stated_edges_are_saved_and_answered(tmp_path, noisy):
    counts = np.random.default_rng(5).poisson(30, (4, 3))
    made = tt.spatial(
        counts=counts, edges=[AGES, SHIFTS], columns=["age", "shift"], epsilon=1, insecure_seed=1
    )
    made.save(tmp_path / "shifts", noisy=noisy)
    loaded = tt.load(tmp_path / "shifts")
    assert tt.verify(tmp_path / "shifts")
    assert loaded.axes == made.axes
    workers = [(18, 65), ("evening", "night")]
    assert loaded.range(workers) == made.range(workers)
    assert made.range(workers).estimate == made.surface.density[1:3, 1:].sum()
    assert made.range([(18, 29), ("day", "day")]).estimate == pytest.approx(
        made.surface.density[1, 0] / 2
    )
    answers = made.ask(Question(ranges=["18:65,evening:night"])).facts["answers"]
    assert answers[0]["estimate"] == made.range(workers).estimate
    lows = made.table().filter(pc.field("leaf"))["low_age"].to_pylist()
    assert sorted(set(lows)) == AGES[:-1]


def test_points_between_edges_are_counted_alike_from_arrays_tables_and_counts():
    rng = np.random.default_rng(6)
    points = np.stack(
        [rng.choice([0, 17, 18, 39.5, 64, 65, 120], 200), rng.uniform(0, 24, 200)], axis=1
    )
    edges = [AGES, [0, 6, 7, 24]]
    counts = np.histogram2d(*points.T, bins=edges)[0].astype(np.int64)
    table = pa.table({"age": points[:, 0], "hour": points[:, 1]})
    options = {
        "edges": edges,
        "columns": ["age", "hour"],
        "epsilon": 1,
        "mechanism": "flat",
        "insecure_seed": 1,
    }
    of_counts = tt.spatial(counts=counts, **options).table()
    assert tt.spatial(points, **options).table().equals(of_counts)
    assert tt.spatial(table, **options).table().equals(of_counts)
    beyond = pa.table({"age": [-1.0, 200.0], "hour": [1.0, 6.0]})
    for given in (beyond, np.array([[-1.0, 1.0], [200.0, 6.0]])):
        with pytest.raises(InputError, match="outside"):
            tt.spatial(given, **options, outside="error")
    clipped = [
        tt.spatial(given, **options, outside="clip").table()
        for given in (beyond, beyond.to_pandas().to_numpy())
    ]
    assert clipped[0].equals(clipped[1])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: tt.spatial(counts=COUNTS, epsilon=0), RequestError, "greater than 0"),
        (lambda: tt.spatial(counts=COUNTS / 2, epsilon=1), InputError, "whole numbers"),
        (
            lambda: tt.spatial(counts=COUNTS, epsilon=1, mechanism="hierarchical", branching=1),
            RequestError,
            "at least 2",
        ),
        (lambda: tt.spatial(counts=COUNTS, epsilon=1, branching=2), RequestError, "goes with"),
        (
            lambda: tt.spatial(counts=COUNTS, epsilon=1, edges=[[0, 1], [0, 1]]),
            RequestError,
            "as many cells",
        ),
        (
            lambda: tt.spatial(counts=COUNTS, epsilon=1, edges=[[0, 1]]),
            RequestError,
            "one list per column",
        ),
        (
            lambda: tt.spatial(counts=COUNTS, epsilon=1, edges=[[1, 0], [0, 1]]),
            RequestError,
            "strictly increasing",
        ),
        (
            lambda: tt.spatial([[1, 2]], epsilon=1, edges=[AGES, AGES], resolution=3),
            RequestError,
            "leave box",
        ),
        (
            lambda: tt.spatial(WORKERS, epsilon=1, columns=["age", "shift"], edges=[AGES, SHIFTS]),
            RequestError,
            "categories",
        ),
        (lambda: tt.spatial(counts=COUNTS, epsilon=1, contributions=0), RequestError, "at least 1"),
        (
            lambda: tt.spatial(counts=COUNTS, epsilon=1, mechanism="noisy-first"),
            RequestError,
            "along one column, and 2",
        ),
    ],
)
def test_bad_requests_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("box", [[(0, 13), (0, 1)], [(3, 3), (0, 1)], [(0, 1)], [("a", 1), (0, 1)]])
def test_bad_boxes_are_refused(box):
    made = tt.spatial(counts=COUNTS, epsilon=1, insecure_seed=1)
    with pytest.raises(RequestError, match="A box"):
        made.range(box)


def test_a_method_that_does_not_fit_is_refused_before_anything_is_paid(tmp_path):
    ledger = str(tmp_path / "ledger.db")
    create_account(ledger, "trips", Budget("pure", Fraction(1)))
    with pytest.raises(RequestError, match="along one column"):
        tt.spatial(
            counts=COUNTS, epsilon=1, mechanism="structure-first", ledger=ledger, dataset="trips"
        )
    assert summarise(read_history(ledger, "trips")).spent == 0

import numpy as np
import pytest

from tallytree import evaluate, plan, release
from tallytree.errors import RequestError
from tallytree.group_sizes.accuracy import compare, data_like, predict, smallest_epsilon, trade_off
from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
from tallytree.group_sizes.targets import CountTarget, Target, parse_target
from tallytree.model.classes import OPEN, classes_from
from tallytree.model.confidential import in_classes
from tallytree.papers.housing import housing_counts

TRUTH = housing_counts(60_000)


def test_prediction_from_an_earlier_release_comes_close() -> None:
    earlier = release(TRUTH, epsilon=2, insecure_seed=100)
    predicted = predict(data_like(earlier), epsilon=1, runs=4, view="hybrid")
    realised = [
        evaluate(release(TRUTH, epsilon=1, insecure_seed=seed, view="hybrid"), TRUTH).levels
        for seed in range(4)
    ]
    for level in (1, 2):
        mean = sum(run[level].emd for run in realised) / len(realised)
        assert predicted.levels[level].emd == pytest.approx(mean, rel=0.15)


def test_prediction_from_group_totals_and_a_shape_comes_close() -> None:
    assumed = assumed_counts(TRUTH.hierarchy, TRUTH.n_groups, named_shape("households"))
    predicted = predict(assumed, epsilon=1, runs=3, view="hybrid")
    realised = evaluate(release(TRUTH, epsilon=1, insecure_seed=5, view="hybrid"), TRUTH).levels
    assert predicted.levels[2].emd == pytest.approx(realised[2].emd, rel=0.15)


def test_smallest_epsilon_meets_its_target() -> None:
    target = Target("county", "emd", 15.0)
    options = {"mechanism": "bottom-up", "view": "hybrid"}
    epsilon, prediction = smallest_epsilon(TRUTH, target, runs=2, **options)
    assert prediction.levels[2].emd <= 15.0
    slightly_less = predict(TRUTH, epsilon=epsilon * 9 / 10, runs=2, **options)
    assert slightly_less.levels[2].emd > 15.0 * 0.97


def test_counts_near_the_truth_in_most_regions() -> None:
    target = parse_target("county: count of size 2 within 20 % in 80 % of regions")
    assert target == CountTarget("county", 2, 2, 0.2, 0.8)
    options = {"mechanism": "bottom-up", "view": "hybrid"}
    epsilon, prediction = smallest_epsilon(TRUTH, target, runs=1, **options)
    assert prediction.share is not None
    assert prediction.share >= 0.8
    made = release(TRUTH, epsilon=epsilon, insecure_seed=0, **options)
    slow = []
    for region in TRUTH.hierarchy.paths[TRUTH.hierarchy.level_slice(2)]:
        true = TRUTH.leaf_counts.region(len(slow))
        n_true = int(true.count[true.size == 2].sum())
        slow.append(
            abs(made.region(region).of_size(2) - n_true) <= 0.2 * n_true if n_true else None
        )
    counted = [near for near in slow if near is not None]
    assert target.share(made, TRUTH) == pytest.approx(sum(counted) / len(counted))
    assert predict(TRUTH, epsilon=epsilon / 4, target=target, runs=1, **options).share < 0.8


@pytest.mark.parametrize(
    ("sizes", "low", "high"),
    [("5", 5, 5), ("5-6", 5, 6), ("5 to 6", 5, 6), ("7+", 7, OPEN), ("7 or more", 7, OPEN)],
)
def test_sizes_of_targets_are_written_as_people_write_them(sizes: str, low: int, high: int) -> None:
    for word in ("size", "sizes"):
        found = parse_target(f"state: count of {word} {sizes} within 2.5 % in 90% of the regions")
        assert found == CountTarget("state", low, high, 0.025, 0.9)


def test_targets_in_classes_go_by_whole_classes() -> None:
    classes = classes_from("1,2,3-4,5+")
    assumed = in_classes(TRUTH, classes)
    made = release(assumed, epsilon=10, insecure_seed=1)
    assert (
        0
        <= parse_target("county: count of size 3-4 within 5 % in 90 % of regions").share(
            made, assumed
        )
        <= 1
    )
    with pytest.raises(RequestError, match="do not end at"):
        parse_target("county: count of size 3 within 5 % in 90 % of regions").share(made, assumed)


def test_the_spread_holds_half_and_nine_in_ten_of_the_regions() -> None:
    found, level = predict(TRUTH, epsilon=1, runs=2, view="hybrid"), TRUTH.hierarchy.level_slice(2)
    runs = [
        evaluate(release(TRUTH, epsilon=1, insecure_seed=seed, view="hybrid"), TRUTH)
        for seed in range(2)
    ]
    emd = np.concatenate([run.emd[level] for run in runs])
    spread = found.spread[2]
    assert spread.name == "county"
    for end, part in ((spread.half, 0.5), (spread.most, 0.9), (spread.largest, 1.0)):
        assert (emd <= end).mean() >= part
        assert (emd < end).mean() <= part
    assert found.to_json()["spread"][2]["most"] == spread.most


def test_compare_names_its_variants() -> None:
    both = compare(TRUTH, {"a": {"view": "hybrid"}, "b": {"view": "sizes"}}, epsilon=1, runs=1)
    assert [prediction.name for prediction in both] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "county",
        "county: beauty<=3",
        "county: emd<=much",
        "county: emd<=-1",
        ": emd<=3",
        "county: count of size 5 within 0 % in 90 % of regions",
        "county: count of size 5 within 5 % in 190 % of regions",
        "county: count of size five within 5 % in 90 % of regions",
    ],
)
def test_targets_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(RequestError, match="target"):
        parse_target(text)


def test_unknown_level_of_a_target() -> None:
    with pytest.raises(RequestError, match="Levels: US, state, county"):
        smallest_epsilon(TRUTH, Target("block", "emd", 1.0))


def test_plan_takes_an_earlier_release_and_either_question() -> None:
    earlier = release(TRUTH, epsilon=2, insecure_seed=100)
    predicted = plan(earlier, epsilon=1, runs=1)
    assert predicted.levels[2].emd > 0
    assert predicted.to_json()["cost"].keys() == {"cpu_seconds", "memory_bytes", "disk_bytes"}
    found = plan(earlier, target="county: emd<=30", runs=1, mechanism="bottom-up")
    assert found.levels[2].emd <= 30
    with pytest.raises(RequestError, match="either epsilon"):
        plan(earlier, runs=1)


def test_trade_off_falls_with_epsilon_and_draws_itself() -> None:
    found = trade_off(TRUTH, {"a": {"view": "hybrid"}}, around="0.5", runs=1)
    errors = [prediction.levels[2].emd for prediction in found.predictions]
    assert len(errors) == 7
    assert errors[0] > errors[3] > errors[6]
    assert repr(found) == "TradeOff(a; epsilon from 0.0625 to 4)"
    assert found._repr_html_().count("<polyline") == 3
    with pytest.raises(RequestError, match="emd, l1, count_error"):
        found.svg("beauty")

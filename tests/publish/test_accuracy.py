import pytest

from tallytree import evaluate, plan, release
from tallytree.errors import RequestError
from tallytree.planning.group_sizes.shapes import assumed_counts, named_shape
from tallytree.publish.accuracy import Target, compare, data_like, parse_target, predict, smallest_epsilon, trade_off
from tallytree.reproduce.housing import housing_counts

TRUTH = housing_counts(60_000)


def test_prediction_from_an_earlier_release_comes_close() -> None:
    earlier = release(TRUTH, epsilon=2, insecure_seed=100)
    predicted = predict(data_like(earlier), epsilon=1, runs=4, view="hybrid")
    realised = [
        evaluate(release(TRUTH, epsilon=1, insecure_seed=seed, view="hybrid"), TRUTH).levels for seed in range(4)
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


def test_compare_names_its_variants() -> None:
    both = compare(TRUTH, {"a": {"view": "hybrid"}, "b": {"view": "sizes"}}, epsilon=1, runs=1)
    assert [prediction.name for prediction in both] == ["a", "b"]


@pytest.mark.parametrize("text", ["county", "county: beauty<=3", "county: emd<=much", "county: emd<=-1", ": emd<=3"])
def test_targets_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(RequestError, match="target"):
        parse_target(text)


def test_unknown_level_of_a_target() -> None:
    with pytest.raises(RequestError, match="Levels: US, state, county"):
        smallest_epsilon(TRUTH, Target("block", "emd", 1.0))


def test_plan_takes_an_earlier_release_and_either_question() -> None:
    earlier = release(TRUTH, epsilon=2, insecure_seed=100)
    assert plan(earlier, epsilon=1, runs=1).levels[2].emd > 0
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

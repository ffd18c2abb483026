import json

import numpy as np
import pytest

from tallytree.errors import InputError, RequestError, StorageError, VerificationError
from tallytree.kinds.verbs import load, verify
from tallytree.ranges.publish import histogram
from tallytree.ranges.report import histogram_payload
from tests.forging import forge

COUNTS = np.random.default_rng(7).poisson(200, 60)
MATRIX = np.concatenate([np.eye(60), np.ones((1, 60)) / 3])
STRATEGIES = ["flat", "hierarchical", "wavelet", "optimised", MATRIX]
NAMES = ["flat", "hierarchical", "wavelet", "optimised", "matrix"]


def unbiased(strategy, seed, **options):
    return histogram(
        COUNTS,
        epsilon=1,
        mechanism=strategy,
        nonnegative="no",
        integers=False,
        insecure_seed=seed,
        **options,
    )


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
def test_ranges_are_sums_of_bins_with_whole_intervals(strategy):
    released = histogram(COUNTS, epsilon=1, mechanism=strategy, insecure_seed=1)
    answers = released.ranges([(0, 60), (10, 11), (5, 47)])
    np.testing.assert_array_equal(
        answers.estimate, [released.counts[a:b].sum() for a, b in [(0, 60), (10, 11), (5, 47)]]
    )
    for answer, (a, b) in zip(answers, [(0, 60), (10, 11), (5, 47)]):
        assert answer == released.range(a, b)
        assert answer.low <= answer.estimate <= answer.high
        assert answer.std_error > 0
    assert released.total() == released.range(0, 60)
    assert released.prefix_sums()[9] == released.range(0, 10)
    assert released.bin_answers()[7] == released.range(7, 8)
    assert answers.table().num_rows == 3
    assert not released.private
    assert released.verify()


@pytest.mark.proof
@pytest.mark.parametrize("definition", ["pure", "zcdp"])
@pytest.mark.parametrize(
    "strategy", STRATEGIES[:3], ids=NAMES[:3]
)  # the others: see test_range_accuracy
def test_intervals_hold_the_truth_and_errors_are_as_predicted(strategy, definition):
    loss = {"epsilon": 1} if definition == "pure" else {"rho": 0.05}
    ranges = [(0, 60), (10, 11), (5, 47), (20, 24)]
    truth = np.array([COUNTS[a:b].sum() for a, b in ranges])
    held, squared = np.zeros(len(ranges)), np.zeros(len(ranges))
    runs = 1000
    for seed in range(runs):
        released = histogram(
            COUNTS, **loss, definition=definition, mechanism=strategy, insecure_seed=seed
        )
        answers = released.ranges(ranges)
        held += (answers.low <= truth) & (truth <= answers.high)
        squared += (answers.estimate - truth) ** 2
    # One bin of the flat strategy has whole-number errors: at epsilon 1, 92.7 % or 97.3 % of them
    # can be held, nothing between.
    assert np.all(held / runs > 0.93)
    assert np.all(held / runs < 0.985)
    np.testing.assert_allclose(squared / runs, answers.std_error**2, rtol=0.25)


def test_quantiles_of_numbers_and_categories():
    released = histogram(
        counts=[0, 1000, 0, 1000], edges=[0, 10, 20, 30, 40], epsilon=2, insecure_seed=1
    )
    median = released.quantile(0.5)
    assert 10 <= median.low <= median.value <= median.high <= 40
    first = released.quantile(0.25)
    assert first.value == pytest.approx(15, abs=0.5)
    assert first.low == 10
    assert first.high == 20
    assert released.quantile(0).value == pytest.approx(0, abs=10)
    assert released.quantiles([0.25, 1])[1].high == 40
    named = histogram(
        counts=[5, 1000, 5], categories=["a", "b", "c"], epsilon=2, insecure_seed=1
    ).quantile(0.5)
    assert (named.value, named.low, named.high, named.std_error) == ("b", "b", "b", None)
    with pytest.raises(RequestError, match="share between 0 and 1"):
        released.quantile(1.5)
    empty = histogram([0] * 4, epsilon=50, insecure_seed=1)
    with pytest.raises(RequestError, match="empty after noise"):
        empty.quantile(0.5)
    facts = [name for name, _ in histogram_payload(empty)["facts"]]
    assert "bins" in facts
    assert "median" not in facts


def test_quantile_intervals_hold_the_true_quantile():
    counts = np.random.default_rng(3).poisson(20, 100)
    sums = np.cumsum(counts)
    truth = int(np.searchsorted(sums, sums[-1] * 0.3))  # the bin in which the quantile lies
    held = 0
    for seed in range(200):
        found = histogram(
            counts, epsilon=0.2, mechanism="hierarchical", branching=10, insecure_seed=seed
        ).quantile(0.3)
        held += found.low <= truth and truth + 1 <= found.high
    assert held >= 0.93 * 200


@pytest.mark.parametrize("strategy", STRATEGIES, ids=NAMES)
@pytest.mark.parametrize("noisy", [True, False])
def test_saved_histograms_load_verify_and_answer_alike(tmp_path, strategy, noisy):
    released = histogram(
        counts=COUNTS, edges=np.arange(61) / 2, epsilon=1, mechanism=strategy, insecure_seed=2
    )
    released.save(tmp_path / "out", noisy=noisy)
    loaded = load(tmp_path / "out")
    assert verify(tmp_path / "out")
    assert loaded.bins == released.bins
    np.testing.assert_array_equal(loaded.counts, released.counts)
    assert loaded.range(2.5, 20) == released.range(2.5, 20)
    assert loaded.quantile(0.5) == released.quantile(0.5)
    assert (loaded.noisy is not None) == noisy
    assert loaded.manifest == released.manifest
    assert loaded.table().column_names == [
        "bin",
        "low",
        "high",
        "count",
        "estimate",
        "standard_error",
    ]
    with pytest.raises(StorageError, match="already exists"):
        released.save(tmp_path / "out")


def test_verification_notices_changes(tmp_path):
    released = histogram(COUNTS, epsilon=1, mechanism="hierarchical", insecure_seed=2)
    folder = released.save(tmp_path / "out")
    file = folder / "counts.parquet"
    file.write_bytes(file.read_bytes() + b"x")
    assert not verify(folder)
    # A release whose counts do not follow from its measurements, with checksums that fit.
    forged = type(released)(
        released.bins,
        released.counts + 3,
        released.estimates,
        released.plan,
        released.manifest,
        released.noisy,
    )
    folder = forged.save(tmp_path / "forged")
    with pytest.raises(VerificationError, match="counts follow from the noisy answers"):
        verify(folder).raise_if_failed()


def test_the_manifest_states_strategy_and_privacy():
    released = histogram(
        COUNTS,
        epsilon="0.3",
        mechanism="hierarchical",
        branching=8,
        contributions=2,
        entity="person",
    )
    privacy = released.manifest["privacy"]
    assert privacy["private"] is True
    assert privacy["epsilon"] == "3/10"
    assert privacy["unit"]["words"] == "all rows of one person, at most 2"
    assert [level["scale"] for level in privacy["levels"]] == ["40/3", "40/3"]
    assert sum(eval(level["epsilon"]) for level in privacy["levels"]) == pytest.approx(0.3)
    assert released.manifest["mechanism"]["widths"] == [8, 1]
    assert json.dumps(released.manifest)
    assert "NOT PRIVATE" not in repr(released)


@pytest.mark.parametrize(
    "budget", ["equal", "geometric", "optimal-blocks", "optimal", ["1/4", "3/4"]], ids=str
)
def test_budgets_across_levels_add_up(budget):
    released = histogram(
        COUNTS, epsilon=1, mechanism="hierarchical", branching=8, budget=budget, insecure_seed=1
    )
    assert sum(released.plan.strategy.shares) == 1
    assert released.verify()


def test_zero_shares_leave_levels_out(tmp_path):
    strategy = histogram(
        COUNTS, epsilon=1, mechanism="hierarchical", branching=4, insecure_seed=1
    ).plan.strategy
    released = histogram(
        COUNTS,
        epsilon=1,
        mechanism="hierarchical",
        branching=4,
        budget=["0", "1/2", "1/2"],
        insecure_seed=1,
    )
    assert len(released.noisy.levels[0]) == 0
    assert strategy.tree == released.plan.strategy.tree
    released.save(tmp_path / "out")
    assert verify(tmp_path / "out")
    assert load(tmp_path / "out").range(3, 9) == released.range(3, 9)


def test_fewest_blocks_use_the_noisy_blocks():
    released = histogram(COUNTS, epsilon=1, mechanism="hierarchical", branching=8, insecure_seed=1)
    block = released.fewest_blocks(8, 16)
    assert block.estimate == released.noisy.levels[0][1]
    assert block.std_error > released.range(8, 16).std_error
    with pytest.raises(RequestError, match="raw measurements"):
        histogram(COUNTS, epsilon=1, mechanism="wavelet", insecure_seed=1).fewest_blocks(8, 16)


def test_values_are_binned_by_public_bins():
    values = [3, 4, 5, 22, 30]
    by_edges = histogram(values, edges=[0, 10, 20, 30], epsilon=1000, mechanism="flat")
    by_width = histogram(values, width=10, bounds=(0, 30), epsilon=1000, mechanism="flat")
    by_number = histogram(values, bins=3, bounds=(0, 30), epsilon=1000, mechanism="flat")
    by_list = histogram(values, bins=[0, 10, 20, 30], epsilon=1000, mechanism="flat")
    for released in (by_edges, by_width, by_number, by_list):
        np.testing.assert_array_equal(released.counts, [3, 0, 2])
    named = histogram(["x", "y", "x"], categories=["x", "y"], epsilon=1000, mechanism="flat")
    assert named.range("x", "x").estimate == 2
    assert named.table()["category"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize(
    "workload", ["ranges", "prefixes", "identity", [(0, 5), (13, 36)]], ids=str
)
def test_auto_has_the_least_expected_error_for_the_workload(workload):
    errors = {}
    ranges = {
        "ranges": [(a, b) for a in range(36) for b in range(a + 1, 37)],
        "prefixes": [(0, b) for b in range(1, 37)],
        "identity": [(a, a + 1) for a in range(36)],
    }.get(str(workload), workload)
    for strategy in ["auto", "flat", "hierarchical", "wavelet"]:
        released = histogram(
            COUNTS[:36], epsilon=1, mechanism=strategy, workload=workload, insecure_seed=1
        )
        errors[strategy] = np.mean(released.ranges(ranges).std_error ** 2)
    assert errors["auto"] <= min(errors.values()) * (1 + 1e-9)
    auto = histogram(COUNTS[:36], epsilon=1, workload=workload, insecure_seed=1)
    assert "least expected error" in auto.manifest["mechanism"]["reason"]


@pytest.mark.parametrize(
    "strategy", ["eigen-select", pytest.param("low-rank", marks=pytest.mark.proof)]
)
def test_the_papers_matrix_mechanisms_run(strategy):
    released = histogram(COUNTS[:16], epsilon=1, mechanism=strategy, insecure_seed=1)
    assert released.range(0, 16).std_error > 0
    with pytest.raises(RequestError, match="at most 2,048 bins"):
        histogram(np.zeros(3000, dtype=int), epsilon=1, mechanism=strategy)


def test_contributions_count_when_a_strategy_is_chosen():
    many = histogram(COUNTS, epsilon=20, contributions=20, insecure_seed=1)
    one = histogram(COUNTS, epsilon=1, insecure_seed=1)
    assert many.plan.strategy.name == one.plan.strategy.name
    assert many.range(0, 30).std_error == pytest.approx(one.range(0, 30).std_error, rel=0.01)


BAD_REQUESTS = {
    "unknown workload": (
        lambda: histogram(COUNTS, epsilon=1, workload="all"),
        "workload is one of",
    ),
    "workload out of domain": (
        lambda: histogram(COUNTS, epsilon=1, workload=[(0, 99)]),
        "outside the bins",
    ),
    "empty workload": (lambda: histogram(COUNTS, epsilon=1, workload=[]), "at least one range"),
    "column without a table": (
        lambda: histogram(counts=[1], column="a", epsilon=1),
        "needs a table",
    ),
    "table without a column": (
        lambda: histogram([1], edges=[0, 2], table="t", epsilon=1),
        "go with column",
    ),
    "no budget": (lambda: histogram(COUNTS), "epsilon is missing"),
    "both budgets": (lambda: histogram(COUNTS, epsilon=1, rho=1), "takes epsilon"),
    "zero budget": (lambda: histogram(COUNTS, epsilon=0), "greater than 0"),
    "negative budget": (lambda: histogram(COUNTS, epsilon=-1), "greater than 0"),
    "NaN budget": (lambda: histogram(COUNTS, epsilon=float("nan")), "positive number"),
    "wrong definition": (
        lambda: histogram(COUNTS, epsilon=1, definition="approximate"),
        "one of: pure, zcdp",
    ),
    "branching of 1": (
        lambda: histogram(COUNTS, epsilon=1, mechanism="hierarchical", branching=1),
        "at least 2",
    ),
    "branching of 2.5": (
        lambda: histogram(COUNTS, epsilon=1, mechanism="hierarchical", branching=2.5),
        "at least 2",
    ),
    "branching elsewhere": (
        lambda: histogram(COUNTS, epsilon=1, mechanism="flat", branching=2),
        "goes with",
    ),
    "unknown strategy": (
        lambda: histogram(COUNTS, epsilon=1, mechanism="tree"),
        "mechanism .* is not known. Choose one of",
    ),
    "unknown budget": (
        lambda: histogram(COUNTS, epsilon=1, mechanism="hierarchical", budget="most"),
        "budget .* is not known. Choose one of",
    ),
    "wrong shares": (
        lambda: histogram(COUNTS, epsilon=1, mechanism="hierarchical", budget=[1, 2]),
        "add up to 1",
    ),
    "narrow matrix": (lambda: histogram(COUNTS, epsilon=1, mechanism=np.eye(3)), "as many columns"),
    "matrix of low rank": (
        lambda: histogram([1, 2], epsilon=1, mechanism=[[1, 1], [2, 2]]),
        "rank below",
    ),
    "two kinds of bins": (
        lambda: histogram([1], bins=3, width=1, bounds=(0, 3), epsilon=1),
        "in one way",
    ),
    "no bounds": (lambda: histogram([1], bins=3, epsilon=1), "need bounds"),
    "bounds alone": (lambda: histogram([1], bounds=(0, 3), epsilon=1), "need bounds"),
    "values and counts": (lambda: histogram([1], counts=[1], epsilon=1), "either values or counts"),
    "neither": (lambda: histogram(epsilon=1), "either values or counts"),
    "too few counts": (
        lambda: histogram(counts=[1, 2], edges=[0, 1], epsilon=1),
        "one count per bin",
    ),
    "two dimensions": (lambda: histogram([[1, 2], [3, 4]], epsilon=1), "one dimension"),
    "no contributions": (lambda: histogram(COUNTS, epsilon=1, contributions=0), "at least 1"),
    "unknown policy": (
        lambda: histogram([1], edges=[0, 2], epsilon=1, outside="wrap"),
        "outside .* is not known. Choose one of",
    ),
    "wrong level": (
        lambda: histogram(COUNTS, epsilon=1, insecure_seed=1, mechanism="flat").range(
            0, 5, confidence=95
        ),
        "between 0",
    ),
}


@pytest.mark.parametrize("case", BAD_REQUESTS)
def test_bad_requests_are_refused(case):
    make, message = BAD_REQUESTS[case]
    with pytest.raises(RequestError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: histogram([], epsilon=1), "at least one bin"),
        (lambda: histogram([1.5, 2.0], epsilon=1), "whole numbers"),
        (lambda: histogram([1, 99], edges=[0, 2], epsilon=1, outside="error"), "outside the bins"),
        (lambda: histogram([float("nan")], edges=[0, 2], epsilon=1, outside="clip"), "missing"),
    ],
)
def test_bad_data_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_loading_refuses_other_folders(tmp_path):
    with pytest.raises(StorageError, match="not a release folder"):
        load(tmp_path)
    released = histogram([1, 2], epsilon=1, mechanism="flat", insecure_seed=1)
    folder = released.save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    forge(folder, manifest | {"kind": "group-sizes"})
    with pytest.raises(VerificationError, match="'levels' is missing"):
        load(folder)
    del manifest["mechanism"]["shares"]
    forge(folder, manifest)
    assert not verify(folder)

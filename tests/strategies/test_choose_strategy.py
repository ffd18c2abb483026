import math
from pathlib import Path

import pytest

from tallytree.privacy.noise_variances import NoiseKind, level_variances
from tallytree.strategies.choose_strategy import choose_strategy
from tallytree.strategies.matrix_mechanism import expected_error
from tallytree.strategies.workload_errors import tree_error
from tallytree.strategies.workloads import (
    AllRanges,
    Workload,
    given_ranges,
    identity,
    marginals,
    prefixes,
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("strategies")


WORKLOADS = [
    AllRanges(1), AllRanges(2), AllRanges(16), AllRanges(60), prefixes(60), identity(60), given_ranges(60, [(0, 60)]),
    marginals((3, 4), 1), AllRanges(5000), prefixes(5000),
]  # fmt: skip


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.key)
@pytest.mark.parametrize(
    ("budget", "noise"), [(1.0, "discrete-laplace"), (12.0, "discrete-laplace"), (0.5, "gaussian")]
)
def test_the_choice_is_the_least_of_all_considered(
    workload: Workload, budget: float, noise: NoiseKind, cache: Path
) -> None:
    choice = choose_strategy(workload, budget=budget, noise=noise, cache=cache)
    assert choice.error == min(error for _, error in choice.considered)
    assert choice.considered[0] == (choice.name, choice.error)
    assert choice.reason.startswith(choice.name)
    assert choice.reason.endswith(".")
    if choice.tree is not None and choice.shares is not None:
        assert sum(choice.shares) == 1
        if workload.name != "marginals":
            variances = level_variances(choice.shares, budget=budget, noise=noise)
            assert tree_error(choice.tree, variances, workload) == pytest.approx(choice.error)
    if choice.rows is not None:
        assert expected_error(choice.rows, workload, budget=budget, noise=noise) == pytest.approx(
            choice.error, rel=1e-6
        )


def test_names_for_typical_sizes(cache: Path) -> None:
    assert choose_strategy(AllRanges(10), cache=cache).name == "flat"
    assert choose_strategy(AllRanges(100), cache=cache).name == "optimised"
    assert choose_strategy(AllRanges(2**20), cache=cache).name == "hierarchical"
    assert choose_strategy(identity(100), cache=cache).name == "flat"


def test_whole_number_noise_at_a_large_budget_favours_flat_counts(cache: Path) -> None:
    # At ε = 12 the noise on a bin is 0 but for 1 in 80,000; dividing the budget or refining the
    # unit would undo that.
    choice = choose_strategy(AllRanges(100), budget=12.0, cache=cache)
    assert choice.name == "flat"
    p = math.exp(-12.0)
    assert choice.error == pytest.approx(34.0 * 2 * p / (1 - p) ** 2)


def test_the_reason_compares_in_standard_errors(cache: Path) -> None:
    choice = choose_strategy(AllRanges(64), cache=cache)
    assert f"{choice.error**0.5:,.4g}" in choice.reason
    assert "2,080 queries (ranges) on 64 bins" in choice.reason
    for name, _ in choice.considered[1:]:
        assert name in choice.reason

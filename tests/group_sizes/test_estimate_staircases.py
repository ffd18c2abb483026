import numpy as np
import pytest

import tallytree as tt
from tallytree.group_sizes.estimate import staircases
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves

HIERARCHY = hierarchy_from_leaves(["county"], [(str(i),) for i in range(20)])


def drawn(sizes: np.ndarray) -> ConfidentialCounts:
    leaf = np.arange(len(sizes)) % 20
    counts = counts_from_runs(leaf, sizes, np.ones_like(sizes), 20)
    return ConfidentialCounts(PublicFacts(HIERARCHY), counts, counts.n_groups())


CLASSES = np.array([1, 5, 10, 20, 50, 100, 250, 500])
RNG = np.random.default_rng(5)
IN_CLASSES = drawn(RNG.choice(CLASSES, 40_000, p=np.array([50, 20, 12, 9, 5, 2, 1.5, 0.5]) / 100))
SMOOTH = drawn(RNG.geometric(0.05, 40_000))


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Regions of the levels that are fitted as level stretches."""
    seen: list[int] = []
    fit = staircases.fit_steps

    def watch(n_groups: np.ndarray, *others: object) -> object:
        seen.append(len(n_groups))
        return fit(n_groups, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(staircases, "fit_steps", watch)
    return seen


@pytest.mark.parametrize("seed", range(3))
def test_classes_of_sizes_are_found_and_handed_down(stepped: list[int], seed: int) -> None:
    made = tt.release(
        IN_CLASSES, epsilon=1, mechanism="adaptive", budget=["0.3", "0.7"], insecure_seed=seed
    )
    assert set(stepped) == {1}  # the root; the counties below follow its shape
    root, leaves = tt.evaluate(made, IN_CLASSES).levels
    # Noise of scale 3.4 on each of 500 sizes would cost 1,700 at the root, and 1.5 on each 750 in
    # every county.
    assert root.emd < 300
    assert leaves.emd < 100
    sizes, counts = made.counts.region(0).size, made.counts.region(0).count
    assert counts[np.isin(sizes, CLASSES)].sum() > 0.995 * 40_000


@pytest.mark.parametrize("seed", range(3))
def test_smooth_sizes_are_fitted_smoothly(stepped: list[int], seed: int) -> None:
    tt.release(SMOOTH, epsilon=1, mechanism="adaptive", budget=["0.3", "0.7"], insecure_seed=seed)
    assert stepped == []


def test_drops_are_found_under_zcdp_too(stepped: list[int]) -> None:
    made = tt.release(
        IN_CLASSES,
        rho="0.1",
        definition="zcdp",
        mechanism="adaptive",
        budget=["0.3", "0.7"],
        insecure_seed=1,
    )
    assert set(stepped) == {1}
    assert tt.evaluate(made, IN_CLASSES).levels[0].emd < 300

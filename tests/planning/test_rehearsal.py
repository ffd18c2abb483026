import numpy as np
import pytest

import tallytree as tt
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.planning.rehearsal import plain_errors

ABOVE = 0.6 ** np.arange(1, 30)
GROUPS = [np.array([40_000]), np.full(40, 1000)]


def test_without_noise_the_plain_choices_make_no_error() -> None:
    assert plain_errors(ABOVE, GROUPS, 0.01).max() <= 1e-9


def test_more_noise_means_more_error_on_every_level() -> None:
    errors = np.array([plain_errors(ABOVE, GROUPS, scale) for scale in (0.5, 2.0, 8.0)])
    assert (np.diff(errors, axis=0) > 0).all()


@pytest.mark.parametrize("epsilon", ["1", "0.2"])
def test_the_rehearsed_leaf_error_is_that_of_a_real_bottom_up_release(epsilon: str) -> None:
    rng = np.random.default_rng(0)
    region = np.repeat(np.arange(40), 1000)
    size = rng.geometric(0.4, len(region))
    table = counts_from_runs(region, size, np.ones_like(size), 40)
    truth = ConfidentialCounts(
        hierarchy_from_leaves(["leaf"], [(f"{n:02}",) for n in range(40)]), table, table.n_groups()
    )
    options = {"mechanism": "bottom-up", "view": "cumulative", "max_size": 160}
    made = [tt.release(truth, epsilon=epsilon, insecure_seed=seed, **options) for seed in range(4)]
    real = np.mean([tt.evaluate(one, truth).levels[-1].emd for one in made])
    rehearsed = plain_errors(0.6 ** np.arange(0, 30), GROUPS, 1 / float(epsilon))[-1]
    assert rehearsed == pytest.approx(real, rel=0.3)

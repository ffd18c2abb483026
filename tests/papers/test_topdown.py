"""TopDown and the relaxed count program keep what they promise, in both settings of public totals."""

import numpy as np
import pytest

from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.papers.fioretto2021.counts_tree import count_violations, relax_counts
from tallytree.papers.fioretto2021.joint_fit import make_whole
from tallytree.papers.fioretto2021.topdown import fit_top_down
from tests.reference.cost_tables import leaf_table, table_merge
from tests.reference.noisy_trees import breaks_of_tree, random_instance


@pytest.mark.parametrize("setting", ["root", "regions"])
@pytest.mark.parametrize("mechanism", ["topdown", "tree-relaxed"])
def test_promises_hold(mechanism: str, setting: str) -> None:
    rng = np.random.default_rng(71)
    for _ in range(250):
        instance = random_instance(rng, max_total=30)
        totals = instance.totals if setting == "regions" else instance.total
        if mechanism == "topdown":
            table = fit_top_down(instance.hierarchy, instance.noisy, totals)
        else:
            real = relax_counts(instance.hierarchy, instance.noisy, totals)
            table = make_whole(instance.hierarchy, np.cumsum(real, axis=1), totals)
        assert table.min() >= 0
        assert breaks_of_tree(instance.hierarchy, table) == 0
        assert table[0].sum() == instance.total
        if setting == "regions":
            np.testing.assert_array_equal(table.sum(axis=1), instance.totals)


def test_each_step_of_topdown_is_optimal_under_its_parent() -> None:
    rng = np.random.default_rng(72)
    for _ in range(200):
        instance = random_instance(rng, max_levels=3)
        hierarchy, noisy = instance.hierarchy, instance.noisy
        table = fit_top_down(hierarchy, noisy, instance.total)
        for region in range(int(hierarchy.level_starts[-2])):
            children = slice(hierarchy.child_starts[region], hierarchy.child_starts[region + 1])
            for size in range(noisy.shape[1]):
                parent = int(table[region, size])
                tables = [leaf_table(int(y), range(parent + 1)) for y in noisy[children, size]]
                cost = int(((table[children, size] - noisy[children, size]) ** 2).sum())
                assert cost == table_merge(tables, [parent])[parent]


def test_rounding_the_relaxation_alone_breaks_sums() -> None:
    """What the paper reports as constraint violations (#CV): why such a table is not released."""
    hierarchy = hierarchy_from_leaves(["leaf"], [("a",), ("b",), ("c",)])
    noisy = np.array([[1, 3], [0, 1], [0, 1], [0, 1]])
    real = relax_counts(hierarchy, noisy, 4)
    assert count_violations(hierarchy, np.rint(real).astype(np.int64)) == 1
    assert count_violations(hierarchy, make_whole(hierarchy, np.cumsum(real, axis=1), 4)) == 0

"""The steps between projections equal their formulas, whatever the chunks."""

import numpy as np

from tallytree.papers.fioretto2021.kernels.multipliers import add, blend, update_dual_in_place


def test_steps_equal_their_formulas() -> None:
    rng = np.random.default_rng(91)
    target, table, dual, before = rng.normal(size=(4, 300, 500))
    np.testing.assert_allclose(
        blend(target, table, dual, 4.0), (target + 4 * (table - dual)) / 5, rtol=1e-12
    )
    np.testing.assert_array_equal(add(target, dual), target + dual)
    updated = dual.copy()
    apart, step = update_dual_in_place(updated, target, table, before)
    np.testing.assert_allclose(updated, dual + target - table, atol=1e-12)
    np.testing.assert_allclose(apart, np.sqrt(np.mean((target - table) ** 2)))
    np.testing.assert_allclose(step, np.sqrt(np.mean((table - before) ** 2)))

"""Tables with given row and column sums: optimality by prices."""

import numpy as np

from tallytree.kernels.tables.margins import CLOSE_ENOUGH, fit_margins


def test_sums_hold_and_prices_certify_the_optimum() -> None:
    rng = np.random.default_rng(41)
    blocks = [int(rng.integers(1, 7)) for _ in range(40)]
    offsets = np.concatenate([[0], np.cumsum(blocks)])
    exact = rng.poisson(2.0, (offsets[-1], 5)).astype(float)
    exact[rng.random(exact.shape) < 0.4] = 0.0
    values = exact + rng.laplace(0, 4, exact.shape)
    rows = exact.sum(axis=1)
    columns = np.add.reduceat(exact, offsets[:-1], axis=0)
    fit = fit_margins(values, offsets, rows, columns)
    assert fit.min() >= 0
    np.testing.assert_allclose(
        np.add.reduceat(fit, offsets[:-1], axis=0), columns, atol=20 * CLOSE_ENOUGH
    )
    np.testing.assert_allclose(fit.sum(axis=1), rows, atol=20 * CLOSE_ENOUGH)
    # The exact table is feasible: the nearest point must not be farther, but for the tolerance of
    # the sums.
    assert ((fit - values) ** 2).sum() <= ((exact - values) ** 2).sum()


def test_rows_and_columns_of_zero() -> None:
    values = np.array([[3.0, -1.0, 2.0], [1.0, 5.0, 0.0]])
    fit = fit_margins(values, np.array([0, 2]), np.array([0.0, 4.0]), np.array([[1.0, 3.0, 0.0]]))
    np.testing.assert_allclose(fit, [[0, 0, 0], [1, 3, 0]], atol=CLOSE_ENOUGH)

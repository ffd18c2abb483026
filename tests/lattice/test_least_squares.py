"""Generalised least squares on a lattice against dense matrices."""

import numpy as np
import pytest

from tallytree.group_sizes.kernels.curves import Curves
from tallytree.group_sizes.reconcile.cells import shared_errors
from tallytree.lattice.least_squares import least_squares_cells
from tallytree.model.lattice import Family
from tests.model.test_lattice import LATTICE
from tests.reference.lattice import dense_least_squares

FINEST = LATTICE.finest
N_SIZES = 6


def measured(families: list[Family], seed: int, spread: float) -> dict[Family, Curves]:
    """Noisy curves with variances that differ from row to row and size to size by factors of
    e^spread and more.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 400, (LATTICE.n_rows(FINEST), N_SIZES)).astype(np.float64)
    curves = {}
    for family in families:
        variance = np.exp(rng.normal(1, spread, (LATTICE.n_rows(family), N_SIZES)))
        noise = rng.normal(0, 1, variance.shape) * np.sqrt(variance)
        curves[family] = Curves(LATTICE.sums(family, truth) + noise, variance, np.empty((0, 0)))
    return curves


@pytest.mark.parametrize(
    "families",
    [
        [FINEST],
        [Family(0, ()), FINEST],
        [Family(0, (0, 1)), Family(1, ()), Family(2, (1,)), FINEST],
        list(LATTICE.families),
    ],
)
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_cells_are_those_of_dense_least_squares(families: list[Family], spread: float) -> None:
    curves = measured(families, 3, spread)
    found = least_squares_cells(LATTICE, curves)
    expected = dense_least_squares(
        LATTICE, {f: (known.height, known.variance) for f, known in curves.items()}
    )
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-5)


def test_what_is_known_exactly_is_kept() -> None:
    curves = measured([Family(0, (0,)), FINEST], 4, 0.5)
    exact = curves[Family(0, (0,))]
    curves[Family(0, (0,))] = exact._replace(variance=np.full_like(exact.variance, 1e-6))
    found = least_squares_cells(LATTICE, curves)
    assert np.allclose(LATTICE.sums(Family(0, (0,)), found), exact.height, atol=1e-3)


@pytest.mark.parametrize(
    "families",
    [[Family(1, ()), FINEST], [Family(0, (0, 1)), Family(1, ()), Family(2, (1,)), FINEST]],
)
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_errors_that_cells_share_are_those_of_a_dense_covariance(
    families: list[Family], spread: float
) -> None:
    curves = measured(families, 5, spread)
    rng = np.random.default_rng(6)
    shared = {
        family: rng.exponential(200, known.height.shape)
        for family, known in curves.items()
        if family != FINEST
    }
    shared[families[0]][0] = 0.0
    found = least_squares_cells(LATTICE, curves, shared)
    expected = dense_least_squares(
        LATTICE, {f: (known.height, known.variance) for f, known in curves.items()}, shared
    )
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-5)


def test_shared_errors_are_found_where_cells_are_off_together_and_only_there() -> None:
    """Whole regions beside finest curves that are right, or all off upwards by 3 standard
    deviations of their own.
    """
    region = Family(2, ())
    right, wrong, bias = [], [], []
    for seed in range(30):
        curves = measured([region, FINEST], seed, 0.0)
        finest = curves[FINEST]
        off = finest._replace(height=finest.height + 3 * np.sqrt(finest.variance))
        right.append(shared_errors(LATTICE, curves)[region])
        wrong.append(shared_errors(LATTICE, curves | {FINEST: off})[region])
        bias.append(LATTICE.sums(region, 3 * np.sqrt(finest.variance)) ** 2)
    assert np.mean(right) < 0.02 * np.mean(bias)
    assert np.mean(wrong) == pytest.approx(np.mean(bias), rel=0.1)


def test_a_region_that_was_measured_is_believed_where_cells_share_an_error() -> None:
    region = Family(2, ())
    curves = measured([region, FINEST], 8, 0.0)
    off = curves[FINEST]._replace(height=curves[FINEST].height + 50)
    plain, doubted = (
        least_squares_cells(LATTICE, curves | {FINEST: off}, shared)
        for shared in (None, shared_errors(LATTICE, curves | {FINEST: off}))
    )
    apart = [
        np.abs(LATTICE.sums(region, cells) - curves[region].height).mean()
        for cells in (plain, doubted)
    ]
    assert apart[1] < 0.1 * apart[0]

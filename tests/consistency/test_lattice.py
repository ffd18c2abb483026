"""Generalised least squares on a lattice against dense matrices."""

import numpy as np
import pytest

from tallytree.consistency.lattice import least_squares_cells
from tallytree.kernels.staircase.curves import Curves
from tallytree.model.lattice import Family
from tests.model.test_lattice import LATTICE
from tests.reference.lattice import dense_least_squares

FINEST = LATTICE.finest
N_SIZES = 4


def measured(families: list[Family], seed: int, spread: float) -> dict[Family, Curves]:
    """Noisy curves with variances that differ from row to row and size to size by factors of e^spread and more."""
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
    expected = dense_least_squares(LATTICE, {f: (known.height, known.variance) for f, known in curves.items()})
    assert np.allclose(found, expected, rtol=1e-7, atol=1e-5)


def test_what_is_known_exactly_is_kept() -> None:
    curves = measured([Family(0, (0,)), FINEST], 4, 0.5)
    exact = curves[Family(0, (0,))]
    curves[Family(0, (0,))] = exact._replace(variance=np.full_like(exact.variance, 1e-6))
    found = least_squares_cells(LATTICE, curves)
    assert np.allclose(LATTICE.sums(Family(0, (0,)), found), exact.height, atol=1e-3)

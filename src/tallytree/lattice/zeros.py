"""Least squares where some cells are known to be 0.

Numbers of the basis of :mod:`tallytree.lattice.tables` are estimated independently of one another,
t with precision π. Given that the cells E are 0, the best cells are (H the basis, V = H' diag(1/π) H)

    x = H't − V E λ,   E' V E λ = E' H't.

They are no less exact than before in any direction: V − V E (E'VE)⁻¹ E' V ≤ V. The same holds where
t is better known than π says.
"""

from __future__ import annotations

import numpy as np

from tallytree.lattice.tables import Axes
from tallytree.model.arrays import BoolArray, FloatArray

# Conjugate gradients: what is left of cells that are 0, relative to what they were.
CLOSE_ENOUGH = 1e-9
MOST_ROUNDS = 200


def given_zeros(
    axes: Axes, numbers: FloatArray, precision: FloatArray, possible: BoolArray | None
) -> FloatArray:
    """Numbers of the basis, ``(n_regions, n_cells)``, given that cells which are not possible are 0.

    ``precision`` has the shape of ``numbers``. Cost: some tens of changes of basis.
    """
    if possible is None:
        return numbers
    empty = np.flatnonzero(~possible)
    variance = 1 / precision

    def spread(of_empty: FloatArray) -> FloatArray:
        """V E λ, as numbers of the basis."""
        cells = np.zeros(numbers.shape)
        cells[:, empty] = of_empty
        return variance * axes.transformed(cells)

    left = axes.restored(numbers)[:, empty]
    found = np.zeros_like(left)
    direction, size = left, (left * left).sum(axis=1, keepdims=True)
    enough = CLOSE_ENOUGH**2 * size
    for _ in range(MOST_ROUNDS):
        going = size > enough
        if not going.any():
            break
        product = axes.restored(spread(direction))[:, empty]
        along = (direction * product).sum(axis=1, keepdims=True)
        step = np.where(going, size / np.maximum(along, 1e-300), 0.0)
        found = found + step * direction
        left = left - step * product
        before, size = size, (left * left).sum(axis=1, keepdims=True)
        direction = left + np.where(going, size / np.maximum(before, 1e-300), 0.0) * direction
    return numbers - spread(found)

"""Methods that lay grids: flat, hierarchical, uniform and adaptive.

Grid lines are rounded to the lines of the fine public grid that points were counted on, and no grid
is finer than that.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tallytree.boxes.draft import Draft
from tallytree.boxes.limits import MOST_NODES, SHARE_OF_TOTAL
from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.options.maps import MethodOptions
from tallytree.strategies.grid_errors import grid_range_error

ALL = Fraction(1)
# Points per unit of ε and cell, c of the slides; c2 of the adaptive grid is half of it.
C = 10.0
C2 = 5.0
SMALLEST_FIRST_GRID = 10
ADAPTIVE_GRID_ALPHA = Fraction(1, 2)


def check_nodes(n_nodes: float, advice: str) -> None:
    """Refuse a tree that would not fit memory, before it grows: some 200 bytes per node."""
    if n_nodes > MOST_NODES:
        raise RequestError(
            f"This would make {n_nodes:,.0f} boxes, {n_nodes * 200 / 2**30:,.0f} GiB; at most "
            f"{MOST_NODES:,} fit. {advice}"
        )


def noisy_total(draft: Draft, options: MethodOptions) -> tuple[float, Fraction]:
    """The number of points, public or measured with a small share, and the share that is left."""
    if options.n_points is not None:
        return float(options.n_points), ALL
    share = SHARE_OF_TOTAL[options.mechanism]
    return max(0.0, float(draft.count(draft.root, share, "number of points")[0])), ALL - share


def flat(draft: Draft, options: MethodOptions) -> None:
    """Every cell of the fine grid, with all of the budget."""
    check_nodes(math.prod(draft.shape) * 1.4, "Choose a lower resolution.")
    cells, _ = draft.split_grid(draft.root, max(draft.shape))
    draft.count(cells, ALL, "cell")


def hierarchical(draft: Draft, options: MethodOptions) -> None:
    """Nested grids down to the cells with equal shares (qardaji2013 §5); the branching factor from
    public facts.
    """
    check_nodes(math.prod(draft.shape) * 1.6, "Choose a lower resolution.")
    branching = (
        options.branching if options.branching is not None else best_grid_branching(draft.shape)
    )
    n_levels = max(1, math.ceil(math.log(max(draft.shape), branching) - 1e-9))
    nodes = draft.root
    for level in range(n_levels):
        pieces = branching if level < n_levels - 1 else max(draft.shape)
        nodes, _ = draft.split_grid(nodes, pieces)
        draft.count(nodes, ALL / n_levels, f"level {level + 1}")


@lru_cache(maxsize=64)
def best_grid_branching(shape: tuple[int, ...]) -> int:
    """The branching factor with the least average variance over all boxes, worked out on a square
    grid of this size.
    """
    side = round(math.prod(shape) ** (1 / len(shape)))
    best, least = 2, math.inf
    for branching in range(2, min(side, 16) + 1):
        n_levels = max(1, math.ceil(math.log(side, branching) - 1e-9))
        widths = [branching**level for level in reversed(range(n_levels))]
        error = grid_range_error((side,) * len(shape), widths, [2.0 * n_levels**2] * n_levels)
        if error < least:
            best, least = branching, error
    return best


def uniform_grid(draft: Draft, options: MethodOptions) -> None:
    """m × m cells, m = √(N ε / c) (slides, "Determining Grid Size").

    In d dimensions the noise of a query grows with m^(d/2) and its non-uniformity error falls with
    1/m, so that the best m is of the order (N ε)^(2/(d+2)); for d = 2 that is the slides' rule.
    """
    n_points, share = noisy_total(draft, options) if options.cells is None else (0.0, ALL)
    cells = (
        options.cells
        if options.cells is not None
        else grid_size(n_points * draft.survey.epsilon, draft.shape)
    )
    check_nodes(1.4 * float(cells) ** len(draft.shape), "Choose fewer cells.")
    nodes, _ = draft.split_grid(draft.root, cells)
    draft.count(nodes, share, "cell")


def grid_size(points_times_epsilon: float, shape: tuple[int, ...]) -> int:
    """Cells per dimension of a uniform grid, at least 1 and at most the resolution."""
    return int(np.clip(round((points_times_epsilon / C) ** (2 / (len(shape) + 2))), 1, max(shape)))


def adaptive_grid(draft: Draft, options: MethodOptions) -> None:
    """A coarse grid with αε, each cell split by its noisy count and counted with (1 − α)ε (slides,
    "Adaptive Grid").

    m₁ = max(10, ¼⌈√(N ε / c)⌉) and m₂ = ⌈√(N′ (1 − α) ε / c₂)⌉; a cell that is not split is
    measured a second time.
    """
    alpha = options.coarse_share if options.coarse_share is not None else ADAPTIVE_GRID_ALPHA
    if options.cells is not None:
        first, share = options.cells, ALL
    else:
        n_points, share = noisy_total(draft, options)
        first = max(
            SMALLEST_FIRST_GRID,
            math.ceil(grid_size(n_points * draft.survey.epsilon, draft.shape) / 4),
        )
    check_nodes(1.4 * float(first) ** len(draft.shape), "Choose fewer cells.")
    cells, _ = draft.split_grid(draft.root, first)
    noisy = draft.count(cells, alpha * share, "coarse cell")
    rest = (1 - alpha) * share
    pieces = second_grid_sizes(noisy, float(rest) * draft.survey.epsilon, draft.shape)
    low, high = draft.boxes(cells)
    n_fine = float(np.minimum(pieces[:, None], high - low).prod(axis=1).sum())
    check_nodes(1.4 * n_fine, "Choose a lower resolution.")
    fine, _ = draft.split_grid(cells, pieces)
    draft.count(fine, rest, "fine cell")


def second_grid_sizes(noisy: IntArray, epsilon: float, shape: tuple[int, ...]) -> IntArray:
    """m₂ of every coarse cell, from its noisy count."""
    sizes = np.ceil((np.maximum(noisy, 0) * epsilon / C2) ** (2 / (len(shape) + 2)))
    return np.clip(sizes, 1, max(shape)).astype(np.int64)

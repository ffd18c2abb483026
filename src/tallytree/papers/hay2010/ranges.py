"""Figure 6 of hay2010: ranges of a universal histogram by their size.

L̃ and H̃ are plain sums of noisy counts: §5.2 says that the error of L̃ grows linearly with the size
of the range, which is so only where bins are not cut off at 0 one by one. Cut off, every empty bin
adds the mean of its positive noise, and the error grows with the square of the size; the rows "cut
off at 0" show that reading of "rounding to the nearest non-negative integer". What is expected of
L̃ and H̃ does not depend on the data: :func:`expected_cells` has it exactly, for the heights that
the paper may have used.

On H̄. After §4.2's rule, a subtree whose root is at most 0 becomes 0, the tree no longer adds up,
and it matters how a range is answered. Summing leaves, as §4.2 says one may before the rule, adds
up the bias of all leaves and is worse than H̃ on long ranges; summing the fewest blocks of the
zeroed tree shows what the figure shows, and is what ``H̄ (zeroed subtrees)`` does here. ``H̄
(top-down)`` is what this package publishes.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from tallytree.kernels.range_moments import running_sum
from tallytree.kernels.trees.nonnegative import split_downwards, zero_subtrees
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.papers.cells import Cell, mean_of_runs
from tallytree.papers.hay2010.theorems import binary_plan, tree_errors
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream
from tallytree.ranges.plan import HistogramPlan
from tallytree.strategies.tree import TreeErrors, fewest_blocks

# Nodes from a leaf to the root: 13 with 4,096 bins, 16 in the example of §4.2, 17 with some 65,000
# hosts (§5.1).
HEIGHTS = (13, 16, 17)
EXPECTED = "Figure 6, expected of L̃ and H̃"
UNIT = "squared error"


def range_sizes(n_bins: int) -> list[int]:
    """1, 2, 4 … up to half of the bins (§5.2: 2^(ℓ − 2), ℓ being the height of the tree)."""
    return [2**i for i in range(int(np.log2(n_bins)))]


def figure_6(
    name: str, counts: IntArray, epsilon: Fraction, runs: int, n_ranges: int = 1000
) -> list[Cell]:
    """Squared error of ranges by their size, mean of seeded runs over the same random places."""
    rng = np.random.default_rng(6)
    sizes = range_sizes(len(counts))
    starts = {size: rng.integers(0, len(counts) - size + 1, n_ranges) for size in sizes}
    truth, plan = running_sum(counts), binary_plan(len(counts), epsilon)
    errors = tree_errors(plan)
    found: dict[str, list[list[float]]] = {}
    for run in range(runs):
        stream = KeyStream.from_insecure_seed(run)
        for row, estimate in estimators_of_ranges(counts, plan, errors, epsilon, stream).items():
            found.setdefault(row, []).append(
                [
                    float(np.square(estimate(at, at + size) - truth[at + size] + truth[at]).mean())
                    for size, at in starts.items()
                ]
            )
    table = f"Figure 6, {name}, epsilon {float(epsilon):g}"
    cells = []
    for row, by_run in found.items():
        for size, values in zip(sizes, zip(*by_run)):
            mean, spread = mean_of_runs(values)
            cells.append(Cell(table, row, f"range size = {size}", None, mean, UNIT, spread))
    return cells


Estimator = Callable[[IntArray, IntArray], FloatArray]


def estimators_of_ranges(
    counts: IntArray, plan: HistogramPlan, errors: TreeErrors, epsilon: Fraction, stream: KeyStream
) -> dict[str, Estimator]:
    """One release of each kind: functions from first and one past last bin to estimates."""
    layout = errors.layout
    noisy = [
        add_noise(sums, noise, stream, level=level, query="block")
        for level, (sums, noise) in enumerate(zip(layout.block_sums(counts), plan.noise))
        if noise is not None
    ]
    flat = add_noise(counts, DiscreteLaplace(1 / epsilon), stream, level=0, query="bin")
    nodes = errors.node_estimates(noisy)
    zeroed = np.rint(zero_subtrees(nodes, layout.child_starts)).astype(np.int64)
    blocks = [
        zeroed[start:stop] for start, stop in zip(layout.level_starts[:-1], layout.level_starts[1:])
    ]
    ours = split_downwards(nodes, errors.from_below, layout.child_starts)[layout.leaves]
    cut = [np.maximum(level, 0) for level in noisy]
    return {
        "L̃": _sums_of(flat),
        "H̃": lambda first, last: fewest_blocks(errors, noisy, first, last)[0],
        "L̃ (bins cut off at 0)": _sums_of(np.maximum(flat, 0)),
        "H̃ (blocks cut off at 0)": lambda first, last: fewest_blocks(errors, cut, first, last)[0],
        "H̄ (zeroed subtrees)": lambda first, last: fewest_blocks(errors, blocks, first, last)[0],
        "H̄ (top-down)": _sums_of(ours),
    }


def _sums_of(bins: IntArray | FloatArray) -> Estimator:
    sums = running_sum(bins)
    return lambda first, last: np.asarray(sums[last] - sums[first], dtype=np.float64)


@cache
def mean_blocks(height: int, size: int) -> float:
    """How many blocks of a binary tree answer a range of a size, mean over all of its places."""
    n_bins = 2 ** (height - 1)
    errors = tree_errors(binary_plan(n_bins, Fraction(1)))
    empty = [np.zeros(2**level, dtype=np.int64) for level in range(height)]
    first = np.arange(n_bins - size + 1)
    variances = fewest_blocks(errors, empty, first, first + size)[1]
    return float(variances.mean() / errors.variance[0])


def expected_cells() -> list[Cell]:
    """Error of L̃ over that of H̃ by size: size · 2/ε² over blocks · 2ℓ²/ε², whatever ε and data."""
    return [
        Cell(
            EXPECTED,
            f"height {height}",
            f"range size = {size}",
            None,
            size / (mean_blocks(height, size) * height**2),
            "error of L̃ over that of H̃",
        )
        for height in HEIGHTS
        for size in range_sizes(2 ** (height - 1))
    ]

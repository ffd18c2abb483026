"""Tables and figures of kuo2018 §6, theirs beside ours.

The paper's partially synthetic housing data and its race data by block are not public in full, so
rows on them compare in kind, not in number: ours run on county housing with a synthetic tail (or on
the built-in generator), on the authors' own taxi file and on their national Hawaiian histogram.
Figures are plots without printed numbers; their cells have no figure of the paper. Its race data of
whites are not at hand at all: these cells have no figure of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.group_sizes.evaluate import evaluate
from tallytree.group_sizes.plan.error_formulas import omniscient_error
from tallytree.group_sizes.publish import release
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import CountsBySize, sum_over_regions
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers import datasets
from tallytree.papers.cells import Cell, mean_of_runs
from tallytree.papers.housing import housing_counts
from tallytree.releases.progress import Progress, silent

# §6.2.1 and §6.2.2, total ε = 1: mean earth mover's distance per region.
NAIVE = {
    "housing": 4_462_728_374.0,
    "White": 4_809_679_734.0,
    "Hawaiian": 4_027_891_692.0,
    "taxi": 208_977_518.0,
}
BOTTOM_UP = {
    "housing": (78_459.0, 1_512.2, 24.9),
    "White": (448_909.0, 8_722.0, 152.3),
    "Hawaiian": (13_968.0, 270.1, 4.3),
    "taxi": (20_731.0, 10_405.5, 772.8),
}
CUMULATIVE = {
    "housing": (32_480.0, 1_000.3, 80.1),
    "White": (17_000.0, 1_511.8, 363.8),
    "Hawaiian": (1_381.0, 117.7, 21.6),
    "taxi": (10_547.0, 5_431.5, 1_601.8),
}
BOTTOM_UP_TABLE = "§6.2.2 bottom-up and H_c, ε = 1"
EPSILONS_PER_LEVEL = (0.1, 0.5, 1.0)
UNIT = "EMD per region"
NO_DATA = "EMD per region; these data are not at hand"
# Figure 1 by parts of the groups, the smallest first.
PARTS = (0.0, 0.5, 0.9, 0.99, 0.999, 1.0)


@dataclass(frozen=True)
class Scale:
    """How much to run: the paper averages 10 runs and takes K = 100,000."""

    runs: int
    max_size: int
    households: int
    epsilons: tuple[float, ...]


FULL = Scale(runs=10, max_size=100_000, households=117_000_000, epsilons=EPSILONS_PER_LEVEL)
QUICK = Scale(runs=2, max_size=10_000, households=1_000_000, epsilons=(0.1, 1.0))
CUTS = "2 runs instead of 10, K = 10,000 instead of 100,000, no ε = 0.5 per level"


def reproduce(
    *, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> list[Cell]:
    """All cells of the paper's evaluation, from real data where ``data`` is given."""
    scale = QUICK if quick else FULL
    steps = (
        _naive_table,
        _bottom_up_table,
        _places_figure,
        _merging_figure,
        _two_level_figure,
        _three_level_figure,
        _alone_figure,
    )
    sets = _data_sets(data, scale)
    cells: list[Cell] = []
    for done, step in enumerate(steps):
        progress(done, len(steps), step.__name__.strip("_").replace("_", " "))
        cells += step(sets, scale)
    return cells


def _data_sets(data: Path | None, scale: Scale) -> dict[str, ConfidentialCounts]:
    if data is None:
        return {"housing": housing_counts(scale.households)}
    return {
        "housing": datasets.county_housing(data),
        "Hawaiian": datasets.hawaiian(data),
        "taxi": datasets.taxi(data),
    }


def _mean_errors(
    counts: ConfidentialCounts, scale: Scale, **options: Any
) -> list[tuple[float, float | None]]:
    """Mean EMD per region of each level over seeded runs, and one standard deviation of it."""
    runs = []
    for seed in range(scale.runs):
        made = release(counts, max_size=scale.max_size, insecure_seed=seed, **options)
        runs.append([level.emd for level in evaluate(made, counts).levels])
    return [mean_of_runs(level) for level in zip(*runs)]


def _naive_table(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """§6.2.1: noise on H itself, at the root."""
    for name, counts in sets.items():
        ((error, spread),) = _mean_errors(upper_levels(counts, 1), scale, epsilon=1, view="naive")
        yield Cell("§6.2.1 naive, ε = 1", name, "level 0", NAIVE.get(name), error, UNIT, spread)
    yield Cell("§6.2.1 naive, ε = 1", "White", "level 0", NAIVE["White"], None, NO_DATA)


def _bottom_up_table(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """§6.2.2: bottom-up against cumulative counts at every level, total ε = 1; our hybrid beside
    them.
    """
    methods = {
        "BU": (BOTTOM_UP, {"mechanism": "bottom-up", "view": "cumulative"}),
        "H_c": (CUMULATIVE, {"view": "cumulative"}),
        "hybrid": ({}, {"view": "hybrid"}),
    }
    for name, counts in sets.items():
        for method, (printed, options) in methods.items():
            for level, (error, spread) in enumerate(
                _mean_errors(counts, scale, epsilon=1, **options)
            ):
                # Three levels share ε in the paper; the national Hawaiian histogram here has one
                # level, with all of it.
                same = name in printed and counts.hierarchy.n_levels == len(printed[name])
                paper = printed[name][level] if same else None
                yield Cell(
                    BOTTOM_UP_TABLE,
                    f"{name} {method}",
                    f"level {level}",
                    paper,
                    error,
                    UNIT,
                    spread,
                )
    for method, printed in (("BU", BOTTOM_UP), ("H_c", CUMULATIVE)):
        for level, paper in enumerate(printed["White"]):
            yield Cell(BOTTOM_UP_TABLE, f"White {method}", f"level {level}", paper, None, NO_DATA)


def _places_figure(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """Figure 1: where along the groups in order of size the two views err, at the root with ε = 1."""
    for name, counts in sets.items():
        root = upper_levels(counts, 1)
        truth = root.counts_on_levels.region(0)
        for view in ("sizes", "cumulative"):
            runs = []
            for seed in range(scale.runs):
                made = release(
                    root, max_size=scale.max_size, insecure_seed=seed, epsilon=1, view=view
                )
                runs.append(errors_by_place(truth, made.counts.region(0)))
            for part, values in enumerate(zip(*runs)):
                column = f"groups {PARTS[part]:.4g} to {PARTS[part + 1]:.4g}, by size"
                mean, spread = mean_of_runs(values)
                yield Cell(
                    f"Figure 1, {name}", view, column, None, mean, "mean |error of a size|", spread
                )


def errors_by_place(truth: CountsBySize, estimate: CountsBySize) -> list[float]:
    """Mean absolute error of sorted sizes over parts of the groups, the smallest first.

    Both lists are constant over runs of groups of one size, so that only the ends of runs are
    looked at.
    """
    ends = [np.cumsum(side.count) for side in (truth, estimate)]
    n_groups = int(ends[0][-1])
    bounds = np.rint(np.array(PARTS) * n_groups).astype(np.int64)
    marks = np.unique(np.concatenate([*(end.clip(max=n_groups) for end in ends), bounds]))
    starts, lengths = marks[:-1], np.diff(marks)
    # Of fewer groups than there are, those that are missing count as empty.
    sizes = [
        np.append(side.size, 0)[np.searchsorted(end, starts, side="right")]
        for side, end in zip((truth, estimate), ends)
    ]
    wrong = np.abs(sizes[0] - sizes[1]) * lengths
    sums = np.concatenate([[0], np.cumsum(wrong)])[np.searchsorted(marks, bounds)]
    return [float(found) for found in np.diff(sums) / np.maximum(np.diff(bounds), 1)]


def _merging_figure(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """Figure 4: weighted against plain merging on two levels."""
    for views in (("cumulative", "cumulative"), ("cumulative", "sizes"), ("sizes", "cumulative")):
        yield from _sweep("Figure 4", sets, scale, views=views, merges=("weighted", "average"))
    yield from _omniscient("Figure 4", sets, scale, n_levels=2)


def _two_level_figure(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """Figure 5: two levels."""
    for view in ("sizes", "cumulative", "hybrid"):
        yield from _sweep("Figure 5", sets, scale, views=(view, view))
    yield from _omniscient("Figure 5", sets, scale, n_levels=2)


def _three_level_figure(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """Figure 6: three levels, the whole country instead of the West Coast."""
    for view in ("sizes", "cumulative", "hybrid"):
        yield from _sweep("Figure 6", sets, scale, views=(view,) * 3)
    yield from _omniscient("Figure 6", sets, scale, n_levels=3)


def _alone_figure(sets: dict[str, ConfidentialCounts], scale: Scale) -> Iterator[Cell]:
    """Figure 6 without consistency: every level estimated by itself, from its own budget.

    Bottom-up on the levels down to one of them leaves the estimates of that one as they are.
    """
    for view in ("sizes", "cumulative", "hybrid"):
        for name, whole in _with_levels(sets, 3):
            for epsilon in scale.epsilons:
                for level in range(3):
                    how: dict[str, Any] = {
                        "mechanism": "bottom-up",
                        "view": view,
                        "epsilon": str(epsilon),
                    }
                    error, spread = _mean_errors(upper_levels(whole, level + 1), scale, **how)[
                        level
                    ]
                    column = f"level {level}, ε = {epsilon:g} per level"
                    yield Cell(
                        "Figure 6",
                        f"{name} {view} without consistency",
                        column,
                        None,
                        error,
                        UNIT,
                        spread,
                    )


def _sweep(
    figure: str,
    sets: dict[str, ConfidentialCounts],
    scale: Scale,
    *,
    views: tuple[str, ...],
    merges: tuple[str, ...] = ("weighted",),
) -> Iterator[Cell]:
    """One view per level at every ε per level, on the data sets with so many levels."""
    for name, cut in _with_levels(sets, len(views)):
        for epsilon in scale.epsilons:
            for merge in merges:
                errors = _mean_errors(
                    cut, scale, epsilon=str(len(views) * epsilon), view=views, merge=merge
                )
                row = f"{name} {'×'.join(views)} {merge}"
                for level, (error, spread) in enumerate(errors):
                    yield Cell(
                        figure,
                        row,
                        f"level {level}, ε = {epsilon:g} per level",
                        None,
                        error,
                        UNIT,
                        spread,
                    )


def _omniscient(
    figure: str, sets: dict[str, ConfidentialCounts], scale: Scale, *, n_levels: int
) -> Iterator[Cell]:
    """The reference of every figure: noise on the sizes that exist (§6.2)."""
    for name, cut in _with_levels(sets, n_levels):
        distinct = np.diff(cut.counts_on_levels.offsets)
        for epsilon in scale.epsilons:
            for level in range(n_levels):
                sizes = float(distinct[cut.hierarchy.level_slice(level)].mean())
                column = f"level {level}, ε = {epsilon:g} per level"
                yield Cell(
                    figure,
                    f"{name} omniscient",
                    column,
                    None,
                    omniscient_error(sizes, epsilon),
                    UNIT,
                )


def _with_levels(
    sets: dict[str, ConfidentialCounts], n_levels: int
) -> Iterator[tuple[str, ConfidentialCounts]]:
    """Data sets with at least so many levels, those below cut off."""
    for name, counts in sets.items():
        if counts.hierarchy.n_levels >= n_levels:
            yield name, upper_levels(counts, n_levels)


def upper_levels(counts: ConfidentialCounts, n_levels: int) -> ConfidentialCounts:
    """The same groups with the levels below ``n_levels`` cut off."""
    tree = counts.hierarchy
    if n_levels >= tree.n_levels:
        return counts
    n_regions = int(tree.level_starts[n_levels])
    cut = Hierarchy(
        tree.level_names[:n_levels],
        tree.level_starts[: n_levels + 1].copy(),
        tree.parent[:n_regions].copy(),
        tree.labels[:n_regions].copy(),
    )
    target = np.repeat(
        np.arange(cut.n_leaves), (tree.leaf_ends - tree.leaf_starts)[tree.level_slice(n_levels - 1)]
    )
    leaf_counts = sum_over_regions(counts.leaf_counts, target, cut.n_leaves)
    return ConfidentialCounts(
        PublicFacts(cut, unit=counts.public.unit, group=counts.public.group),
        leaf_counts,
        leaf_counts.n_groups(),
    )

"""Figures 1, 4, 5 and 6 of kuo2018: plots without printed numbers, and what §6.2.3 says of Figure 4.

Figures 4 and 5 have the first two levels; Figure 6 has three, of the west coast for data by county,
as in the paper (§6.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tallytree.group_sizes.plan.error_formulas import omniscient_error
from tallytree.model.count_of_counts import CountsBySize
from tallytree.papers.cells import Cell, mean_of_runs, ratio_of_means, verdict_below_one
from tallytree.papers.kuo2018.runs import (
    UNIT,
    Scale,
    Sets,
    errors_of_levels,
    mean_errors,
    releases,
    upper_levels,
    with_levels,
)

# Figure 1 by parts of the groups, the smallest first.
PARTS = (0.0, 0.5, 0.9, 0.99, 0.999, 1.0)
VIEWS = ("sizes", "cumulative", "hybrid")
MERGING_VIEWS = (("cumulative", "cumulative"), ("cumulative", "sizes"), ("sizes", "cumulative"))
MERGING_TABLE = "§6.2.3 weighted over average"


def places_figure(sets: Sets, scale: Scale) -> Iterator[Cell]:
    """Figure 1: where along the groups in order of size the two views err, at the root with ε = 1."""
    for name, counts in sets.items():
        root = upper_levels(counts, 1)
        truth = root.counts_on_levels.region(0)
        for view in ("sizes", "cumulative"):
            runs = [
                errors_by_place(truth, made.counts.region(0))
                for made in releases(name, root, scale, epsilon=1, view=view)
            ]
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


def merging_figure(sets: Sets, scale: Scale) -> Iterator[Cell]:
    """Figure 4, weighted against plain merging on two levels, and on three; then the ratio of the
    two, which §6.2.3 says is below 1 at every level, ε and combination.
    """
    ratios = []
    for views in (*MERGING_VIEWS, ("cumulative",) * 3):
        for name, cut in with_levels(sets, len(views)):
            for epsilon in scale.epsilons:
                runs = {
                    merge: [
                        errors_of_levels(made, cut)
                        for made in releases(
                            name,
                            cut,
                            scale,
                            epsilon=str(len(views) * epsilon),
                            view=views,
                            merge=merge,
                        )
                    ]
                    for merge in ("weighted", "average")
                }
                row = f"{name} {'×'.join(views)}"
                columns = [f"level {i}, ε = {epsilon:g} per level" for i in range(len(views))]
                by_level = {merge: list(zip(*found)) for merge, found in runs.items()}
                for merge, levels in by_level.items():
                    for column, values in zip(columns, levels):
                        mean, spread = mean_of_runs(values)
                        yield Cell("Figure 4", f"{row} {merge}", column, None, mean, UNIT, spread)
                for column, weighted, plain in zip(columns, *by_level.values()):
                    ratios.append(_merging_cell(row, column, weighted, plain))
    yield from _omniscient("Figure 4", sets, scale, n_levels=2)
    yield from ratios


def _merging_cell(row: str, column: str, weighted: Sequence[float], plain: Sequence[float]) -> Cell:
    ratio, spread = ratio_of_means(weighted, plain)
    remark = verdict_below_one(ratio, spread, "weighted merging below the average")
    return Cell(MERGING_TABLE, row, column, None, ratio, "ratio of EMD", spread, remark)


def two_level_figure(sets: Sets, scale: Scale) -> Iterator[Cell]:
    """Figure 5: two levels."""
    for view in VIEWS:
        yield from _sweep("Figure 5", sets, scale, views=(view, view))
    yield from _omniscient("Figure 5", sets, scale, n_levels=2)


def three_level_figure(sets: Sets, scale: Scale) -> Iterator[Cell]:
    """Figure 6: three levels."""
    for view in VIEWS:
        yield from _sweep("Figure 6", sets, scale, views=(view,) * 3)
    yield from _omniscient("Figure 6", sets, scale, n_levels=3)


def alone_figure(sets: Sets, scale: Scale) -> Iterator[Cell]:
    """Figure 6 without consistency: every level estimated by itself, from its own budget.

    Bottom-up on the levels down to one of them leaves the estimates of that one as they are.
    """
    for view in VIEWS:
        for name, whole in with_levels(sets, 3):
            for epsilon in scale.epsilons:
                for level in range(3):
                    how: dict[str, Any] = {"mechanism": "bottom-up", "view": view}
                    cut = upper_levels(whole, level + 1)
                    errors = mean_errors(name, cut, scale, epsilon=str(epsilon), **how)
                    yield Cell(
                        "Figure 6",
                        f"{name} {view} without consistency",
                        f"level {level}, ε = {epsilon:g} per level",
                        None,
                        errors[level][0],
                        UNIT,
                        errors[level][1],
                    )


def _sweep(figure: str, sets: Sets, scale: Scale, *, views: tuple[str, ...]) -> Iterator[Cell]:
    """One view per level at every ε per level, on the data sets with so many levels."""
    for name, cut in with_levels(sets, len(views)):
        for epsilon in scale.epsilons:
            how: dict[str, Any] = {"epsilon": str(len(views) * epsilon), "view": views}
            errors = mean_errors(name, cut, scale, merge="weighted", **how)
            for level, (error, spread) in enumerate(errors):
                column = f"level {level}, ε = {epsilon:g} per level"
                row = f"{name} {'×'.join(views)} weighted"
                yield Cell(figure, row, column, None, error, UNIT, spread)


def _omniscient(figure: str, sets: Sets, scale: Scale, *, n_levels: int) -> Iterator[Cell]:
    """The reference of every figure: noise on the sizes that exist (§6.2)."""
    for name, cut in with_levels(sets, n_levels):
        distinct = np.diff(cut.counts_on_levels.offsets)
        for epsilon in scale.epsilons:
            for level in range(n_levels):
                sizes = float(distinct[cut.hierarchy.level_slice(level)].mean())
                column = f"level {level}, ε = {epsilon:g} per level"
                error = omniscient_error(sizes, epsilon)
                yield Cell(figure, f"{name} omniscient", column, None, error, UNIT)

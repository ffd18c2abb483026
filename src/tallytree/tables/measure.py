"""Measuring a table: the one door from :class:`ConfidentialTable` to noisy whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tallytree.lattice.tables import TableKey
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.confidential_table import ConfidentialTable
from tallytree.privacy.noise import add_noise
from tallytree.privacy.randomness import BitSource
from tallytree.releases.progress import Progress, silent
from tallytree.tables.plan import PlannedTable, TablePlan, query_name

# Numbers that are counted and drawn at once.
AT_ONCE = 1 << 23


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """The answers of one table, ``(n_regions, n_rows)``, in 32 bits where they fit."""

    key: TableKey
    values: IntArray

    def __post_init__(self) -> None:
        read_only(self.values)


def measure_table(
    table: ConfidentialTable, plan: TablePlan, stream: BitSource, progress: Progress = silent
) -> tuple[NoisyTable, ...]:
    """Count every planned table exactly and add exact noise, some regions at a time."""
    return tuple(_measured(table, plan, planned, stream) for planned in plan.tables)


def _measured(
    table: ConfidentialTable, plan: TablePlan, planned: PlannedTable, stream: BitSource
) -> NoisyTable:
    key, drawn = planned.key, plan.drawn(planned.key.parts)
    query, question = query_name(plan, key), question_of(plan, key)
    parts = []
    for first, exact in _exact(table, plan, key):
        ends = np.arange(len(exact) + 1, dtype=np.int64) * len(drawn)
        noisy = add_noise(
            exact[:, drawn],
            planned.noise,
            stream,
            level=key.level,
            query=query,
            offsets=ends,
            first_region=first,
            question=question,
        )
        parts.append(narrow(noisy))
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return NoisyTable(key, widened(plan, key, whole))


def widened(plan: TablePlan, key: TableKey, of_drawn: IntArray) -> IntArray:
    """Answers with the numbers that are not measured, because they are 0."""
    n_rows, drawn = plan.axes.n_rows(key.parts), plan.drawn(key.parts)
    if len(drawn) == n_rows:
        return of_drawn
    found = np.zeros((len(of_drawn), n_rows), dtype=of_drawn.dtype)
    found[:, drawn] = of_drawn
    return found


def question_of(plan: TablePlan, key: TableKey) -> list[str | IntArray]:
    """What is public about a question: the values that are counted, and the classes they are in."""
    starts = [
        np.array(axis.starts[part], dtype=np.int64) for axis, part in zip(plan.axes.axes, key.parts)
    ]
    rules = plan.facts.rules
    return [repr(plan.facts.values), *starts, *([repr(rules)] if rules else [])]


def _exact(
    table: ConfidentialTable, plan: TablePlan, key: TableKey
) -> Iterator[tuple[int, IntArray]]:
    """Exact counts of consecutive regions of a level, and the first of them."""
    tree, n_rows = plan.facts.hierarchy, plan.axes.n_rows(key.parts)
    here = tree.level_slice(key.level)
    starts, ends = tree.leaf_starts[here], tree.leaf_ends[here]
    row_of_cell, n_cells = plan.axes.row_of_cell(key.parts), plan.axes.n_cells
    at_once = max(1, AT_ONCE // n_rows)
    for first in range(0, len(starts), at_once):
        last = min(first + at_once, len(starts))
        inside = slice(
            *np.searchsorted(table.cell, [starts[first] * n_cells, ends[last - 1] * n_cells])
        )
        leaf, cell = np.divmod(table.cell[inside], n_cells)
        region = np.searchsorted(ends[first:last], leaf, side="right")
        exact = np.zeros((last - first) * n_rows, dtype=np.int64)
        np.add.at(exact, region * n_rows + row_of_cell[cell], table.n[inside])
        yield first, exact.reshape(last - first, n_rows)


def narrow(values: IntArray) -> IntArray:
    """Whole numbers in 32 bits, where they fit."""
    small = np.iinfo(np.int32)
    fits = values.size == 0 or (values.min() >= small.min and values.max() <= small.max)
    return values.astype(np.int32) if fits else values

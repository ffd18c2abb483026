"""Errors of a table against the truth: for the owner of the data, and as confidential as they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.lattice.split import cells_wanted
from tallytree.lattice.tables import TableKey
from tallytree.model.confidential_table import ConfidentialTable
from tallytree.model.notebook import html_table, plain
from tallytree.model.part import part_of
from tallytree.options.tables import CellOptions
from tallytree.releases.query_evaluation import WARNING
from tallytree.tables.cells import LevelCells, levels_above, summed
from tallytree.tables.plan import TablePlan, wanted_tables
from tallytree.tables.release import TableRelease


@dataclass(frozen=True)
class MarginErrors:
    """Errors of one table: a level by some attributes.

    Attributes
    ----------
    level, by
        The table.
    counts
        How many counts it has, zeros included.
    mean_count, mean_error, root_mean_square
        Means over its counts: of the true count, of |count − true count|, and the root of the mean
        of its square.
    std_error
        What the release states, on average.
    """

    level: str
    by: tuple[str, ...]
    counts: int
    mean_count: float
    mean_error: float
    root_mean_square: float
    std_error: float


@dataclass(frozen=True)
class TableEvaluation:
    """Errors of a table by level and attributes; not private."""

    margins: tuple[MarginErrors, ...]

    def to_json(self) -> dict[str, Any]:
        """The errors as JSON-ready facts, with the warning."""
        return {"warning": WARNING, "margins": [asdict(one) for one in self.margins]}

    def tables(self) -> list[tuple[str, list[str], list[list[object]]]]:
        """Tables to print: title, head and rows."""
        head = ["level", "by", "counts", "mean count", "MAE", "RMSE", "std error"]
        rows: list[list[object]] = [
            [
                name if not isinstance(name, tuple) else ", ".join(name)
                for name in asdict(one).values()
            ]
            for one in self.margins
        ]
        return [("Errors of every table", head, rows)]

    def __repr__(self) -> str:
        errors = ", ".join(
            f"{' by '.join([one.level, ', '.join(one.by)]) if one.by else one.level}: "
            f"{plain(one.mean_error)}"
            for one in self.margins
        )
        return f"TableEvaluation(NOT PRIVATE; mean error of {errors})"

    def _repr_html_(self) -> str:
        ((title, head, rows),) = self.tables()
        return html_table(title, head, rows, note=WARNING)


def evaluate_table(release: TableRelease, truth: Any, **source: Any) -> TableEvaluation:
    """Errors of every level by every subset of attributes, or of those that were wanted."""
    exact = truth if isinstance(truth, ConfidentialTable) else _read(release, truth, source)
    tree, values = release.hierarchy, release.attributes
    if exact.public.hierarchy != tree or exact.public.values != values:
        raise RequestError(
            "The data have other regions or values than the release; read them as they were "
            "released."
        )
    levels = levels_above(tree, values.n_cells, LevelCells(exact.cell, exact.n))
    other = TableRelease(release.plan, levels, release.manifest)
    found = []
    for level, margin in wanted_tables(release.manifest["mechanism"]["want"], release.plan.facts):
        ours, theirs = release.margin(level, margin), other.margin(level, margin)
        apart = summed(
            np.concatenate([ours.cell, theirs.cell]), np.concatenate([ours.n, -theirs.n])
        ).n.astype(np.float64)
        shape = values.margin(margin).shape
        counts = tree.level_size(level) * int(np.prod(shape, dtype=np.int64))
        found.append(
            MarginErrors(
                tree.level_names[level],
                tuple(values.names[place] for place in margin),
                counts,
                float(theirs.n.sum()) / counts,
                float(np.abs(apart).sum()) / counts,
                float(np.sqrt((apart**2).sum() / counts)),
                mean_std_error(release.plan, level, margin),
            )
        )
    return TableEvaluation(tuple(found))


def mean_std_error(plan: TablePlan, level: int, margin: tuple[int, ...]) -> float:
    """Root of the mean variance of the counts of a table."""
    parts = tuple(finest if place in margin else 0 for place, finest in enumerate(plan.axes.finest))
    energy = cells_wanted(plan.axes, TableKey(level, parts)).energy
    here = plan.facts.hierarchy.level_slice(level)
    return float(np.sqrt((plan.variance[here] @ energy).mean()))


def _read(release: TableRelease, source: Any, how: dict[str, Any]) -> ConfidentialTable:
    """The data, read as they were released: attributes and levels are those of the release."""
    from tallytree.ingest.tables import read_table  # loads Ibis and DuckDB

    values, tree = release.attributes, release.hierarchy
    own: dict[str, Any] = {
        "by": {name: values.values_of(name) for name in values.names},
        "closed": [name for name in values.names if "other" not in values.values_of(name)],
        "ordered": list(values.ordered),
        "classes": {
            name: [label for label, _, _ in values.classes_of(name)] for name, _ in values.classes
        },
        "levels": tree.level_names[1:],
        "root": release.root,
        "rule": release.plan.facts.rules,
    }
    unit = release.manifest["privacy"]["unit"]
    if unit["column"] is not None:
        own |= {"unit": f"column:{unit['column']}", "contributions": unit["contributions"]}
    return read_table(source, CellOptions(**{**own, **how}), part_of(release.manifest))

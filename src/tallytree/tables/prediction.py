"""Errors of a table before it is paid for, in closed form: nothing is counted, nothing simulated.

The standard error of every count follows from public facts. What share of a table's counts comes
within some per cent of the truth depends on how large they are: that is taken from an earlier
release, never from confidential data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.confidential_table import PublicTable
from tallytree.options.tables import TableOptions
from tallytree.privacy.budget import Exact, exact
from tallytree.tables.evaluate import mean_std_error
from tallytree.tables.manifest import measured_name
from tallytree.tables.plan import TablePlan, plan_table, wanted_tables
from tallytree.tables.release import TableRelease

_TARGET = re.compile(
    r"\s*(?P<level>[^:]+?)\s*(?::\s*(?P<by>.*?))?\s+within\s+(?P<within>[0-9.]+)\s*%\s+in\s+"
    r"(?P<share>[0-9.]+)\s*%\s+of\s+(?:the\s+)?cells\s*"
)
TARGET = 'a target is written "county: age within 5 % in 90 % of cells"'
SMALLEST, LARGEST = Fraction(1, 10_000), Fraction(1000)


@dataclass(frozen=True)
class TableError:
    """The predicted error of one table.

    Attributes
    ----------
    level, by
        The table.
    counts
        How many counts it has.
    std_error, mean_error
        Of a count: the standard error, and the mean absolute error of normal noise.
    """

    level: str
    by: tuple[str, ...]
    counts: int
    std_error: float
    mean_error: float


@dataclass(frozen=True)
class TablePrediction:
    """Predicted errors of every table that is wanted; of counts near 0, which are cut off there,
    true errors are smaller.

    Attributes
    ----------
    epsilon
        The privacy loss as it was asked for: ε, or ρ under zCDP.
    tables
        One per level and attributes.
    measured
        What is measured, with its share of the budget.
    share
        Where a target was given: which share of its counts reaches it.
    """

    epsilon: float
    tables: tuple[TableError, ...]
    measured: tuple[tuple[str, float], ...]
    share: float | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready facts."""
        return asdict(self)

    def __repr__(self) -> str:
        errors = ", ".join(
            f"{one.level}{' by ' if one.by else ''}{', '.join(one.by)}: {one.std_error:.3g}"
            for one in self.tables
        )
        return f"TablePrediction(epsilon = {self.epsilon:g}, standard errors of {errors})"


def predicted(options: TableOptions, facts: PublicTable) -> TablePrediction:
    """Errors of a release of these public facts."""
    return of_plan(plan_table(options, facts), wanted_tables(options.want, facts))


def of_plan(plan: TablePlan, wanted: Sequence[tuple[int, tuple[int, ...]]]) -> TablePrediction:
    """Errors of the tables of a plan."""
    tree, values = plan.facts.hierarchy, plan.facts.values
    found = []
    for level, margin in wanted:
        error = mean_std_error(plan, level, margin)
        n_rows = math.prod(len(values.values[place]) for place in margin)
        found.append(
            TableError(
                tree.level_names[level],
                tuple(values.names[place] for place in margin),
                tree.level_size(level) * n_rows,
                error,
                error * math.sqrt(2 / math.pi),
            )
        )
    measured = tuple((measured_name(plan, one.key), float(one.share)) for one in plan.tables)
    return TablePrediction(float(plan.budget.total), tuple(found), measured)


def plan_like(
    like: TableRelease,
    *,
    epsilon: Exact | None = None,
    target: str | None = None,
    runs: int = 5,
    **options: Any,
) -> TablePrediction:
    """Errors of a release like an earlier one, at a privacy loss or at the smallest one that meets
    a target for its counts. Closed form: ``runs`` is not needed.
    """
    if (epsilon is None) == (target is None):
        raise RequestError("Say either epsilon, to predict errors, or target, to find it.")
    asked = TableOptions(**{"want": tuple(like.manifest["mechanism"]["want"]), **options})
    facts = like.plan.facts
    if epsilon is not None:
        return predicted(replace(asked, epsilon=epsilon), facts)
    wish = _Wish.of(str(target), like)
    low, high = SMALLEST, LARGEST
    if _reached(asked, facts, wish, high) < wish.share:
        raise RequestError(f"No ε up to {high} meets {target!r}: its counts are too small.")
    for _ in range(14):
        middle = exact(f"{math.sqrt(float(low) * float(high)):.3g}", "epsilon")
        low, high = (
            (low, middle) if _reached(asked, facts, wish, middle) >= wish.share else (middle, high)
        )
    found = predicted(replace(asked, epsilon=high), facts)
    return replace(found, share=_reached(asked, facts, wish, high))


@dataclass(frozen=True, eq=False)
class _Wish:
    """Counts of a table, how near they should come, and how many of them."""

    level: int
    margin: tuple[int, ...]
    counts: np.ndarray[Any, np.dtype[np.int64]]
    within: float
    share: float

    @classmethod
    def of(cls, target: str, like: TableRelease) -> _Wish:
        match = _TARGET.fullmatch(target)
        if match is None:
            raise RequestError(f"{target!r} is not understood: {TARGET}.")
        entry = match["level"] + (f":{match['by']}" if match["by"] else "")
        ((level, margin),) = wanted_tables(entry, like.plan.facts)
        counts = like.margin(level, margin).n
        if not len(counts):
            raise RequestError("The earlier release has no count in that table.")
        return cls(level, margin, counts, float(match["within"]) / 100, float(match["share"]) / 100)


def _reached(asked: TableOptions, facts: PublicTable, wish: _Wish, epsilon: Fraction) -> float:
    """Share of the counts that come within their bound, by normal errors."""
    plan = plan_table(replace(asked, epsilon=epsilon), facts)
    far = wish.within * wish.counts / mean_std_error(plan, wish.level, wish.margin) / math.sqrt(2)
    return float(np.mean([math.erf(one) for one in far.tolist()]))

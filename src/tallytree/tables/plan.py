"""The plan of a table: which sums of cells are measured on which level, with which noise. Public
inputs only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.lattice.axes import Axis, even_axis, plain_axis
from tallytree.lattice.precision import (
    excess,
    own_precision,
    posterior_variance,
    upward_precision,
)
from tallytree.lattice.split import Wanted, cells_wanted, planned_shares, ranges_wanted
from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.arrays import BoolArray, FloatArray, IntArray
from tallytree.model.confidential_table import PublicTable
from tallytree.model.known import Known, settled_totals, without_alternative
from tallytree.model.values import Values
from tallytree.options.tables import TableOptions
from tallytree.privacy.budget import (
    Budget,
    budget_for_replacing,
    noise_for,
    refuse_many_changes,
)
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import Sensitivity, histogram_sensitivity

# Cells of a region beyond which the full cross is not published.
MOST_CELLS = 1_000_000
# Ordered attributes with so many values and more are measured in blocks too.
LEAST_FOR_BLOCKS = 16
# Names of attributes that could be read as two, or as classes of another, are quoted.
_LIKE_WORDS = re.compile(r',|"| in ')
# Tables on all levels together, classes of ordered attributes included, that a plan chooses from.
MOST_TABLES = 2_000
# Known totals count so many times as much as anything measured.
KNOWN_BETTER = 1e6
ONLY_CELL = "the only cell that known totals and rules leave"


@dataclass(frozen=True)
class PlannedTable:
    """A table that is measured.

    Attributes
    ----------
    key
        Its level and partitions.
    share
        Of the budget.
    sensitivity, noise
        Of its counts.
    """

    key: TableKey
    share: Fraction
    sensitivity: Sensitivity
    noise: Noise


@dataclass(frozen=True, eq=False)
class TablePlan:
    """What will be measured with which noise. Tables follow one another, so their parts add up to
    the budget.
    """

    facts: PublicTable
    axes: Axes
    budget: Budget
    tables: tuple[PlannedTable, ...]

    @property
    def shares(self) -> dict[TableKey, Fraction]:
        """Of each table."""
        return {table.key: table.share for table in self.tables}

    @cached_property
    def own(self) -> FloatArray:
        """What the tables of each level tell of each component, known totals included."""
        return self.measured_precision + self.known_precision * self.known_components

    @cached_property
    def measured_precision(self) -> FloatArray:
        """What the noisy tables of each level tell of each component."""
        variances = {table.key: table.noise.variance for table in self.tables}
        return own_precision(self.axes, variances, self.facts.hierarchy.n_levels)

    @cached_property
    def known_precision(self) -> float:
        """At which known totals count in least squares; whole numbers keep them exactly."""
        return KNOWN_BETTER * float(self.measured_precision.max())

    @cached_property
    def known_components(self) -> BoolArray:
        """Which components of each level known totals tell, ``(n_levels, n_components)``."""
        return known_components(self.axes, self.facts)

    @cached_property
    def upward(self) -> FloatArray:
        """Precision of each component in each region from what is at it and below it."""
        return upward_precision(self.facts.hierarchy, self.own)

    @cached_property
    def variance(self) -> FloatArray:
        """Variance of each component in each region from all tables; at most that, where classes
        of a partition have several sizes.
        """
        most = max(excess(self.axes, table.key.parts) for table in self.tables)
        found = posterior_variance(self.facts.hierarchy, self.upward) * most
        return np.where(self.known_components[self.facts.hierarchy.level_of], 0.0, found)

    def drawn(self, parts: tuple[int, ...]) -> IntArray:
        """Numbers of a table, per region, that are measured: all but those that count impossible
        cells alone, which are 0.
        """
        n_rows, possible = self.axes.n_rows(parts), self.facts.possible
        if possible is None:
            return np.arange(n_rows)
        return np.unique(self.axes.row_of_cell(parts)[possible])

    def std_error(self, region: int, chosen: Sequence[FloatArray]) -> float:
        """Standard error of a sum of cells: weights of the values of each attribute."""
        return float(np.sqrt(self.variance[region] @ self.energy(chosen)))

    def energy(self, chosen: Sequence[FloatArray]) -> FloatArray:
        """How much of the square of a sum of cells lies in each component."""
        energy = np.ones(1)
        for axis, weights in zip(self.axes.axes, chosen):
            squares = (axis.basis.T @ weights) ** 2
            energy = (energy[:, None] * np.bincount(axis.component, squares)).ravel()
        return energy


def axes_of(values: Values) -> Axes:
    """The axes of attributes: single values, and even blocks of those in order."""
    return Axes(tuple(_axis(values, name) for name in values.names))


def _axis(values: Values, name: str) -> Axis:
    n_values = len(values.values_of(name))
    if name not in values.ordered or n_values < LEAST_FOR_BLOCKS:
        return plain_axis(n_values)
    widths = [round(n_values ** (1 / 3)), round(n_values ** (2 / 3))]
    return even_axis(n_values, widths)


def known_components(axes: Axes, facts: PublicTable) -> BoolArray:
    """Which components of each level follow from known totals."""
    partitions = np.array(axes.partitions).reshape(len(axes.partitions), -1)
    found = np.zeros((facts.hierarchy.n_levels, len(partitions)), dtype=bool)
    for one in facts.known:
        found[one.level] = np.all(partitions <= known_parts(axes, one), axis=1)
    return found


def known_parts(axes: Axes, known: Known) -> tuple[int, ...]:
    """The partitions of known totals."""
    return tuple(part if place in known.margin else 0 for place, part in enumerate(axes.finest))


def with_known(facts: PublicTable, sources: Any) -> PublicTable:
    """Public facts with the known totals of some tables."""
    from tallytree.ingest.known import read_known  # loads Arrow's readers

    several = isinstance(sources, (list, tuple))
    tree, values = facts.hierarchy, facts.values
    given = [read_known(one, tree, values) for one in (sources if several else [sources])]
    known = settled_totals(tree, values, given, facts.possible)
    return beside_known(facts, known)


def beside_known(facts: PublicTable, known: tuple[Known, ...]) -> PublicTable:
    """Public facts with known totals; those whom these and rules leave one cell are not covered."""
    if not known:
        return facts
    some = without_alternative(facts.hierarchy, facts.values, known, facts.possible)
    alone = facts.alone.removesuffix(ONLY_CELL).removesuffix(" or in ")
    alone = " or in ".join(filter(None, [alone, ONLY_CELL if some else ""]))
    return replace(facts, known=known, alone=alone)


def loss_of(options: TableOptions, facts: PublicTable) -> Budget:
    """The budget: beside known totals the stated loss is that of replacing one unit by another.

    Nobody comes or goes where totals stand fixed, so neighbours differ by what one unit is. Noise
    for adding or removing a unit at half of ε, or a quarter of ρ, keeps the stated loss of
    replacing it, whatever is known: known totals are constants, so all that depends on the data are
    noisy tables, and replacing is one step of removing and one of adding. For a table of counts this
    is the noise for l1 = 2k at the whole ε.
    """
    budget = options.loss()
    if facts.known and budget.asked is not None:
        raise RequestError(
            "Known totals go with epsilon alone or with rho: beside them the loss is that of "
            "replacing one unit, which is not proved with delta."
        )
    return budget_for_replacing(budget) if facts.known and not budget.replacing else budget


def plan_table(options: TableOptions, facts: PublicTable) -> TablePlan:
    """The plan that makes the errors of the wanted tables small."""
    facts = with_known(facts, options.known) if options.known else facts
    axes = axes_of(facts.values)
    refuse_many_tables(facts.values, facts.hierarchy.n_levels)
    budget = loss_of(options, facts)
    sizes = [facts.hierarchy.level_size(level) for level in range(facts.hierarchy.n_levels)]
    wanted = _wanted(options, facts, axes)
    known = known_components(axes, facts)
    shares = planned_shares(axes, sizes, wanted, budget.definition, known)
    return plan_of_shares(facts, axes, budget, shares)


def refuse_many_tables(values: Values, n_levels: int) -> None:
    """Refuse, before anything is read, attributes with more cells or tables than are planned."""
    if values.n_cells > MOST_CELLS:
        raise RequestError(
            f"Each region would have {values.n_cells:,} cells, more than {MOST_CELLS:,}. Take "
            "fewer attributes, or fewer values of them, in one release."
        )
    n_tables = len(axes_of(values).partitions) * n_levels
    if n_tables > MOST_TABLES:
        raise RequestError(
            f"There would be {n_tables:,} tables by subsets of the attributes; at most "
            f"{MOST_TABLES:,} are planned. Take fewer attributes in one release."
        )


def plan_of_shares(
    facts: PublicTable, axes: Axes, budget: Budget, shares: Mapping[TableKey, Fraction]
) -> TablePlan:
    """The plan with these shares of a budget, and the noise that follows from them."""
    bound = histogram_sensitivity(contributions=facts.unit.contributions)
    refuse_many_changes(budget, [bound])
    if not shares or sum(shares.values()) != 1 or min(shares.values()) <= 0:
        raise RequestError("The shares of the tables are above 0 and add up to 1.")
    if facts.known and not budget.replacing:
        raise RequestError("Beside known totals the loss is that of replacing one unit by another.")
    known = known_components(axes, facts)
    if any(known[key.level, axes.partitions.index(key.parts)] for key in shares):
        raise RequestError("Known totals are not measured.")
    tables = tuple(
        PlannedTable(
            key, share, bound, noise_for(Budget(budget.definition, budget.total * share), bound)
        )
        for key, share in sorted(shares.items())
    )
    return TablePlan(facts, axes, budget, tables)


def _wanted(options: TableOptions, facts: PublicTable, axes: Axes) -> list[Wanted]:
    """The tables that count, and ranges of those by ordered attributes."""
    found = []
    for level, places in wanted_tables(options.want, facts):
        parts = tuple(
            len(axis.starts) - 1 if place in places else 0 for place, axis in enumerate(axes.axes)
        )
        key = TableKey(level, parts)
        found.append(cells_wanted(axes, key))
        found += [
            ranges_wanted(axes, key, place) for place in places if len(axes.axes[place].starts) > 2
        ]
    return found


def wanted_tables(
    want: str | Sequence[str], facts: PublicTable
) -> list[tuple[int, tuple[int, ...]]]:
    """Levels and places of attributes of the tables that are named; all subsets where none is.

    Examples
    --------
    >>> from tallytree.model.hierarchy import hierarchy_from_leaves
    >>> tree = hierarchy_from_leaves(["state"], [("GA",), ("NY",)], root="US")
    >>> facts = PublicTable(tree, Values(("sex",), (("f", "m"),)))
    >>> wanted_tables("state:sex", facts), len(wanted_tables((), facts))
    ([(1, (0,))], 4)
    """
    names = facts.hierarchy.level_names
    entries = [want] if isinstance(want, str) else list(want)
    if not entries:
        picks = product((False, True), repeat=len(facts.values.names))
        subsets = [tuple(np.flatnonzero(pick).tolist()) for pick in picks]
        return [(level, subset) for level in range(len(names)) for subset in subsets]
    found = []
    for entry in entries:
        level, _, by = entry.partition(":")
        if level.strip() not in names:
            raise RequestError(
                f"want= names a level {level.strip()!r}; levels are {', '.join(names)}."
            )
        places = facts.values.chosen([name.strip() for name in by.split(",") if name.strip()])
        found.append((names.index(level.strip()), places))
    return list(dict.fromkeys(found))


def query_name(plan: TablePlan, key: TableKey) -> str:
    """What a table asks, in words: ``sex, age in 21 classes``; no two tables of a level ask the
    same, since noise is drawn by this name.
    """
    words = []
    for name, axis, part in zip(plan.facts.values.names, plan.axes.axes, key.parts):
        if part:
            whole = part == len(axis.starts) - 1
            known = json.dumps(name, ensure_ascii=False) if _LIKE_WORDS.search(name) else name
            words.append(known if whole else f"{known} in {axis.n_classes[part]:,} classes")
    return f"counts by {', '.join(words)}" if words else "counts"

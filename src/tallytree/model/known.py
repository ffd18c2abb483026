"""Known totals: public numbers for some sums of cells, kept exactly and never compared with the data.

At each level the known sums are those of one margin: a table by some attributes. Sums of known
numbers are known too, so a level knows at least what the one below it knows. The margin of a level
then cuts its cells into classes that are rounded one by one, each with its own totals; two margins
that overlap would not, and are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray, IntArray, read_only
from tallytree.model.attributes import Attributes
from tallytree.model.hierarchy import Hierarchy


@dataclass(frozen=True, eq=False)
class Known:
    """The known numbers of one level.

    Attributes
    ----------
    level
        Whose regions they are of.
    margin
        Places of the attributes that they are by, rising.
    counts
        ``(n_regions, n_rows)``: combinations of their values in order.
    """

    level: int
    margin: tuple[int, ...]
    counts: IntArray

    def __post_init__(self) -> None:
        read_only(self.counts)

    def by(self, attributes: Attributes, margin: Sequence[int]) -> IntArray:
        """Its sums by some of its attributes."""
        shape = [attributes.shape[place] for place in self.margin]
        left_out = tuple(
            1 + number for number, place in enumerate(self.margin) if place not in margin
        )
        table = self.counts.reshape(len(self.counts), *shape)
        return np.asarray(table.sum(axis=left_out).reshape(len(self.counts), -1), dtype=np.int64)

    def rows(self, attributes: Attributes) -> IntArray:
        """The row in which each cell of a region is counted."""
        row = np.zeros(1, dtype=np.int64)
        for place, size in enumerate(attributes.shape):
            n, values = (size, np.arange(size)) if place in self.margin else (1, np.zeros(size))
            row = (row[:, None] * n + values.astype(np.int64)).ravel()
        return row

    def words(self, hierarchy: Hierarchy, attributes: Attributes) -> str:
        """What is known, in words."""
        names = ", ".join(attributes.names[place] for place in self.margin)
        counts = f"the counts by {names}" if names else "the counts"
        level = hierarchy.level_names[self.level]
        where = f"each {level}" if self.level else str(hierarchy.labels[0])
        return f"{counts} of {where}, which are known totals"


def settled_totals(
    hierarchy: Hierarchy,
    attributes: Attributes,
    given: Sequence[Known],
    possible: BoolArray | None,
) -> tuple[Known, ...]:
    """What is known of each level, from the root to the last one with known totals.

    Numbers that contradict each other, or say that there is what no rule allows, are refused; so
    are totals that leave nobody an alternative.

    Examples
    --------
    >>> from tallytree.model.hierarchy import hierarchy_from_leaves
    >>> tree = hierarchy_from_leaves(["state"], [("GA",), ("NY",)], root="US")
    >>> by = Attributes(("sex", "old"), (("f", "m"), ("yes", "no")))
    >>> found = settled_totals(tree, by, [Known(1, (0,), np.array([[3, 4], [1, 0]]))], None)
    >>> [(one.level, one.counts.tolist()) for one in found]
    [(0, [[4, 4]]), (1, [[3, 4], [1, 0]])]
    """
    found: list[Known] = []
    for level in range(max((one.level for one in given), default=-1), -1, -1):
        here = [one for one in given if one.level == level]
        if found:
            below = found[-1]
            parent = hierarchy.parent[hierarchy.level_slice(level + 1)]
            sums = np.zeros((hierarchy.level_size(level), below.counts.shape[1]), dtype=np.int64)
            np.add.at(sums, parent - hierarchy.level_starts[level], below.counts)
            here.append(Known(level, below.margin, sums))
        finest = max(here, key=lambda one: len(one.margin))
        for other in here:
            _refuse_contradiction(hierarchy, attributes, finest, other)
        found.append(finest)
    settled = tuple(reversed(found))
    for one in settled:
        _refuse_impossible(hierarchy, attributes, one, possible)
    if settled and without_alternative(hierarchy, attributes, settled, possible) == "nobody":
        raise RequestError(
            "The known totals leave no row an alternative: they say already which cells there are, "
            "so that a promise would cover nobody. Leave out an attribute, or a level."
        )
    return settled


def without_alternative(
    hierarchy: Hierarchy,
    attributes: Attributes,
    settled: Sequence[Known],
    possible: BoolArray | None,
) -> str:
    """Who could not have been another row with the same known totals: ``""`` for none, ``"some"``,
    or ``"nobody"`` where nobody else is left to be covered.

    A row may move to another leaf of its region at the last known level, or to another possible
    cell of its class at the root, where classes are finest.
    """
    leaves = hierarchy.leaf_ends - hierarchy.leaf_starts
    lone = leaves[hierarchy.level_slice(settled[-1].level)] == 1
    rows = settled[0].rows(attributes)
    n_cells = np.bincount(rows if possible is None else rows[possible])
    single = n_cells[n_cells > 0] == 1
    if not (lone.any() and single.any()):
        return ""
    return "nobody" if lone.all() and single.all() else "some"


def _refuse_contradiction(
    hierarchy: Hierarchy, attributes: Attributes, finest: Known, other: Known
) -> None:
    level = hierarchy.level_names[other.level]
    if not set(other.margin) <= set(finest.margin):
        names = [
            ", ".join(attributes.names[place] for place in one.margin) for one in (finest, other)
        ]
        raise RequestError(
            f"Of each {level} totals are known by {names[0]} and by {names[1]}; whole numbers that "
            "keep both cannot be promised. Give one table by all of these attributes, or one of "
            "both."
        )
    apart = np.flatnonzero((finest.by(attributes, other.margin) != other.counts).any(axis=1))
    if len(apart):
        region = hierarchy.paths[int(hierarchy.level_starts[other.level] + apart[0])]
        raise RequestError(f"Known totals contradict each other: those of {region} differ.")


def _refuse_impossible(
    hierarchy: Hierarchy, attributes: Attributes, known: Known, possible: BoolArray | None
) -> None:
    if possible is None:
        return
    n_possible = np.bincount(known.rows(attributes)[possible], minlength=known.counts.shape[1])
    wrong = np.flatnonzero((known.counts * (n_possible == 0)).any(axis=1))
    if len(wrong):
        region = hierarchy.paths[int(hierarchy.level_starts[known.level] + wrong[0])]
        raise RequestError(
            f"The known totals of {region} contradict the rules: they count what no rule allows."
        )

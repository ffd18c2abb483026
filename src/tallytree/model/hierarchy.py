"""The hierarchy of regions as flat arrays in level order.

Regions are numbered level by level, the root first; the children of a region are consecutive, and
so are the leaves below it. Kernels, Arrow tables and workers share this numbering. Every leaf lies
on the last level.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.model.arrays import IntArray, LabelArray, offsets_from_lengths, read_only
from tallytree.model.notebook import html_table

SEPARATOR = "/"
# Labels that are looked at together, where all of them at once would take more room than the rest
# of a release.
LABELS_AT_ONCE = 1 << 14


def escape_label(label: str) -> str:
    """Make a label safe inside a path: ``/`` joins the labels of a path, so inside a label it is
    written ``%2F``.
    """
    return label.replace("%", "%25").replace(SEPARATOR, "%2F")


def escape_labels(labels: LabelArray) -> LabelArray:
    """Many labels made safe inside a path; returned as they are where none needs it."""
    together = "".join(labels)
    if "%" not in together and SEPARATOR not in together:
        return labels
    return np.array([escape_label(label) for label in labels], dtype=object)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Levels of regions, each region below one region of the level above.

    Attributes
    ----------
    level_names
        One name per level, the root's first (``("total", "state", "county")``).
    level_starts
        Regions ``level_starts[l]:level_starts[l + 1]`` form level ``l``; length ``n_levels + 1``.
    parent
        Parent of each region, nondecreasing along each level; -1 for the root.
    labels
        Own label of each region (not its path), an object array of ``str``.

    Examples
    --------
    >>> release.hierarchy
    Hierarchy(US: 1, state: 2)
    >>> release.hierarchy.paths.tolist()
    ['US', 'US/Georgia', 'US/Ohio']
    """

    level_names: tuple[str, ...]
    level_starts: IntArray
    parent: IntArray
    labels: LabelArray

    def __post_init__(self) -> None:
        n_regions = len(self.parent)
        starts = self.level_starts
        if len(starts) != len(self.level_names) + 1 or starts[0] != 0 or starts[-1] != n_regions:
            raise InputError(
                "A hierarchy needs level_starts from 0 to the number of regions, one more than "
                "levels."
            )
        if len(self.labels) != n_regions:
            raise InputError(
                f"A hierarchy of {n_regions} regions needs as many labels, got {len(self.labels)}."
            )
        if starts[1] != 1 or self.parent[0] != -1:
            raise InputError(
                "A hierarchy has exactly one region at level 0, the root, with parent -1."
            )
        for level in range(1, self.n_levels):
            parents = self.parent[starts[level] : starts[level + 1]]
            # Nondecreasing from the first to the last region above, in steps of at most 1: every
            # region above has a child.
            steps = np.diff(parents)
            whole = (
                len(parents) > 0
                and parents[0] == starts[level - 1]
                and parents[-1] == starts[level] - 1
            )
            if not whole or steps.min(initial=0) < 0 or steps.max(initial=0) > 1:
                raise InputError(
                    f"Level {self.level_names[level]!r} is not in level order: every region above "
                    "needs a child, and the "
                    "children of a region must be consecutive."
                )
        for array in (self.level_starts, self.parent, self.labels):
            read_only(array)

    @property
    def n_levels(self) -> int:
        """Number of levels, the root included."""
        return len(self.level_names)

    @property
    def n_regions(self) -> int:
        """Number of regions on all levels."""
        return len(self.parent)

    @property
    def n_leaves(self) -> int:
        """Number of regions on the last level."""
        return int(self.level_starts[-1] - self.level_starts[-2])

    def level_size(self, level: int) -> int:
        """Number of regions on a level."""
        return int(self.level_starts[level + 1] - self.level_starts[level])

    def level_slice(self, level: int) -> slice:
        """Regions of a level, as a slice into any per-region array."""
        return slice(int(self.level_starts[level]), int(self.level_starts[level + 1]))

    @cached_property
    def level_of(self) -> IntArray:
        """Level of each region."""
        return read_only(np.repeat(np.arange(self.n_levels), np.diff(self.level_starts)))

    @cached_property
    def child_starts(self) -> IntArray:
        """Children of region ``r`` are regions ``child_starts[r]:child_starts[r + 1]`` (none for
        leaves).
        """
        n_children = np.bincount(self.parent[1:], minlength=self.n_regions)
        return read_only(1 + offsets_from_lengths(n_children))

    @cached_property
    def leaf_starts(self) -> IntArray:
        """First leaf below each region, counting leaves from 0; those of region ``r`` are
        ``leaf_starts[r]:leaf_ends[r]``.
        """
        return read_only(self._leaf_bounds[0])

    @cached_property
    def leaf_ends(self) -> IntArray:
        """One past the last leaf below each region, counting leaves from 0."""
        return read_only(self._leaf_bounds[1])

    @cached_property
    def _leaf_bounds(self) -> tuple[IntArray, IntArray]:
        first = np.empty(self.n_regions, dtype=np.int64)
        last = np.empty(self.n_regions, dtype=np.int64)
        leaves = self.level_slice(self.n_levels - 1)
        first[leaves] = np.arange(self.n_leaves)
        last[leaves] = first[leaves] + 1
        for level in range(self.n_levels - 2, -1, -1):
            here = self.level_slice(level)
            first[here] = first[self.child_starts[here]]
            last[here] = last[self.child_starts[here.start + 1 : here.stop + 1] - 1]
        return first, last

    @cached_property
    def paths(self) -> LabelArray:
        """Path of each region from the root, labels joined by ``/`` (a ``/`` inside a label is
        written ``%2F``).
        """
        own = escape_labels(self.labels)
        paths = np.empty(self.n_regions, dtype=object)
        paths[:1] = own[:1]
        for level in range(1, self.n_levels):
            here = self.level_slice(level)
            paths[here] = (paths[self.parent[here]] + SEPARATOR) + own[here]
        return read_only(paths)

    @cached_property
    def _region_by_path(self) -> dict[str, int]:
        return {path: region for region, path in enumerate(self.paths)}

    def find(self, path: str) -> int:
        """Index of the region with a path such as ``"US/Georgia"``."""
        try:
            return self._region_by_path[path]
        except KeyError:
            raise RequestError(self._unknown_region(path)) from None

    def _unknown_region(self, path: str) -> str:
        parent_path, _, _ = path.rpartition(SEPARATOR)
        parent = self._region_by_path.get(parent_path)
        if parent is None or self.level_of[parent] == self.n_levels - 1:
            return f"There is no region {path!r}. Paths start at the root: {self.paths[0]!r}."
        children = self.paths[self.child_starts[parent] : self.child_starts[parent + 1]]
        shown = ", ".join(repr(child) for child in children[:5]) + (
            ", …" if len(children) > 5 else ""
        )
        return f"There is no region {path!r}. Below {parent_path!r} there are {len(children)} regions: {shown}."

    def labels_of(self, regions: slice) -> LabelArray:
        """Labels of consecutive regions."""
        return self.labels[regions]

    def above_leaves(self) -> Hierarchy:
        """The same regions without the last level."""
        n_above = int(self.level_starts[-2])
        names, starts = self.level_names[:-1], self.level_starts[:-1]
        return Hierarchy(names, starts, self.parent[:n_above], self.labels_of(slice(0, n_above)))

    def regions_above(self, coarse: int, fine: int) -> IntArray:
        """The region of a coarse level in which each region of a finer one lies, both within their
        level.
        """
        above = np.arange(self.level_size(fine))
        for level in range(fine, coarse, -1):
            above = (self.parent[self.level_slice(level)] - self.level_starts[level - 1])[above]
        return above

    def sum_to_parents(self, level: int, values: IntArray) -> IntArray:
        """Add up per-region values of a level (first axis) to the regions of the level above."""
        starts = self.child_starts[self.level_slice(level - 1)] - self.level_starts[level]
        return np.add.reduceat(values, starts, axis=0)

    def sum_from_leaves(self, leaf_values: IntArray) -> IntArray:
        """Per-region totals of values given per leaf."""
        totals = np.empty(self.n_regions, dtype=leaf_values.dtype)
        totals[self.level_slice(self.n_levels - 1)] = leaf_values
        for level in range(self.n_levels - 1, 0, -1):
            totals[self.level_slice(level - 1)] = self.sum_to_parents(
                level, totals[self.level_slice(level)]
            )
        return totals

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the level names, shape and labels: equal hierarchies have equal fingerprints."""
        digest = hashlib.sha256()
        digest.update("\x00".join(self.level_names).encode())
        digest.update(self.level_starts.tobytes())
        digest.update(self.parent.data)
        for start in range(0, self.n_regions, LABELS_AT_ONCE):
            labels = self.labels_of(slice(start, min(start + LABELS_AT_ONCE, self.n_regions)))
            digest.update(("\x00" if start else "").encode() + "\x00".join(labels).encode())
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hierarchy) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{name}: {self.level_size(level):,}" for level, name in enumerate(self.level_names)
        )
        return f"Hierarchy({levels})"

    def _repr_html_(self) -> str:
        rows = [
            [level, name, self.level_size(level)] for level, name in enumerate(self.level_names)
        ]
        return html_table("Hierarchy", ["level", "name", "regions"], rows)


def hierarchy_from_leaves(
    level_names: Sequence[str], leaf_labels: Sequence[Sequence[str]], *, root: str = "total"
) -> Hierarchy:
    """Build a hierarchy from its leaves.

    Parameters
    ----------
    level_names
        Names of the levels below the root; may be empty for the root alone.
    leaf_labels
        One tuple of labels per leaf, distinct and sorted, as long as ``level_names``.
    root
        Label of the root, which is also the name of level 0.

    Examples
    --------
    >>> hierarchy_from_leaves(["state", "county"], [("GA", "Cobb"), ("GA", "Fulton"), ("NY", "Kings")], root="US")
    Hierarchy(US: 1, state: 2, county: 3)
    """
    columns = [
        np.array([labels[level] for labels in leaf_labels], dtype=object)
        for level in range(len(level_names))
    ]
    return hierarchy_from_columns(level_names, columns, root=root)


def hierarchy_from_columns(
    level_names: Sequence[str], columns: Sequence[LabelArray], *, root: str = "total"
) -> Hierarchy:
    """Build a hierarchy from its leaves, given as one array of labels per level.

    As :func:`hierarchy_from_leaves`, for many leaves: ``columns[l][i]`` is the label of leaf ``i``
    at the ``l``-th level below the root, leaves distinct and sorted.
    """
    # first[i] is True where leaf i opens a new region at the current level.
    first = np.zeros(len(columns[0]) if level_names else 1, dtype=bool)
    first[:1] = True
    starts = [0, 1]
    parent = [np.array([-1], dtype=np.int64)]
    labels = [np.array([root], dtype=object)]
    for column in columns:
        region_above = np.cumsum(first) - 1 + starts[-2]
        first = first.copy()
        first[1:] |= column[1:] != column[:-1]
        parent.append(region_above[first])
        labels.append(column[first])
        starts.append(starts[-1] + int(first.sum()))
    if level_names and not bool(first.all()):
        raise InputError("The leaves of a hierarchy must be distinct and sorted.")
    return Hierarchy(
        level_names=(root, *level_names),
        level_starts=np.array(starts, dtype=np.int64),
        parent=np.concatenate(parent),
        labels=np.concatenate(labels),
    )

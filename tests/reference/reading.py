"""Slow, obvious twin of reading: Python rows to counts by size per leaf."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Leaf = tuple[str, ...]


def sizes_of_groups(
    rows: Iterable[Row], group: str, levels: Iterable[str], groups: Iterable[Row] = ()
) -> dict[Leaf, Counter]:
    """Number of groups of each size per leaf, from one row per entity and a table of all groups."""
    leaf_of: dict[Any, Leaf] = {}
    size: Counter = Counter()
    for row in groups:
        leaf_of[row[group]] = tuple(str(row[level]) for level in levels)
        size[row[group]] += 0
    for row in rows:
        if row[group] not in leaf_of:
            leaf_of[row[group]] = tuple(str(row[level]) for level in levels)
        size[row[group]] += row.get("quantity", 1)
    counts: dict[Leaf, Counter] = defaultdict(Counter)
    for name, leaf in leaf_of.items():
        counts[leaf][size[name]] += 1
    return counts


def counts_as_dict(counts: Any) -> dict[Leaf, Counter]:
    """The leaves of confidential counts in the same form; leaves without groups map to an empty
    counter.
    """
    tree = counts.hierarchy
    by_leaf = {}
    for leaf in range(tree.n_leaves):
        region = tree.level_starts[-2] + leaf
        labels: list[str] = []
        while tree.parent[region] >= 0:
            labels.insert(0, tree.labels[region])
            region = tree.parent[region]
        own = counts.leaf_counts.region(leaf)
        by_leaf[tuple(labels)] = Counter(dict(zip(own.size.tolist(), own.count.tolist())))
    return by_leaf


def bounded(
    rows: Iterable[Row], unit: str, identity: Sequence[str], contributions: int
) -> list[tuple[Row, bool]]:
    """Rows with whether they count: of each unit the first ones in the order of a digest of their
    contents.
    """
    by_unit: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        by_unit[row[unit]].append(row)

    def digest(row: Row) -> str:
        text = "".join(f"{row[column]}\x1f" for column in (unit, *identity))
        return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

    return [
        (row, place < contributions)
        for own in by_unit.values()
        for place, row in enumerate(
            sorted(own, key=lambda row: (digest(row), *(row[column] for column in identity)))
        )
    ]

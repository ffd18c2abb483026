"""What public facts make doubtful about a request: levels in the wrong order, regions that are
groups.
"""

from __future__ import annotations

import numpy as np

from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy

# As many regions with at most one group each are no accident.
MOST_SINGLE = 10


def single_groups(tree: Hierarchy, n_groups: IntArray | None) -> list[str]:
    """Leaves that are groups, for sure: by public numbers of groups none has more than one."""
    if n_groups is None or tree.n_leaves < MOST_SINGLE or n_groups.max(initial=0) > 1:
        return []
    return [
        f"No {tree.level_names[-1]} has more than one group. Is it the column of the groups? Leave "
        "it out of --levels."
    ]


def reversed_levels(tree: Hierarchy) -> list[str]:
    """Levels in the wrong order for sure: every upper region holds one lower one, and lower labels
    occur under several.
    """
    found = []
    for level in range(1, tree.n_levels - 1):
        upper, lower = tree.level_size(level), tree.labels[tree.level_slice(level + 1)]
        if len(lower) == upper and len(set(lower.tolist())) < upper:
            names = tree.level_names[level], tree.level_names[level + 1]
            found.append(
                f"Levels {names[0]!r} and {names[1]!r} stand in the wrong order: --levels goes "
                "from large to small."
            )
    return found


def doubtful_levels(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    """Pairs of levels that may stand in the wrong order: most regions of the upper one hold a
    single region of the lower.
    """
    doubtful = []
    for level in range(1, hierarchy.n_levels - 1):
        below = hierarchy.parent[hierarchy.level_slice(level + 1)]
        if np.mean(np.unique(below, return_counts=True)[1] == 1) > 0.5:
            doubtful.append((hierarchy.level_names[level], hierarchy.level_names[level + 1]))
    return doubtful

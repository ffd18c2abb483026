"""The names that options accept, each list written once."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any, Literal, get_args

Mechanism = Literal[
    "adaptive",
    "matching",
    "bottom-up",
    "tree-exact",
    "tree-relaxed",
    "tree-program",
    "tree-dp",
    "cumulative-exact",
    "cumulative-relaxed",
    "cumulative-dp",
    "chain",
    "topdown",
    "size-bins",
    "auto",
]
View = Literal[
    "naive", "sizes", "cumulative", "hybrid", "chain", "staircase", "bins", "blocks", "people"
]
Merge = Literal["weighted", "average"]
Norm = Literal[1, 2]
Totals = Literal["regions", "root"]
Split = Literal["auto", "equal"]
PlannedUnit = Literal["entity", "group"]
PublicDegrees = Literal["groups", "nodes", "none"]
Public = Literal["groups", "regions", "cells"]
Engine = Literal["local", "spark"]

Strategy = Literal[
    "auto", "flat", "hierarchical", "wavelet", "optimised", "eigen-select", "low-rank", "adaptive"
]
Allocation = Literal["equal", "geometric", "optimal-blocks", "optimal"]
Neighbours = Literal["add-remove", "replace"]
"""What neighbouring data sets differ in: one unit more or less, or another unit in the place of one (hay2010 §2.1)."""

Outside = Literal["error", "clip", "drop"]
StreamStrategy = Literal["scaled-root", "square-root", "tree"]
StreamStrategyName = Literal["auto", "scaled-root", "square-root", "tree"]
StreamObjective = Literal["mean", "largest"]
Nonnegative = Literal["top-down", "least-squares", "subtree", "no"]
"""How negative estimates are avoided.

``top-down`` keeps the total and divides it from coarse to fine: nothing is negative and long ranges get no bias.
``least-squares`` is the exact nonnegative optimum; it is biased upwards over long ranges of empty bins. ``subtree`` is
hay2010 §4.2's rule, for trees. ``no`` leaves the unbiased estimates as they are.
"""

MapMethod = Literal[
    "auto",
    "flat",
    "hierarchical",
    "uniform-grid",
    "adaptive-grid",
    "quadtree",
    "quad-opt",
    "kd-tree",
    "kd-hybrid",
    "adaptive-tree",
    "adaptive",
    "dawa",
    "privtree",
    "ahp",
    "noisy-first",
    "structure-first",
    "noisy-merge",
    "structure-merge",
]
DegreeMethod = Literal["isotonic", "sorted", "noisy"]
"""``isotonic`` is hay2010's S̄, the least-squares fit in rising order; ``sorted`` its S̃_r, sorted and rounded;
``noisy`` its S̃."""

Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]
"""Who publishes, in the words of the registry of deployments."""

ExportFormat = Literal[
    "csv", "xlsx", "parquet", "json-stat", "sdmx-csv", "frictionless", "geojson", "geoparquet"
]


HistoryFormat = Literal["table", "json", "csv"]


def names(choice: Any) -> str:
    """The names that a ``Literal`` holds, in words.

    Examples
    --------
    >>> names(Outside)
    'error, clip or drop'
    """
    *first, last = (str(name) for name in get_args(choice))
    return f"{', '.join(first)} or {last}"


def did_you_mean(given: object, known: list[str]) -> str:
    """`` Did you mean …?``, with a leading blank, where one of the known names is much like the
    given one.
    """
    near = get_close_matches(str(given), known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""

"""What the page of a comparison shows, as JSON-ready facts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.releases.comparison import Comparison
from tallytree.releases.report.html import page

# Rows that a page holds; the clearest changes first, the others are in the table that goes with it.
MOST_ROWS = 50_000


def changes_payload(found: Comparison, first: str, second: str) -> dict[str, Any]:
    """The page of a comparison: numbers per level, and the differences, the least likely to be
    noise first.
    """
    head = found.table.column_names
    by_chance = np.lexsort(
        [np.asarray(found.table["p_value"]), ~np.asarray(found.table["clear"], dtype=bool)]
    )
    kept = found.table.take(pa.array(by_chance[:MOST_ROWS]))
    of = "class" if "class" in head else head[2]
    sizes = "How many groups of each size every region has"
    named = {"class": sizes, "size": sizes, "statistic": "Statistics of every region"}
    what = named.get(of, "How many rows every region has")
    rows = [list(row) for row in zip(*(_rounded(kept[name]) for name in head))]
    left_out = found.table.num_rows - kept.num_rows
    return {
        "title": f"{first} and {second}",
        "lead": f"{what} in {first} and in {second}, and what is clear of noise.",
        "head": head,
        "rows": rows,
        "levels": [vars(level) for level in found.levels],
        "words": {"size": of, "first": first, "second": second},
        "read": [
            "Numbers contain noise, so two of them differ even where nothing changed. A change is "
            "called clear where noise "
            "alone seldom makes one so large: of all that are called clear on a level, at most "
            f"{found.rate:.0%} are "
            "expected to be noise.",
            "The true change lies between “at least” and “at most” in about 19 of 20 cases.",
            "A change that is not clear is not a proof that nothing changed.",
            found.note,
            *(
                [f"{found.left_out:,} regions are in one of the two only and were left out."]
                if found.left_out
                else []
            ),
            *(
                [
                    f"The page holds the {len(rows):,} clearest of {len(rows) + left_out:,} "
                    "differences."
                ]
                if left_out
                else []
            ),
        ],
    }


def _rounded(column: Any) -> list[Any]:
    values = column.to_pylist()
    return (
        [float(f"{value:.4g}") for value in values] if pa.types.is_floating(column.type) else values
    )


def changes_page(found: Comparison, first: str, second: str) -> str:
    """The page of a comparison of what is called ``first`` and ``second``."""
    return page(changes_payload(found, first, second), kind="changes")

"""``tallytree histogram``: a histogram that answers any range; and how ``query`` asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tallytree.cli.app import app, print_json, print_table, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.options.groups import Output
from tallytree.options.histogram import HistogramOptions
from tallytree.options.text import value_range
from tallytree.publish.histogram import histogram as release_histogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.histogram_loading import load_histogram


@command(app, needs=("out", "column"))
def histogram(source: SourceOrConfig, where: Output, how: HistogramOptions) -> None:
    """Release a histogram of one column that answers any range, with error bars.

    Example: tallytree histogram people.parquet --column age --width 1 --bounds 0,120 --epsilon 1.0 --out ages
    """
    made, found = publish(how, where, lambda: release_histogram(source, how), load_histogram)
    facts = summary(made)
    if where.json:
        print_json({"out": where.out, "already_released": found, **facts})
    else:
        say(f"Released {facts['bins']:,} bins ({facts['strategy']}) to {where.out}")
        say(f"Why this strategy: {facts['reason']}")
        say(facts["statement"])
        say(f"A range of half of all bins has a standard error of about {facts['standard_error_of_half']:.3g}.")


def summary(made: RangeHistogram) -> dict[str, Any]:
    """What a histogram is, for people and programs. Nothing in it was not released."""
    n_bins = made.bins.n_bins
    privacy, strategy = made.manifest["privacy"], made.manifest["strategy"]
    half = made.prefix_sums()[max(n_bins // 2 - 1, 0)]
    return {
        "bins": n_bins,
        "strategy": strategy["name"],
        "reason": strategy["reason"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "total": asdict(made.total()),
        "standard_error_of_half": half.standard_error,
    }


def query_histogram(
    made: RangeHistogram, folder: Path, *, ranges: Sequence[str], quantile: float | None, level: float, json: bool
) -> None:
    """Answer ranges and a quantile; without a question, show every bin."""
    pairs = [_as_asked(made, value_range(text)) for text in ranges]
    answers = made.ranges(pairs, level=level) if pairs else None
    found = made.quantile(quantile, level=level) if quantile is not None else None
    if answers is None and found is None:
        everything = made.table()
        if json:
            print_json({"histogram": str(folder), "bins": everything.to_pylist()})
        else:
            print_table(str(folder), everything.column_names, [list(row.values()) for row in everything.to_pylist()])
        return
    rows = []
    if answers is not None:
        rows += [
            [f"{text} count", a.estimate, a.standard_error, a.low, a.high]
            for text, a in zip(ranges, answers, strict=True)
        ]
    if found is not None:
        rows.append([f"quantile {quantile:g}", found.value, found.standard_error, found.low, found.high])
    columns = ["question", "estimate", "standard_error", "low", "high"]
    if json:
        print_json({"histogram": str(folder), "level": level, "answers": [dict(zip(columns, row)) for row in rows]})
    else:
        print_table(str(folder), columns, [["–" if cell is None else cell for cell in row] for row in rows])


def _as_asked(made: RangeHistogram, pair: tuple[object, object]) -> tuple[object, object]:
    """Ends of a range of categories are names, even where they look like numbers."""
    if made.bins.categories is None or isinstance(pair[0], str):
        return pair
    names = made.bins.categories
    return tuple(f"{end:g}" if f"{end:g}" in names else str(end) for end in pair)  # type: ignore[return-value]

"""``tallytree histogram``: a histogram that answers any range."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.options.groups import Output
from tallytree.options.histogram import HistogramOptions

if TYPE_CHECKING:
    from tallytree.ranges.release import RangeHistogram


@command(app, needs=("out", "column"))
def histogram(source: SourceOrConfig, where: Output, how: HistogramOptions) -> None:
    """Release a histogram of one column that answers any range, with error bars.

    Example: tallytree histogram people.parquet --column age --width 1 --bounds 0,120 --epsilon
        1.0 --out ages
    """
    from tallytree.ranges.publish import make_histogram
    from tallytree.ranges.release import load_histogram

    made, found = publish(
        how, where, lambda keeping: make_histogram(source, how, keeping), load_histogram
    )
    facts = summary(made)
    if where.json:
        print_json({"out": where.out, "already_released": found, **facts})
    else:
        say(f"Released {facts['bins']:,} bins ({facts['strategy']}) to {where.out}")
        say(f"Why this strategy: {facts['reason']}")
        say(facts["statement"])
        if made.density is not None and made.density.far_too_fine:
            say(str(made.density))
        say(
            "A range of half of all bins has a standard error of about "
            f"{facts['std_error_of_half']:.3g}."
        )


def summary(made: RangeHistogram) -> dict[str, Any]:
    """What a histogram is, for people and programs. Nothing in it was not released."""
    n_bins = made.bins.n_bins
    privacy, strategy = made.manifest["privacy"], made.manifest["mechanism"]
    half = made.prefix_sums()[max(n_bins // 2 - 1, 0)]
    return {
        "bins": n_bins,
        "strategy": strategy["name"],
        "reason": strategy["reason"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "total": asdict(made.total()),
        "std_error_of_half": half.std_error,
        "density": None if made.density is None else made.density.to_json(),
    }

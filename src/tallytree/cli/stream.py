"""``tallytree stream``: how many came so far, step after step."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import command
from tallytree.cli.paying import say_if_weak
from tallytree.cli.sources import SourceOrConfig
from tallytree.options.groups import Printing
from tallytree.options.stream import StreamOptions

if TYPE_CHECKING:
    from tallytree.streams.release import StreamRelease


@command(app, needs=("out", "column", "until"))
def stream(source: SourceOrConfig, printed: Printing, how: StreamOptions) -> None:
    """Release how many rows came so far, after every step; run it again, with a later --until, to
    go on.

    The budget is spent once, at the first run. Rows must not move from one step to another between
    runs.

    Example: tallytree stream visits.parquet --column day --until 31 --horizon 365 --epsilon 1
        --out visits
    """
    from tallytree.streams.publish import stream as release_stream

    say_if_weak(how)
    facts = summary(release_stream(source, how))
    if printed.json:
        print_json({"out": how.out, **facts})
    else:
        say(
            f"{how.out} holds {facts['steps']:,} steps, up to {facts['last']} "
            f"({facts['mechanism']})"
        )
        say(facts["statement"])
        say(f"So far: {facts['so_far']}.")


def summary(made: StreamRelease) -> dict[str, Any]:
    """What a stream holds, for people and programs. Nothing in it was not released."""
    privacy, total = made.manifest["privacy"], made.total()
    return {
        "steps": made.n_steps,
        "last": str(made.steps.name(made.n_steps - 1)),
        "mechanism": made.mechanism,
        "private": privacy["private"],
        "statement": privacy["statement"],
        "total": asdict(total),
        "so_far": f"{total.estimate:,}, between {total.low:,} and {total.high:,}",
    }

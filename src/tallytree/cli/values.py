"""``tallytree values``: sums, means, medians and the whole distribution of a value by region."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.options.values import ValuesOptions, ValuesOutput
from tallytree.releases.questions import Question

if TYPE_CHECKING:
    from tallytree.group_sizes.values.release import ValuesRelease
    from tallytree.releases.keeping import Keeping


@command(app, needs=("out", "value", "step", "max"))
def values(source: SourceOrConfig, where: ValuesOutput, how: ValuesOptions) -> None:
    """Release sums, means, medians and the whole distribution of a value, at every level.

    Example: tallytree values incomes.parquet --value income --step 100 --max 500000 --levels
        state,county --epsilon 1.0 --out incomes
    """
    from tallytree.group_sizes.values.publish import make_values
    from tallytree.group_sizes.values.release import load_values

    def make(keeping: Keeping) -> ValuesRelease:
        with progress_bar() as progress:
            return make_values(source, how, keeping, progress)

    made, found = publish(how, where, make, load_values, intervals=where.intervals)
    facts = summary(made)
    if where.json:
        print_json({"out": where.out, "already_released": found, **facts})
        return
    levels = ", ".join(f"{level['regions']:,} {level['name']}" for level in made.manifest["levels"])
    say(f"Released {made.scale.name} of {levels} ({facts['mechanism']}) to {where.out}")
    say(facts["statement"])
    say(f"Note: {made.manifest['public']['hierarchy']}.")
    reply = made.reply(Question())
    print_table(reply.title, list(reply.columns), [list(row) for row in reply.rows])


def summary(made: ValuesRelease) -> dict[str, Any]:
    """What a table of values is, for people and programs. Nothing in it was not released."""
    privacy = made.manifest["privacy"]
    return {
        "levels": made.manifest["levels"],
        "mechanism": made.manifest["mechanism"]["name"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "public": made.manifest["public"],
        "statistics": made.reply(Question()).facts["statistics"],
    }

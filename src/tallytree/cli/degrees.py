"""``tallytree degrees``: sorted counts, such as the degree sequence of a graph; and how ``query`` asks them."""

from __future__ import annotations

from pathlib import Path

from tallytree.cli.app import app, print_json, print_table, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.errors import RequestError
from tallytree.options.degrees import DegreesOptions
from tallytree.options.groups import Output
from tallytree.publish.degrees import degrees as release_degrees
from tallytree.release.degrees import DegreeSequence, load_degrees


@command(app, needs=("out",))
def degrees(source: SourceOrConfig, where: Output, how: DegreesOptions) -> None:
    """Release how large groups are, or the degrees of a graph, without saying which is which.

    Example: tallytree degrees friends.csv --edges from,to --graphical --epsilon 0.5 --out degrees
    """
    if how.edges is None and how.column is None and how.size is None:
        raise RequestError("Say what the rows are with one of --edges FROM,TO, --column COL or --size COL.")
    made, found = publish(how, where, lambda: release_degrees(source, how), load_degrees)
    privacy = made.manifest["privacy"]
    if where.json:
        facts = {"groups": len(made.degrees), "method": made.manifest["method"], "total": made.total()}
        print_json(
            {
                "out": where.out,
                "already_released": found,
                **facts,
                "private": privacy["private"],
                "statement": privacy["statement"],
            }
        )
    else:
        say(f"Released {len(made.degrees):,} counts ({made.manifest['method']['name']}) to {where.out}")
        say(privacy["statement"])
        say(f"Assumed public: how many groups there are; {made.manifest['public']['note']}.")


def query_degrees(
    made: DegreeSequence,
    folder: Path,
    *,
    size: int | None,
    at_least: int | None,
    largest: int | None,
    json: bool,
) -> None:
    """Answer questions about a degree sequence; without a question, show how many nodes have each degree."""
    answers: dict[str, int] = {}
    if size is not None:
        answers[f"nodes of degree {size}"] = made.of_degree(size)
    if at_least is not None:
        answers[f"nodes of at least {at_least}"] = made.at_least(at_least)
    if largest is not None:
        answers[f"degree of node {largest} from the largest"] = made.kth_largest(largest)
    rows = [[row["degree"], row["count"]] for row in made.table().to_pylist()]
    if json:
        print_json({"degrees": str(folder), **(answers or {"counts": rows})})
    elif answers:
        print_table(str(folder), ["question", "answer"], [list(pair) for pair in answers.items()])
    else:
        print_table(str(folder), ["degree", "count"], rows)

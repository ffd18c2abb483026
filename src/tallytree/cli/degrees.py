"""``tallytree degrees``: sorted counts, such as the degree sequence of a graph."""

from __future__ import annotations

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.errors import RequestError
from tallytree.options.degrees import DegreesOptions
from tallytree.options.groups import Output


@command(app, needs=("out",))
def degrees(source: SourceOrConfig, where: Output, how: DegreesOptions) -> None:
    """Release how large groups are, or the degrees of a graph, without saying which is which.

    Example: tallytree degrees friends.csv --edges from,to --public nodes --graphical --epsilon
        0.5 --out degrees
    """
    from tallytree.degree_sequences.publish import make_degrees
    from tallytree.degree_sequences.release import load_degrees

    if how.edges is None and how.column is None and how.size is None:
        raise RequestError(
            "Say what the rows are with one of --edges FROM,TO, --column COL or --size COL."
        )
    made, found = publish(
        how, where, lambda keeping: make_degrees(source, how, keeping), load_degrees
    )
    privacy = made.manifest["privacy"]
    if where.json:
        facts = {
            "groups": len(made.degrees),
            "mechanism": made.manifest["mechanism"],
            "total": made.total(),
        }
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
        say(f"Released {len(made.degrees):,} counts ({made.mechanism}) to {where.out}")
        say(privacy["statement"])
        public = made.manifest["public"]
        say(
            f"{'Note:' if public['groups'] is None else 'Assumed public: how many groups there are;'} {public['note']}."
        )

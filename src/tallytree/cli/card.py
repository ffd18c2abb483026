"""``tallytree card``: what a release is and promises, for a registry of deployments."""

from __future__ import annotations

import sys

from tallytree.cli.app import app, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.options.card import CardOptions


@command(app)
def card(folder: Folder, said: CardOptions) -> None:
    """Write card.json and card.md into a release folder: what it is and promises, as registries of
    deployments ask for it.

    Example: tallytree card out --name "Households of Ohio" --curator "Statistics Office"
        --published 2026-11-16
    """
    from tallytree.kinds.showing import card as write_card

    facts, text, *records = write_card(folder, said)
    for record in records:
        sys.stdout.write(record.read_text(encoding="utf-8"))
    wrote = ", ".join(map(str, (facts, text, *records)))
    say(f"Wrote {wrote}. What the manifest does not know and no flag says is left out.")

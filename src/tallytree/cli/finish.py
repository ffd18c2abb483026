"""``tallytree resume``, ``re-estimate`` and ``clean``: finishing what is paid for, and estimating it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import declared
from tallytree.cli.options import AsJson
from tallytree.kinds.verbs import clean as drop
from tallytree.kinds.verbs import re_estimate as estimate_again
from tallytree.kinds.verbs import resume as finish
from tallytree.options.groups import LedgerOptions, Output

Ledger = Annotated[str | None, declared(LedgerOptions, "ledger")]
Overwrite = Annotated[bool, declared(Output, "overwrite")]
Target = Annotated[Path, typer.Argument(help="Folder that the release was to be written to.", metavar="DIR")]


@app.command()
def resume(target: Target, ledger: Ledger = None, json: AsJson = False) -> None:
    """Finish a release that is paid for and was left unfinished; nothing is paid or drawn again.

    Example: tallytree resume out
    """
    made = finish(target, ledger)
    if json:
        print_json({"out": str(target), "kind": made.kind, "statement": made.manifest["privacy"]["statement"]})
    else:
        say(f"Finished {target}. Nothing was paid.")
        say(made.manifest["privacy"]["statement"])


@app.command(name="re-estimate")
def re_estimate(
    folder: Annotated[Path, typer.Argument(help="Folder of a release.", metavar="DIR")],
    out: Annotated[Path, typer.Option(help="Folder to write the new estimate to.", metavar="DIR")],
    norm: Annotated[int | None, typer.Option(help="1 or 2: another distance for the isotonic fits.")] = None,
    merge: Annotated[str | None, typer.Option(help="weighted or average: another way to merge matched groups.")] = None,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Estimate a saved release again from its raw measurements, at no privacy cost.

    Choosing among re-estimates by looking at the truth would be a leak.

    Example: tallytree re-estimate out --norm 2 --out again
    """
    choices = {name: value for name, value in (("norm", norm), ("merge", merge)) if value is not None}
    made = estimate_again(folder, **choices)
    made.verify().raise_if_failed()
    made.save(out, overwrite=overwrite)
    if json:
        print_json({"out": str(out), "kind": made.kind, "estimated_from": made.manifest["estimated_from"]})
    else:
        say(f"Estimated {folder} again, to {out}. Nothing was paid; no confidential data were read.")


@app.command()
def clean(target: Target, json: AsJson = False) -> None:
    """Drop what an unfinished release has left. What was paid for it stays paid, and its answers are lost.

    Example: tallytree clean out
    """
    note = drop(target)
    if json:
        print_json({"target": str(target), "state": note.get("state"), "receipt": note.get("receipt")})
    else:
        say(
            f"Dropped the unfinished release to {target}."
            + (" What it paid stays paid." if note.get("receipt") else "")
        )

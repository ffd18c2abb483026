"""``tallytree resume``, ``clean``, ``re-estimate`` and ``sign``: what is done with a paid release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import declared
from tallytree.cli.once import OncePerOption
from tallytree.cli.options import AsJson
from tallytree.errors import RequestError
from tallytree.kinds.verbs import clean as drop
from tallytree.kinds.verbs import re_estimate as estimate_again
from tallytree.kinds.verbs import resume as finish
from tallytree.kinds.verbs import sign as sign_release
from tallytree.ledger.signing import fingerprint, new_key_pair
from tallytree.options.groups import LedgerOptions, Output

Ledger = Annotated[str | None, declared(LedgerOptions, "ledger")]
Overwrite = Annotated[bool, declared(Output, "overwrite")]
Target = Annotated[
    Path, typer.Argument(help="Folder that the release was to be written to.", metavar="DIR")
]


@app.command(cls=OncePerOption)
def resume(target: Target, ledger: Ledger = None, json: AsJson = False) -> None:
    """Finish a release that is paid for and was left unfinished; nothing is paid or drawn again.

    Example: tallytree resume out
    """
    made = finish(target, ledger)
    if json:
        print_json(
            {
                "out": str(target),
                "kind": made.kind,
                "statement": made.manifest["privacy"]["statement"],
            }
        )
    else:
        say(f"Finished {target}. Nothing was paid.")
        say(made.manifest["privacy"]["statement"])


@app.command(name="re-estimate", cls=OncePerOption)
def re_estimate(
    folder: Annotated[Path, typer.Argument(help="Folder of a release.", metavar="DIR")],
    out: Annotated[Path, typer.Option(help="Folder to write the new estimate to.", metavar="DIR")],
    norm: Annotated[
        int | None, typer.Option(help="1 or 2: another distance for the isotonic fits.")
    ] = None,
    merge: Annotated[
        str | None, typer.Option(help="weighted or average: another way to merge matched groups.")
    ] = None,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Estimate a saved release again from its raw measurements, at no privacy cost.

    Choosing among re-estimates by looking at the truth would be a leak.

    Example: tallytree re-estimate out --norm 2 --out again
    """
    choices = {
        name: value for name, value in (("norm", norm), ("merge", merge)) if value is not None
    }
    made = estimate_again(folder, **choices)
    made.verify().raise_if_failed()
    made.save(out, overwrite=overwrite)
    if json:
        print_json(
            {"out": str(out), "kind": made.kind, "estimated_from": made.manifest["estimated_from"]}
        )
    else:
        say(
            f"Estimated {folder} again, to {out}. Nothing was paid; no confidential data were read."
        )


@app.command(cls=OncePerOption)
def clean(target: Target, json: AsJson = False) -> None:
    """Drop what an unfinished release has left. What was paid for it stays paid, and its answers
    are lost.

    Example: tallytree clean out
    """
    note = drop(target)
    if json:
        print_json(
            {"target": str(target), "state": note.get("state"), "receipt": note.get("receipt")}
        )
    else:
        say(
            f"Dropped the unfinished release to {target}."
            + (" What it paid stays paid." if note.get("receipt") else "")
        )


@app.command(cls=OncePerOption)
def sign(
    folder: Annotated[
        Path | None, typer.Argument(help="Folder of a release.", metavar="DIR")
    ] = None,
    private_key: Annotated[
        Path | None, typer.Option(help="Your Ed25519 key, PEM, kept secret.", metavar="FILE")
    ] = None,
    new_key: Annotated[
        Path | None,
        typer.Option(help="Make a key pair: FILE, and FILE.pub to hand out.", metavar="FILE"),
    ] = None,
    name: Annotated[
        str, typer.Option(help="What the release is called; the folder's name when left out.")
    ] = "",
    address: Annotated[
        str, typer.Option(help="Where readers find the release.", metavar="URL")
    ] = "",
    json: AsJson = False,
) -> None:
    """Sign a release that verifies, so that whoever has your public key can check that it is yours
    and unchanged.

    The password of a protected key is read from TALLYTREE_KEY_PASSWORD.

    Example: tallytree sign --new-key office.pem
    Example: tallytree sign out --private-key office.pem
    """
    told = os.environ.get("TALLYTREE_KEY_PASSWORD")
    password = told.encode() if told else None
    if (new_key is None) == (folder is None) or (folder is None) != (private_key is None):
        raise RequestError(
            "Say what to sign and with which key (DIR --private-key FILE), or make a pair "
            "(--new-key FILE)."
        )
    if new_key is not None:
        public = new_key_pair(new_key, password)
        facts = {
            "private_key": str(new_key),
            "public_key": str(public),
            "key_sha256": fingerprint(public),
        }
        shown = f"Keep {new_key} secret; hand out {public}, and its fingerprint by another way: {facts['key_sha256']}"
    else:
        assert folder is not None
        assert private_key is not None
        signature = sign_release(folder, private_key, password=password, name=name, address=address)
        facts = {
            "signature": str(signature),
            "key_sha256": fingerprint(private_key, password, private=True),
        }
        shown = f"Signed {folder}. To check it: tallytree verify {folder} --public-key FILE, with the key {facts['key_sha256']}"
    if json:
        print_json(facts)
    else:
        say(shown)

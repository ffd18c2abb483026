"""``tallytree resume``, ``clean``, ``re-estimate`` and ``sign``: what is done with a paid release."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.errors import RequestError
from tallytree.options.finishing import AgainOptions, ResumeOptions, SignOptions
from tallytree.options.groups import Printing

FolderOrNone = Annotated[Path | None, typer.Argument(help="Folder of a release.", metavar="DIR")]
Target = Annotated[
    Path, typer.Argument(help="Folder that the release was to be written to.", metavar="DIR")
]


@command(app)
def resume(target: Target, how: ResumeOptions) -> None:
    """Finish a release that is paid for and was left unfinished; nothing is paid or drawn again.

    Example: tallytree resume out
    """
    from tallytree.kinds.verbs import resume as finish

    made = finish(target, None if how.ledger is None else str(how.ledger))
    if how.json:
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


@command(app, "re-estimate", needs=("out",))
def re_estimate(folder: Folder, how: AgainOptions) -> None:
    """Estimate a saved release again from its raw measurements, at no privacy cost.

    Choosing among re-estimates by looking at the truth would be a leak.

    Example: tallytree re-estimate out --norm 2 --out again
    """
    from tallytree.kinds.verbs import re_estimate as estimate_again

    choices = {
        name: value
        for name, value in (("norm", how.norm), ("merge", how.merge))
        if value is not None
    }
    made = estimate_again(folder, **choices)
    made.verify().raise_if_failed()
    made.save(str(how.out), overwrite=how.overwrite)
    if how.json:
        print_json(
            {"out": how.out, "kind": made.kind, "estimated_from": made.manifest["estimated_from"]}
        )
    else:
        say(
            f"Estimated {folder} again, to {how.out}. Nothing was paid; no confidential data were read."
        )


@command(app)
def clean(target: Target, how: Printing) -> None:
    """Drop what an unfinished release has left. What was paid for it stays paid, and its answers
    are lost.

    Example: tallytree clean out
    """
    from tallytree.kinds.verbs import clean as drop

    note = drop(target)
    if how.json:
        print_json(
            {"target": str(target), "state": note.get("state"), "receipt": note.get("receipt")}
        )
    else:
        say(
            f"Dropped the unfinished release to {target}."
            + (" What it paid stays paid." if note.get("receipt") else "")
        )


@command(app)
def sign(how: SignOptions, folder: FolderOrNone = None) -> None:
    """Sign a release that verifies, so that whoever has your public key can check that it is yours
    and unchanged.

    The password of a protected key is read from TALLYTREE_KEY_PASSWORD.

    Example: tallytree sign --new-key office.pem
    Example: tallytree sign out --private-key office.pem
    """
    from tallytree.kinds.verbs import sign as sign_release
    from tallytree.ledger.signing import fingerprint, new_key_pair

    told = os.environ.get("TALLYTREE_KEY_PASSWORD")
    password = told.encode() if told else None
    private_key, new_key = how.private_key, how.new_key
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
        signature = sign_release(
            folder, private_key, password=password, name=how.name, address=how.address
        )
        facts = {
            "signature": str(signature),
            "key_sha256": fingerprint(private_key, password, private=True),
        }
        shown = f"Signed {folder}. To check it: tallytree verify {folder} --public-key FILE, with the key {facts['key_sha256']}"
    if how.json:
        print_json(facts)
    else:
        say(shown)

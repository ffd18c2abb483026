"""Options of commands that finish, check, sign or estimate a release again, and of the demo."""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.options.base import Options, option
from tallytree.options.choices import Merge, Norm, names
from tallytree.options.groups import LedgerOptions, Printing
from tallytree.options.panels import OUTPUT, PLAN, PRIVACY, QUESTION, TABLE
from tallytree.options.text import whole_or_word
from tallytree.privacy.budget import Exact


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VerifyOptions(Printing, panel=QUESTION):
    """What is checked.

    Attributes
    ----------
    privacy
        Recompute the privacy loss instead.
    public_key
        File of the key with which the release must be signed.
    name
        The name or the address that it must have been signed under.
    """

    privacy: bool = option(False, help="Recompute the privacy loss from the manifest instead.")
    public_key: str | None = option(
        None,
        help="The release must be signed with this key: an Ed25519 key, PEM.",
        metavar="FILE",
    )
    name: str | None = option(
        None, help="The release must be signed under this name or address.", metavar="TEXT"
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ResumeOptions(LedgerOptions, Printing, panel=PRIVACY):
    """Which ledger paid for an unfinished release."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AgainOptions(Printing, panel=OUTPUT):
    """How a saved release is estimated again.

    Attributes
    ----------
    out, overwrite
        Folder to write to, and whether a release there is replaced.
    norm, merge
        Other choices of the estimate.
    """

    out: str | None = option(None, help="Folder to write the new estimate to.", metavar="DIR")
    overwrite: bool = option(False, help="Replace a release that is already there.")
    norm: Norm | None = option(
        None,
        help="1 or 2: another distance for the isotonic fits.",
        text=whole_or_word,
        metavar="NUMBER",
        panel=PLAN,
    )
    merge: Merge | None = option(
        None, help=f"{names(Merge)}: another way to merge matched groups.", panel=PLAN
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SignOptions(Printing, panel=PRIVACY):
    """With which key a release is signed, and as what.

    Attributes
    ----------
    private_key
        File of the key.
    new_key
        File for a new one.
    name, address
        What the release is called, and where readers find it.
    """

    private_key: str | None = option(
        None, help="Your Ed25519 key, PEM, kept secret.", metavar="FILE"
    )
    new_key: str | None = option(
        None, help="Make a key pair: FILE, and FILE.pub to hand out.", metavar="FILE"
    )
    name: str = option(
        "", help="What the release is called; the folder's name when left out.", panel=OUTPUT
    )
    address: str = option("", help="Where readers find the release.", metavar="URL", panel=OUTPUT)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DemoOptions(Options, panel=OUTPUT):
    """What the demo makes.

    Attributes
    ----------
    out, overwrite
        Folder for the data and the release, and whether an earlier demo there is replaced.
    households
        Number of synthetic households.
    epsilon
        Privacy loss.
    """

    out: str = option("tallytree-demo", help="Folder for the data and the release.")
    overwrite: bool = option(False, help="Replace an earlier demo.")
    households: int = option(
        1_000_000, help="Number of synthetic households.", least=10_000, panel=TABLE
    )
    epsilon: Exact = option("1.0", help="Privacy loss.", panel=PRIVACY)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReproduceOptions(Options, panel=OUTPUT):
    """How a paper is reproduced.

    Attributes
    ----------
    data
        Folder of the real data sets.
    quick
        Fewer runs and smaller data.
    json, plots
        File of every cell, and folder of the figures.
    """

    data: str | None = option(
        None,
        help="Folder of the real data sets; the built-in generator otherwise.",
        metavar="DIR",
        panel=TABLE,
    )
    quick: bool = option(False, help="Fewer runs and smaller data.", panel=PLAN)
    json: str | None = option(None, help="Write every cell to this file.", metavar="FILE")
    plots: str | None = option(
        None, help="Write the figures as Vega-Lite files into this folder.", metavar="DIR"
    )

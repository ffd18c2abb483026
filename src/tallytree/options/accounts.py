"""Options of the commands about budget accounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallytree.model.unit import ENTITY
from tallytree.options.base import option
from tallytree.options.choices import HistoryFormat, names
from tallytree.options.groups import Printing
from tallytree.options.panels import OUTPUT, PRIVACY, QUESTION
from tallytree.privacy.budget import Exact


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AccountOptions(Printing, panel=PRIVACY):
    """Which account is meant.

    Attributes
    ----------
    ledger, dataset
        Address of the ledger, and the name of the account in it.
    """

    ledger: str = option(
        "ledger.db",
        help="A file (ledger.db) or postgresql://host/database.",
        envvar="TALLYTREE_LEDGER",
    )
    dataset: str | None = option(None, help="Name of the account.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AccountTerms(AccountOptions, panel=PRIVACY):
    """What an account says of its data.

    Attributes
    ----------
    unit
        Name of what is protected.
    parts, units_in_one_part
        Public column and labels whose parts are paid for side by side, and that all rows of a unit
        lie in one of them.
    """

    unit: str = option(
        ENTITY,
        help="Name of what is protected: of one row (person) or of the column that names it; or "
        "any row: entity.",
    )
    parts: str | None = option(
        None,
        help="Public column and its labels, whose parts are paid for side by side: "
        "state=Georgia,Ohio or state=@FILE.",
        metavar="COLUMN=LABEL,LABEL",
    )
    units_in_one_part: bool = option(False, help="Declare that all rows of a unit lie in one part.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CreateOptions(AccountTerms, panel=PRIVACY):
    """What a new account may spend.

    Attributes
    ----------
    epsilon, rho
        Its total, under pure or zero-concentrated differential privacy.
    note
        One line to remember it by.
    """

    epsilon: Exact | None = option(
        None,
        help="Total under pure differential privacy, such as 3 or 1/3.",
        needed="unless with --rho",
    )
    rho: Exact | None = option(None, help="Total under zero-concentrated differential privacy.")
    note: str = option("", help="One line to remember the account by.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StatusOptions(AccountOptions, panel=PRIVACY):
    """Which accounts are shown.

    Attributes
    ----------
    dataset
        One account; all of them where left out.
    """

    dataset: str | None = option(None, help="One account; all of them when left out.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class HistoryOptions(AccountOptions, panel=OUTPUT):
    """How a history is printed.

    Attributes
    ----------
    layout
        As a table, or with all fields.
    """

    layout: HistoryFormat = option(
        "table", help=f"How to print it: {names(HistoryFormat)}.", flag="format"
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CloseOptions(AccountOptions, panel=PRIVACY):
    """Why an account is closed.

    Attributes
    ----------
    reason
        One line, recorded.
    """

    reason: str = option("", help="One line, recorded.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AuditOptions(AccountOptions, panel=QUESTION):
    """What is checked.

    Attributes
    ----------
    exported
        An exported history, checked instead of an account.
    releases
        Folders of releases that the account paid for.
    heads
        Heads that were noted before, outside the ledger.
    """

    exported: str | None = option(
        None, help="Check an exported JSON history instead.", flag="history", metavar="FILE"
    )
    releases: Sequence[str] = option(
        (),
        help="A release paid for from it. Repeatable.",
        flag="release",
        metavar="DIR",
        repeats=True,
    )
    heads: Sequence[str] = option(
        (),
        help="A head that was noted before, outside the ledger. Repeatable.",
        flag="head",
        metavar="HASH",
        repeats=True,
    )

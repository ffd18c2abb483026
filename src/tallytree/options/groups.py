"""Options that kinds of releases share: how much privacy, who pays, which table, what is protected,
where to write.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from tallytree.errors import RequestError
from tallytree.model.part import Part, part_from
from tallytree.model.place import Place
from tallytree.model.unit import ENTITY
from tallytree.options.base import Options, option
from tallytree.options.choices import Neighbours, Nonnegative, names
from tallytree.options.panels import EXPERTS, OUTPUT, PRIVACY, TABLE
from tallytree.privacy.budget import Budget, Definition, Exact, budget_for_replacing, stated_budget


@runtime_checkable
class PaidFrom(Protocol):
    """A ready payment, see :class:`tallytree.ledger.payment.Payment`."""

    @property
    def ledger(self) -> str: ...  # noqa: D102
    @property
    def dataset(self) -> str: ...  # noqa: D102
    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def part(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Loss(Options, panel=PRIVACY):
    """How much privacy a release may cost.

    Attributes
    ----------
    epsilon, rho, definition
        The privacy loss: ``epsilon`` for ``definition="pure"``, ``rho`` for ``"zcdp"``. Taken
        exactly: 0.1 is one tenth.
    delta
        With ``epsilon``: (ε, δ)-differential privacy, kept by Gaussian noise under a zCDP budget
        that is found for it.
    neighbours
        Whose loss is stated: that of adding or removing one unit (``"add-remove"``), or of
        replacing one by another (``"replace"``), for which half of ε, or a quarter of ρ, is spent.
        A ledger counts what is spent.
    """

    epsilon: Exact | None = option(
        None, help="Privacy loss, for example 1.0 or 1/3.", needed="unless with --rho"
    )
    rho: Exact | None = option(None, help="Privacy loss under --definition zcdp.", rare=True)
    delta: Exact | None = option(
        None, help="With --epsilon: approximate privacy, by Gaussian noise, such as 1e-9."
    )
    definition: Definition = option("pure", help="pure or zcdp.", rare=True)
    neighbours: Neighbours = option(
        "add-remove",
        help=f"The stated loss is that of {names(Neighbours)}, of one unit; replace spends half.",
        rare=True,
    )

    def loss(self) -> Budget:
        """The stated loss as an exact budget."""
        stated = stated_budget(self.epsilon, self.rho, self.definition, self.delta)
        return stated if self.neighbours == "add-remove" else budget_for_replacing(stated)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LedgerOptions(Options, panel=PRIVACY):
    """Where the budget accounts are.

    Attributes
    ----------
    ledger
        Address of the ledger that pays before any noise is drawn: a file or ``postgresql://…``. A
        :class:`~tallytree.ledger.payment.Payment` names the account too.
    """

    ledger: str | PaidFrom | None = option(
        None,
        help="Ledger that pays: a file (ledger.db) or postgresql://host/database.",
        envvar="TALLYTREE_LEDGER",
        recorded=False,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Paying(LedgerOptions, panel=PRIVACY):
    """Which account pays, and for which part of its data.

    Attributes
    ----------
    dataset
        Name of the account.
    idempotency_key
        Names this release: a run that is repeated under the same key neither pays nor draws noise
        again.
    part
        Read only the rows of ``COLUMN=VALUE``, one of the parts that the account lists; they are
        paid for side by side.
    """

    dataset: str | None = option(
        None, help="Account in the ledger, see: tallytree ledger create.", recorded=False
    )
    idempotency_key: str | None = option(
        None,
        help="Names this release: a repeated run under the same key neither pays nor draws again.",
        recorded=False,
        rare=True,
    )
    part: str | None = option(
        None,
        help="Read only the rows of COLUMN=VALUE, a part of the account's; parts are paid for in "
        "parallel.",
        recorded=False,
        rare=True,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Releasing(Loss, Paying, panel=EXPERTS):
    """What every release is asked.

    Attributes
    ----------
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    tell_owner
        Print to standard error, once the release is paid for, how many values outside public bounds
        were changed or left out. These numbers are exact: they are confidential, ε does not cover
        them, and they go nowhere else.
    """

    insecure_seed: int | None = option(
        None, help="Experiments only: repeatable noise, NOT PRIVATE.", recorded=False
    )
    tell_owner: bool = option(
        False,
        help="Print here, once it is paid, how many values outside bounds were changed or left "
        "out: CONFIDENTIAL.",
        recorded=False,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SourceOptions(Options, panel=TABLE):
    """Which table of a database, which rows, and how text is written.

    Attributes
    ----------
    table, sql
        Which table of the database (``schema.table`` for one of another schema), or which query on
        it.
    encoding
        How the characters of a CSV file are written, such as ``windows-1252``. By default it is
        found: UTF-8, UTF-16, or with a warning windows-1252.
    where
        ``"COLUMN=VALUE"``: read only the rows whose column has exactly this label, as if the table
        had no others.
    """

    table: str | None = option(None, help="Table to read from a database URL.")
    sql: str | None = option(None, help="Query to read from a database URL.", rare=True)
    encoding: str | None = option(
        None, help="How a CSV file is written, such as windows-1252; found by default.", rare=True
    )
    where: str | Part | None = option(
        None, help="Read only the rows whose column has exactly this label.", metavar="COLUMN=VALUE"
    )

    def place(self) -> Place:
        """Which rows of the source are meant, and how its text is written."""
        return Place(self.table, self.sql, self.encoding)


def rows_to_read(where: str | Part | None, paying: Paying) -> Part | None:
    """The rows that a release reads: those of the part that is paid for, or those of ``where``."""
    part = paying.ledger.part if isinstance(paying.ledger, PaidFrom) else paying.part
    if part is None:
        return part_from(where)
    if where is not None and part_from(where) != part_from(part):
        raise RequestError(
            "part= (--part) reads its rows itself; leave out --where, or pay in full and leave out "
            "--part."
        )
    return part_from(part, "part")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnitOptions(Options, panel=PRIVACY):
    """What is protected.

    Attributes
    ----------
    unit, contributions
        ``unit``: of a table, the column that names the protected unit, of whose rows at most
        ``contributions`` are then counted. Without it, how many rows one protected unit has at
        most, which is taken on trust.
    """

    unit: str = option(
        ENTITY, help="What is protected: entity (one row), or the column that names a person."
    )
    contributions: int = option(
        1, help="Rows that count of one --unit, or that one unit has at most.", least=1
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NamedUnit(UnitOptions, panel=PRIVACY):
    """What is protected, and what it is called.

    Attributes
    ----------
    entity
        What one protected unit is called in the privacy statement.
    """

    entity: str = option(
        "row", help="What one protected unit is called (person, trip …).", rare=True
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Printing(Options, panel=OUTPUT):
    """How a command prints.

    Attributes
    ----------
    json
        One JSON object and nothing else.
    """

    json: bool = option(False, help="Print one JSON object.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Output(Printing, panel=OUTPUT):
    """Where a command writes a release.

    Attributes
    ----------
    out
        Folder to write to.
    overwrite
        Replace a release that is already there.
    no_noisy
        Leave the raw noisy measurements out.
    pad_time
        A command that succeeds ends at a multiple of so many seconds after its start, so that
        whoever sees when it ends learns little from how long it took.
    """

    out: str | None = option(None, help="Folder to write the release to.", needed="")
    overwrite: bool = option(False, help="Replace a release that is already there.")
    no_noisy: bool = option(False, help="Leave the raw noisy measurements out.", rare=True)
    pad_time: int | None = option(
        None,
        help="End at a multiple of so many seconds after the start, so that time tells little.",
        least=1,
        recorded=False,
        rare=True,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Saving(Options):
    """The keywords by which a function writes its release to a folder.

    Attributes
    ----------
    out, overwrite, noisy
        The folder to write, claimed before anything is paid; whether a release there is replaced;
        and whether the raw noisy measurements are written too. What a run that died has paid for
        and measured is kept beside the folder: the same call, or :func:`tallytree.resume`, goes on
        with it and pays nothing more. Without ``out`` a release lives in memory, and what was paid
        is lost with the process.
    """

    out: str | Path | None = None
    overwrite: bool = False
    noisy: bool = True


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class FinishOptions(Options, panel=EXPERTS):
    """What is published.

    Attributes
    ----------
    nonnegative, integers
        What is published: see :data:`tallytree.options.choices.Nonnegative` (True is
        ``"top-down"``, False ``"no"``), in whole numbers or not. ``nonnegative="no",
        integers=False`` publishes the unbiased estimates.
    """

    nonnegative: Nonnegative | bool = option("top-down", help=f"{names(Nonnegative)}.")
    integers: bool = option(
        True, help="Publish real numbers instead of whole ones.", flag="real", flips=True
    )

"""``tallytree ledger``: budget accounts of data sets."""

from __future__ import annotations

import json as json_text
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.cli.app import app, print_json, print_table, say
from tallytree.cli.once import OncePerOption
from tallytree.cli.options import AsJson
from tallytree.errors import InputError, RequestError, VerificationError
from tallytree.ledger.accounts import (
    close_account,
    create_account,
    list_accounts,
    migrate_account,
    read_history,
)
from tallytree.ledger.chain import (
    SYMBOL,
    Account,
    Entry,
    Receipt,
    history_as_csv,
    history_as_json,
    history_from_json,
    rational_text,
    summarise,
)
from tallytree.ledger.checks import check_heads, check_history, check_manifest
from tallytree.ledger.terms import Parts
from tallytree.model.unit import ENTITY
from tallytree.privacy.budget import Budget, exact, plain_number
from tallytree.storage.folder import lasting_digest

ledger_app = typer.Typer(no_args_is_help=True, help="Budget accounts of data sets.")
app.add_typer(ledger_app, name="ledger")

LedgerOption = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="TALLYTREE_LEDGER",
        help="A file (ledger.db) or postgresql://host/database.",
    ),
]
DatasetOption = Annotated[str, typer.Option("--dataset", help="Name of the account.")]

UnitOption = Annotated[
    str,
    typer.Option(
        help="Name of what is protected: of one row (person) or of the column that names it; or "
        "any row: entity."
    ),
]
PartsOption = Annotated[
    str | None,
    typer.Option(
        help="Public column and its labels, whose parts are paid for side by side: "
        "state=Georgia,Ohio or state=@FILE.",
        metavar="COLUMN=LABEL,LABEL",
    ),
]
OnePartOption = Annotated[
    bool,
    typer.Option("--units-in-one-part", help="Declare that all rows of a unit lie in one part."),
]

DEFAULT_LEDGER = "ledger.db"


class HistoryFormat(StrEnum):
    """How a history is printed."""

    table = "table"
    json = "json"
    csv = "csv"


@ledger_app.command(cls=OncePerOption)
def create(
    dataset: DatasetOption,
    ledger: LedgerOption = DEFAULT_LEDGER,
    epsilon: Annotated[
        str | None, typer.Option(help="Total under pure differential privacy, such as 3 or 1/3.")
    ] = None,
    rho: Annotated[
        str | None, typer.Option(help="Total under zero-concentrated differential privacy.")
    ] = None,
    unit: UnitOption = ENTITY,
    parts: PartsOption = None,
    units_in_one_part: OnePartOption = False,
    note: Annotated[str, typer.Option(help="One line to remember the account by.")] = "",
    json: AsJson = False,
) -> None:
    """Open the account of a data set, with a total that releases may spend.

    Example: tallytree ledger create --ledger ledger.db --dataset census --epsilon 3
    """
    if (epsilon is None) == (rho is None):
        raise RequestError("Give the account's total as either --epsilon or --rho.")
    budget = (
        Budget("pure", exact(epsilon, "epsilon"))
        if rho is None
        else Budget("zcdp", exact(rho, "rho"))
    )
    fixed = _parts(parts, units_in_one_part)
    _print_account(
        create_account(ledger, dataset, budget, unit=unit, parts=fixed, note=note), json=json
    )


@ledger_app.command(cls=OncePerOption)
def migrate(
    dataset: DatasetOption,
    ledger: LedgerOption = DEFAULT_LEDGER,
    unit: UnitOption = ENTITY,
    parts: PartsOption = None,
    units_in_one_part: OnePartOption = False,
    json: AsJson = False,
) -> None:
    """Fix what an account left open, once: its parts, the name of its unit.

    Example: tallytree ledger migrate --ledger ledger.db --dataset census --parts state=Georgia,Ohio
    """
    fixed = _parts(parts, units_in_one_part)
    _print_account(migrate_account(ledger, dataset, unit=unit, parts=fixed), json=json)


def _parts(text: str | None, units_in_one_part: bool) -> Parts | None:
    """Parts written COLUMN=LABEL,LABEL,… or COLUMN=@FILE with one label per line."""
    if text is None:
        if units_in_one_part:
            raise RequestError("--units-in-one-part goes with --parts.")
        return None
    column, _, listed = text.partition("=")
    if listed.startswith("@"):
        labels = _read_text(Path(listed[1:])).splitlines()
    else:
        labels = [label.strip() for label in listed.split(",")]
    if not column or not all(labels):
        raise RequestError(
            f"--parts is {text!r}; write it as COLUMN=LABEL,LABEL,…, such as state=Georgia,Ohio."
        )
    return Parts(column, tuple(labels), units_in_one_part)


@ledger_app.command(cls=OncePerOption)
def status(
    ledger: LedgerOption = DEFAULT_LEDGER,
    dataset: Annotated[
        str | None, typer.Option("--dataset", help="One account; all of them when left out.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what each account has left.

    Example: tallytree ledger status --ledger ledger.db
    """
    if dataset is not None:
        _print_account(summarise(read_history(ledger, dataset)), json=json)
        return
    accounts = list_accounts(ledger)
    if json:
        print_json({"accounts": [account_as_json(account) for account in accounts]})
    else:
        _print_accounts(accounts)


@ledger_app.command(cls=OncePerOption)
def history(
    dataset: DatasetOption,
    ledger: LedgerOption = DEFAULT_LEDGER,
    layout: Annotated[
        HistoryFormat, typer.Option("--format", help="How to print it.")
    ] = HistoryFormat.table,
    json: AsJson = False,
) -> None:
    """Show every row of an account; JSON and CSV hold all fields, so that anyone can check the hash
    chain.

    Example: tallytree ledger history --ledger ledger.db --dataset census --format csv
    """
    rows = read_history(ledger, dataset)
    if json or layout is HistoryFormat.json:
        typer.echo(history_as_json(rows))
    elif layout is HistoryFormat.csv:
        typer.echo(history_as_csv(rows), nl=False)
    else:
        _print_history(rows)


@ledger_app.command(cls=OncePerOption)
def close(
    dataset: DatasetOption,
    ledger: LedgerOption = DEFAULT_LEDGER,
    reason: Annotated[str, typer.Option(help="One line, recorded.")] = "",
    json: AsJson = False,
) -> None:
    """Refuse every later reservation. What was spent stays on record.

    Example: tallytree ledger close --ledger ledger.db --dataset census
    """
    _print_account(close_account(ledger, dataset, reason=reason), json=json)


@ledger_app.command(cls=OncePerOption)
def verify(
    dataset: Annotated[str | None, typer.Option("--dataset", help="Name of the account.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    exported: Annotated[
        Path | None, typer.Option("--history", help="Check an exported JSON history instead.")
    ] = None,
    releases: Annotated[
        list[Path] | None, typer.Option("--release", help="A release paid for from it.")
    ] = None,
    heads: Annotated[
        list[str] | None,
        typer.Option(
            "--head", help="A head that was noted before, outside the ledger.", metavar="HASH"
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Check an account: hash chain, sums, and that it still holds what the given releases paid and
    their manifests say.

    It shows the head, the hash of the last row. Who notes it elsewhere sees later, with --head,
    that no row up to it was taken back.

    Example: tallytree ledger verify --ledger ledger.db --dataset census --release out
    """
    if (dataset is None) == (exported is None):
        raise RequestError(
            "Name the account with --dataset, or give an exported history with --history."
        )
    rows = (
        history_from_json(_read_text(exported)) if exported else read_history(ledger, dataset or "")
    )
    failures = check_history(rows) + check_heads(rows, heads or [])
    for folder in releases or []:
        receipt, digest = _receipt_of(folder)
        failures += [f"{folder}: {failure}" for failure in check_manifest(rows, receipt, digest)]
    if json:
        head = rows[-1].hash if rows else ""
        print_json({"ok": not failures, "rows": len(rows), "head": head, "failures": failures})
    if failures:
        raise VerificationError(
            f"The account does not hold together: {'; '.join(failures)}.", tuple(failures)
        )
    if not json:
        say(f"{len(rows)} rows hold together. Head, to be noted elsewhere: {rows[-1].hash}")


def _receipt_of(folder: Path) -> tuple[Receipt, str]:
    """What a release recorded of its payment, and the digest by which the ledger knows it."""
    manifest = _read_bytes(folder / "manifest.json")
    try:
        receipt = json_text.loads(manifest)["privacy"]["ledger"]
        if not all(
            isinstance(name, str) and isinstance(value, str | int)
            for name, value in receipt.items()
        ):
            raise TypeError
        if not {"dataset", "position", "key", "hash"} <= set(receipt):
            raise KeyError
        return dict(receipt), lasting_digest(manifest)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        raise InputError(
            f"The manifest of {folder} names no ledger; it was not paid for from one."
        ) from None


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise InputError(f"{path} cannot be read.") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InputError(f"{path} cannot be read.") from None


def account_as_json(account: Account) -> dict[str, Any]:
    """An account for ``--json``: exact amounts as text, and ``remaining_decimal`` rounded down."""
    return {
        "dataset": account.dataset,
        "definition": account.definition,
        "unit": account.unit,
        "total": rational_text(account.total),
        "spent": rational_text(account.spent),
        "remaining": rational_text(account.remaining),
        "remaining_decimal": float(Fraction(account.remaining * 10**9 // 1, 10**9)),
        "closed": account.closed,
        "reservations": account.n_reservations,
        "unfinished": list(account.unfinished),
        "measured": list(account.measured),
        "parts": None if account.parts is None else account.parts.to_json(),
        "created_at": account.created_at,
        "head": account.head,
    }


def _print_account(account: Account, *, json: bool) -> None:
    if json:
        print_json(account_as_json(account))
    else:
        _print_accounts([account])


def _print_accounts(accounts: list[Account]) -> None:
    rows = []
    for account in accounts:
        symbol = SYMBOL[account.definition]
        amounts = [
            f"{symbol} = {plain_number(amount)}"
            for amount in (account.total, account.spent, account.remaining)
        ]
        state = "closed" if account.closed else "open"
        counts = [account.n_reservations, len(account.unfinished)]
        parts = (
            ""
            if account.parts is None
            else f"{len(account.parts.labels)} of {account.parts.column}"
        )
        rows.append([account.dataset, account.unit, parts, *amounts, *counts, state])
    columns = [
        "dataset",
        "unit",
        "parts",
        "total",
        "spent",
        "remaining",
        "reservations",
        "not reported",
        "state",
    ]
    print_table("Accounts", columns, rows)


def _print_history(history: list[Entry]) -> None:
    rows = []
    for entry in history:
        amount = (
            f"{SYMBOL[entry.definition]} = {plain_number(entry.amount)}" if entry.amount else ""
        )
        part = f"{entry.part_of} = {entry.part}" if entry.part_of else ""
        spent = f"{SYMBOL[history[0].definition]} = {plain_number(entry.spent)}"
        words = [entry.key or "", part, entry.purpose, entry.hash[:12]]
        rows.append([entry.position, entry.recorded_at[:19], entry.kind, amount, spent, *words])
    columns = ["row", "recorded (UTC)", "kind", "amount", "spent", "key", "part", "purpose", "hash"]
    print_table(f"Account {history[0].dataset}", columns, rows)

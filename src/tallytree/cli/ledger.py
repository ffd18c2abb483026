"""``tallytree ledger``: budget accounts of data sets."""

from __future__ import annotations

import json as json_text
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from tallytree.cli.app import app, print_json, print_table, say
from tallytree.cli.commands import command
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
from tallytree.options.accounts import (
    AccountTerms,
    AuditOptions,
    CloseOptions,
    CreateOptions,
    HistoryOptions,
    StatusOptions,
)
from tallytree.privacy.budget import Budget, exact, plain_number
from tallytree.storage.folder import lasting_digest

ledger_app = typer.Typer(no_args_is_help=True, help="Budget accounts of data sets.")
app.add_typer(ledger_app, name="ledger")


@command(ledger_app, needs=("dataset",))
def create(how: CreateOptions) -> None:
    """Open the account of a data set, with a total that releases may spend.

    Example: tallytree ledger create --ledger ledger.db --dataset census --epsilon 3
    """
    if (how.epsilon is None) == (how.rho is None):
        raise RequestError("Give the account's total as either --epsilon or --rho.")
    budget = (
        Budget("pure", exact(how.epsilon, "epsilon"))
        if how.rho is None
        else Budget("zcdp", exact(how.rho, "rho"))
    )
    fixed = _parts(how.parts, how.units_in_one_part)
    account = create_account(
        how.ledger, str(how.dataset), budget, unit=how.unit, parts=fixed, note=how.note
    )
    _print_account(account, json=how.json)


@command(ledger_app, needs=("dataset",))
def migrate(how: AccountTerms) -> None:
    """Fix what an account left open, once: its parts, the name of its unit.

    Example: tallytree ledger migrate --ledger ledger.db --dataset census --parts
        state=Georgia,Ohio
    """
    fixed = _parts(how.parts, how.units_in_one_part)
    account = migrate_account(how.ledger, str(how.dataset), unit=how.unit, parts=fixed)
    _print_account(account, json=how.json)


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


@command(ledger_app)
def status(how: StatusOptions) -> None:
    """Show what each account has left.

    Example: tallytree ledger status --ledger ledger.db
    """
    if how.dataset is not None:
        _print_account(summarise(read_history(how.ledger, how.dataset)), json=how.json)
        return
    accounts = list_accounts(how.ledger)
    if how.json:
        print_json({"accounts": [account_as_json(account) for account in accounts]})
    else:
        _print_accounts(accounts)


@command(ledger_app, needs=("dataset",))
def history(how: HistoryOptions) -> None:
    """Show every row of an account; JSON and CSV hold all fields, so that anyone can check the hash
    chain.

    Example: tallytree ledger history --ledger ledger.db --dataset census --format csv
    """
    rows = read_history(how.ledger, str(how.dataset))
    if how.json or how.layout == "json":
        typer.echo(history_as_json(rows))
    elif how.layout == "csv":
        typer.echo(history_as_csv(rows), nl=False)
    else:
        _print_history(rows)


@command(ledger_app, needs=("dataset",))
def close(how: CloseOptions) -> None:
    """Refuse every later reservation. What was spent stays on record.

    Example: tallytree ledger close --ledger ledger.db --dataset census
    """
    account = close_account(how.ledger, str(how.dataset), reason=how.reason)
    _print_account(account, json=how.json)


@command(ledger_app)
def verify(how: AuditOptions) -> None:
    """Check an account: hash chain, sums, and that it still holds what the given releases paid and
    their manifests say.

    It shows the head, the hash of the last row. Who notes it elsewhere sees later, with --head,
    that no row up to it was taken back.

    Example: tallytree ledger verify --ledger ledger.db --dataset census --release out
    """
    if (how.dataset is None) == (how.exported is None):
        raise RequestError(
            "Name the account with --dataset, or give an exported history with --history."
        )
    rows = (
        read_history(how.ledger, str(how.dataset))
        if how.exported is None
        else history_from_json(_read_text(Path(how.exported)))
    )
    failures = check_history(rows) + check_heads(rows, how.heads)
    for folder in how.releases:
        receipt, digest = _receipt_of(Path(folder))
        failures += [f"{folder}: {failure}" for failure in check_manifest(rows, receipt, digest)]
    if how.json:
        head = rows[-1].hash if rows else ""
        print_json({"ok": not failures, "rows": len(rows), "head": head, "failures": failures})
    if failures:
        raise VerificationError(
            f"The account does not hold together: {'; '.join(failures)}.", tuple(failures)
        )
    if not how.json:
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

"""How far a stream has come: noted before the rows of further steps are drawn.

A stream is paid for once, so a folder that is put back from a copy could draw the steps that are
published a second time, each time at the loss of the whole stream. The ledger therefore notes the
step that a run leaves. A step is left once: by one run, which finds its own note when it goes on
after it died, and by no other. A folder that is at a step that was left is behind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from tallytree.errors import RequestError
from tallytree.ledger.accounts import find_reservation
from tallytree.ledger.chain import Entry, Receipt
from tallytree.ledger.rows import read_rows, refuse_edited, standing, write_row
from tallytree.ledger.tables import ledger_transaction
from tallytree.model.nested import parse_json


@dataclass(frozen=True)
class Advance:
    """A run that draws the rows of further steps of a stream.

    Attributes
    ----------
    left, reached
        How many steps are released, and how many will be.
    run
        A random name of the run, which its work folder keeps.
    rows
        SHA-256 of the noisy rows that are released.
    """

    left: int
    reached: int
    run: str
    rows: str

    def key(self, receipt: Receipt) -> str:
        """The key of its row: no two rows of a kind have the same."""
        return f"{self.left} {receipt['key']}"

    def detail(self) -> str:
        """What its row holds beside key and digest."""
        return json.dumps({"reached": self.reached, "run": self.run}, sort_keys=True)


def refuse_behind(ledger: str, receipt: Receipt, advance: Advance) -> None:
    """Refuse to go on from a step that another run has left."""
    with ledger_transaction(ledger) as opened:
        rows = read_rows(opened, str(receipt["dataset"]), kind="advance", key=advance.key(receipt))
    refuse_edited(rows)
    for row in rows:
        _refuse_other_run(row, advance)


def note_advance(ledger: str, receipt: Receipt, advance: Advance) -> Entry:
    """Note that a run leaves a step, before it draws anything; repeating the note changes nothing."""
    find_reservation(ledger, receipt)
    with ledger_transaction(ledger, account=str(receipt["dataset"])) as opened:
        account = standing(opened, str(receipt["dataset"]), advance.key(receipt))
        if account.advanced is not None:
            _refuse_other_run(account.advanced, advance)
            return account.advanced
        row = replace(
            account.next_row("advance"),
            key=advance.key(receipt),
            digest=advance.rows,
            detail=advance.detail(),
        )
        return write_row(opened, row)


def _refuse_other_run(row: Entry, advance: Advance) -> None:
    noted = parse_json(row.detail)
    if noted["run"] != advance.run or row.digest != advance.rows:
        raise RequestError(
            f"This stream is at step {advance.left:,}, and the ledger noted on {row.recorded_at} "
            f"that it went on from there to step {noted['reached']:,}: the folder was copied or "
            "put back. Its steps would be drawn a second time, at the loss of the whole stream. "
            "Go on in the folder that is further, or start another stream, which is paid for anew."
        )

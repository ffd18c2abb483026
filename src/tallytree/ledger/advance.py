"""How far a stream has come: noted before the rows of further steps are drawn.

A stream is paid for once, so a folder that is put back from a copy could draw the steps that are
published a second time, each time at the loss of the whole stream. The ledger therefore notes the
step that a run leaves. A step is left once: by one run, which finds its own note when it goes on
after it died, and by no other. A folder that is at a step that was left is behind.

A run that died may have been copied with its work folder, so that two go on as one run, each with
noise of its own. The ledger therefore notes the digest of the answers too, before anything follows
from them: the first that has them all is the run, and the answers of a copy are refused.
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
    receipt
        What the manifest records of the payment of the stream.
    """

    left: int
    reached: int
    run: str
    rows: str
    receipt: Receipt

    @property
    def key(self) -> str:
        """The key of its rows: no two rows of a kind have the same."""
        return key_of_step(self.left, self.receipt)

    def detail(self) -> str:
        """What its row holds beside key and digest."""
        return json.dumps({"reached": self.reached, "run": self.run}, sort_keys=True)


def key_of_step(left: int, receipt: Receipt) -> str:
    """The key under which a step that is left is noted."""
    return f"{left} {receipt['key']}"


def refuse_behind(ledger: str, advance: Advance) -> None:
    """Refuse to go on from a step that another run has left."""
    with ledger_transaction(ledger) as opened:
        dataset = str(advance.receipt["dataset"])
        rows = read_rows(opened, dataset, kind="advance", key=advance.key)
    refuse_edited(rows)
    for row in rows:
        _refuse_other_run(row, advance)


def note_advance(ledger: str, advance: Advance) -> str:
    """Note that a run leaves a step, before it draws anything; repeating the note changes nothing.

    Returns the digest of its answers where the ledger has noted that all are there.
    """
    find_reservation(ledger, advance.receipt)
    dataset = str(advance.receipt["dataset"])
    with ledger_transaction(ledger, account=dataset) as opened:
        account = standing(opened, dataset, advance.key)
        if account.advanced is not None:
            _refuse_other_run(account.advanced, advance)
            return "" if account.measured is None else account.measured.digest
        row = replace(
            account.next_row("advance"),
            key=advance.key,
            digest=advance.rows,
            detail=advance.detail(),
        )
        write_row(opened, row)
        return ""


def note_rows(ledger: str, receipt: Receipt, left: int, *, digest: str) -> None:
    """Note that the answers of a run that left a step are kept, by their SHA-256; repeating the
    note changes nothing, and other answers are refused.
    """
    dataset, key = str(receipt["dataset"]), key_of_step(left, receipt)
    with ledger_transaction(ledger, account=dataset) as opened:
        account = standing(opened, dataset, key)
        if account.advanced is None:
            raise RequestError(
                f"The ledger has not noted that the stream {receipt['key']!r} left step {left:,}."
            )
        found = account.measured
        if found is None:
            write_row(opened, replace(account.next_row("measured"), key=key, digest=digest))
        elif found.digest != digest:
            raise RequestError(
                f"The stream {receipt['key']!r} went on from step {left:,} with other noise: this "
                "folder is a copy. Go on in the folder that is further."
            )


def _refuse_other_run(row: Entry, advance: Advance) -> None:
    noted = parse_json(row.detail)
    if noted["run"] != advance.run or row.digest != advance.rows:
        raise RequestError(
            f"This stream is at step {advance.left:,}, and the ledger noted on {row.recorded_at} "
            f"that it went on from there to step {noted['reached']:,}: the folder was copied or "
            "put back. Its steps would be drawn a second time, at the loss of the whole stream. "
            "Go on in the folder that is further, or start another stream, which is paid for anew."
        )

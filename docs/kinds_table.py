"""Write the table of kinds and verbs, ``docs/reference/kinds.md``, from the program itself.

Run with: python -m docs.kinds_table
"""

from __future__ import annotations

from pathlib import Path

from tallytree.kinds.table import KINDS
from tallytree.releases.kind import table_of_verbs

PAGE = Path(__file__).parent / "reference" / "kinds.md"
HEAD = """# Every verb for every kind

A release is of one *kind*. What can be done with it goes through one table, so that a verb either works for a kind or says
why it does not. This page is written from that table by `make docs`.

`verify`, `verify --privacy`, `save`, `load`, `report` and the ledger work for every kind. `query` names the parts of a question
that the kind answers; all others are refused with this list.
"""


def page() -> str:
    """The whole page: one table, kinds across and verbs down."""
    kinds = table_of_verbs(KINDS)
    head = ["", *(row["kind"] for row in kinds)]
    lines = [_line(head), _line(["---"] * len(head))]
    lines += [_line([verb, *(row[verb] for row in kinds)]) for verb in kinds[0] if verb != "kind"]
    return "\n".join([HEAD, *lines, ""])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

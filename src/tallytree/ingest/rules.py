"""Rules that options declare: from their words, from a file of lines, or from a table of possible
combinations.
"""

from __future__ import annotations

from pathlib import Path

from tallytree.errors import InputError
from tallytree.ingest.outside_tables import public_rows
from tallytree.model.rules import Rule, rule_from
from tallytree.options.tables import CellOptions

TABLES = (".csv", ".parquet")


def rules_of(options: CellOptions) -> tuple[Rule, ...]:
    """All rules, each once."""
    told = [options.rule] if isinstance(options.rule, (str, Rule)) else list(options.rule)
    found = [rule_from(one) for one in told]
    if options.rules is not None:
        found += rules_from_file(options.rules)
    return tuple(dict.fromkeys(found))


def rules_from_file(file: str | Path) -> list[Rule]:
    """The rules of a file: one per line, after ``#`` what is for people alone; or of a table."""
    path = Path(file)
    if path.suffix.lower() in TABLES:
        rows = public_rows(path)
        if not rows.num_columns or not rows.num_rows:
            raise InputError(f"{path} lists no combination; each row is one that is possible.")
        columns = [rows[name].to_pylist() for name in rows.column_names]
        return [Rule("", tuple(rows.column_names), tuple(dict.fromkeys(zip(*columns))))]
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The file of rules {path} cannot be read: {error}.") from None
    texts = [line.partition("#")[0].strip() for line in lines]
    return [Rule(text) for text in texts if text]

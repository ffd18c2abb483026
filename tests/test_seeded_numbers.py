"""The same seed gives the same numbers as ever: whoever moves code about, moves no number.

``fixtures/seeded_numbers.json`` has the SHA-256 of what each case publishes, its table and its raw
measurements. Where numbers are meant to change, say so in the changelog and write it anew: ``python
-m tests.test_seeded_numbers``.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.seeded_cases import FAMILIES, Case

STORED = Path(__file__).parent / "fixtures" / "seeded_numbers.json"
# Columns of published tables; others may come later without changing a number.
COLUMNS = re.compile(
    "level|region|size|value|degree|count|estimate|standard_error|std_error|low|high|node|parent|depth|leaf|variance|(first|end)_.+"
)
# Real numbers differ in their last digits between processors. Ties of rounding, such as 100.0625 to
# six digits, would let that show, so all are moved a little first; what ought to be 0 is called 0.
ASIDE, NOTHING = 1 + 3.7e-9, 1e-9


def as_text(value: Any) -> str:
    """Whole numbers, names and truth values exactly, real numbers to six significant digits."""
    if isinstance(value, float):
        return f"{value * ASIDE:.6g}" if abs(value) > NOTHING else "0"
    return str(value)


def digest(table: pa.Table, columns: list[str]) -> str:
    """SHA-256 of the values of some columns, column by column."""
    lines = (
        f"{name}: " + " ".join(map(as_text, table[name].to_pylist())) for name in sorted(columns)
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def digests(name: str, made: Any) -> Iterator[tuple[str, str]]:
    """What to compare of one case, by name."""
    table = made if isinstance(made, pa.Table) else made.table()
    yield (
        name,
        digest(table, [column for column in table.column_names if COLUMNS.fullmatch(column)]),
    )
    if made is not table:
        with tempfile.TemporaryDirectory() as folder:
            saved = made.save(Path(folder) / "out")
            yield f"{name}: measurements", digest(pq.read_table(saved / "noisy.parquet"), ["value"])


def computed(family: Callable[[], Iterator[Case]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, make in family():
        assert name not in found, name
        found |= digests(name, make())
    return found


def stored() -> dict[str, dict[str, str]]:
    return json.loads(STORED.read_text(encoding="utf-8"))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_seeds_give_the_numbers_they_always_gave(family: Callable[[], Iterator[Case]]) -> None:
    found, wanted = computed(family), stored()[family.__name__]
    assert sorted(found) == sorted(wanted)
    differing = [name for name in wanted if found[name] != wanted[name]]
    assert not differing, f"{len(differing)} of {len(wanted)} differ: {'; '.join(differing)}"


def test_every_family_is_stored() -> None:
    assert list(stored()) == [family.__name__ for family in FAMILIES]


def test_digests_see_a_change() -> None:
    table = pa.table({"count": [1, 2, 3], "estimate": [1.0, 2.5, 100.0625], "later": [0, 0, 0]})
    own = dict(digests("own", table))
    assert dict(digests("own", table.set_column(0, "count", pa.array([1, 2, 4])))) != own
    assert (
        dict(digests("own", table.set_column(1, "estimate", pa.array([1.0, 2.5001, 100.0625]))))
        != own
    )
    assert (
        dict(
            digests("own", table.set_column(1, "estimate", pa.array([1.0, 2.5, 100.0625 - 1e-13])))
        )
        == own
    )
    assert dict(digests("own", table.drop_columns(["later"]))) == own


def main() -> None:
    """Write the file anew."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = (
            folder  # strategies are optimised anew, not found in the user's cache
        )
        found = {family.__name__: computed(family) for family in FAMILIES}
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

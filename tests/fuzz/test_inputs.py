"""Tables that nobody should have written: an InputError with one line, or counts, never a
traceback.
"""

import random
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tests.fuzz.watching import SECRET, TIMES, complaint, seeded

N_ROWS = 5
MOMENT = datetime(2020, 2, 29, 12)
COLUMNS: list[Callable[[random.Random], Any]] = [
    lambda dice: pa.array([dice.choice([1, 2, 3]) for _ in range(N_ROWS)]),
    lambda dice: pa.array(
        [dice.choice([-1, 0, 2**62, None]) for _ in range(N_ROWS)], type=pa.int64()
    ),
    lambda dice: pa.array([2**64 - 1, 0, 1, 2, 3], type=pa.uint64()),
    lambda dice: pa.array([dice.choice("aäß/%\x00 ") for _ in range(N_ROWS)]),
    lambda dice: pa.array([dice.choice(["", None, "a", "A", "a "]) for _ in range(N_ROWS)]),
    lambda dice: pa.array(
        [dice.choice([0.5, 1.0, float("nan"), float("inf"), -0.0]) for _ in range(N_ROWS)]
    ),
    lambda dice: pa.array(np.array([1, 2, 3, 4, 5], dtype=np.float16)),
    lambda dice: pa.array([Decimal("1.50"), Decimal(2), Decimal(3), Decimal(4), Decimal(5)]),
    lambda dice: pa.array([Decimal(10) ** 60] * N_ROWS, type=pa.decimal256(70, 2)),
    lambda dice: pa.array([timedelta(seconds=s) for s in range(N_ROWS)]),
    lambda dice: pa.array([date(2020, 1, d + 1) for d in range(N_ROWS)]),
    lambda dice: pa.array([MOMENT] * N_ROWS),
    lambda dice: pa.array([MOMENT] * N_ROWS, type=pa.timestamp("ns", tz="UTC")),
    lambda dice: pa.array([time(1)] * N_ROWS),
    lambda dice: pa.array([True, False, None, True, False]),
    lambda dice: pa.array([b"\xff\x00"] * N_ROWS),
    lambda dice: pa.array([b"\xff\x00"] * N_ROWS, type=pa.binary(2)),
    lambda dice: pa.array([[1, 2]] * N_ROWS),
    lambda dice: pa.array([{"a": 1}] * N_ROWS),
    lambda dice: pa.nulls(N_ROWS),
    lambda dice: pa.nulls(N_ROWS, pa.string()),
    lambda dice: pa.array(["x", "y", None, "x", "y"]).dictionary_encode(),
    lambda dice: pa.array([[("k", 1)]] * N_ROWS, type=pa.map_(pa.string(), pa.int64())),
    lambda dice: pa.array([1, 2, 3, 4, 5], type=pa.int8()),
    lambda dice: pa.array(["1", "2", "x", "4", "5"], type=pa.large_string()),
    lambda dice: pa.array([SECRET, dice.choice([SECRET, None, "1"]), f"{SECRET}'", "1", "2"]),
]
NAMES = ["group", "level", "size", "x", "y", "", "a b", 'q"uote', "ä", "a;b", "rowid", "select"]


def table(dice: random.Random) -> pa.Table:
    names = dice.sample(NAMES, dice.choice((2, 3, 4, 5)))
    if dice.random() < 0.1:
        names[-1] = names[0]
    columns = [dice.choice(COLUMNS)(dice) for _ in names]
    made = pa.Table.from_arrays(columns, names=names)
    return made.slice(0, 0) if dice.random() < 0.05 else made


def csv(dice: random.Random) -> bytes:
    cells = [
        "a",
        "1",
        "2",
        "-3",
        "0.5",
        "",
        '"',
        '"a',
        "NaN",
        "1e400",
        "x" * 300,
        "2020-01-01",
        "\x00",
        "ä",
        "true",
        "1,5",
        "'",
        SECRET,
        f"1{SECRET}",
    ]
    separator, end = (
        dice.choice([",", ",", ",", ";", "\t", "|"]),
        dice.choice(["\n", "\r\n", "\r", "\n\n"]),
    )
    n = dice.choice((1, 2, 3))
    names = [dice.choice(["group", "level", "size", "x", "group "]) for _ in range(n)]
    rows = [
        [dice.choice(cells) for _ in range(n if dice.random() < 0.9 else n + 1)]
        for _ in range(dice.choice((0, 1, 5)))
    ]
    text = end.join(separator.join(row) for row in [names, *rows]).encode(
        dice.choice(["utf-8", "utf-16", "latin-1"])
    )
    if dice.random() < 0.2:
        place = dice.randrange(len(text) + 1)
        text = text[:place] + dice.randbytes(4) + text[place:]
    return text


def parquet(dice: random.Random, place: Path) -> bytes:
    try:
        pq.write_table(table(dice), place)
    except pa.ArrowException:
        return b"PAR1"
    whole = bytearray(place.read_bytes())
    for _ in range(dice.choice((0, 1, 5))):
        whole[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
    return bytes(whole[: dice.choice((len(whole), len(whole), dice.randrange(len(whole))))])


def uses(source: Any, names: list[str], dice: random.Random) -> Callable[[], Any]:
    one, two = dice.choice([*names, "group"]), dice.choice([*names, "level"])
    loss: dict[str, Any] = {"epsilon": 1, "insecure_seed": 1}
    ways: list[Callable[[], Any]] = [
        lambda: tt.read(source, group=one, levels=[two], public="groups"),
        lambda: tt.read(source, group=one, levels=[], public="regions"),
        lambda: tt.read(source, levels=[one], size=two, public="groups"),
        lambda: tt.read(source, group=one, quantity=two, max_quantity=3, public="groups"),
        lambda: tt.read(source, levels=[], size=one, count=two, public="groups"),
        lambda: tt.read(source, group=one, unit=two, contributions=2, public="regions"),
        lambda: tt.read(source, group=one, where=f"{two}=1", public="groups"),
        lambda: tt.histogram(source, column=one, bins=4, bounds=(0, 4), outside="clip", **loss),
        lambda: tt.degrees(source, column=one, public="groups", **loss),
        lambda: tt.degrees(source, edges=(one, two), public="nodes", **loss),
        lambda: tt.spatial(
            source,
            columns=(one, two),
            box=((0, 4), (0, 4)),
            resolution=(2, 2),
            outside="drop",
            **loss,
        ),
    ]
    return dice.choice(ways)


@pytest.mark.filterwarnings("ignore")
def test_malformed_inputs_are_never_a_traceback(tmp_path: Path) -> None:
    dice = seeded(22)
    found: dict[str, str] = {}
    for number in range(60 * TIMES):
        source: Any = table(dice)
        names = source.column_names
        what = str(source.schema)
        match dice.randrange(4):
            case 0:
                file = tmp_path / "input.csv"
                file.write_bytes(csv(dice))
                what, source, names = (
                    repr(file.read_bytes()),
                    str(file),
                    ["group", "level", "size", "x"],
                )
            case 1:
                file = tmp_path / "input.parquet"
                file.write_bytes(parquet(dice, tmp_path / "whole.parquet"))
                source = str(file)
        wrong = complaint(uses(source, names, dice))
        if wrong:
            found.setdefault(wrong[-200:], f"{number}: {what}\n{wrong}")
    assert not found, f"{len(found)} kinds of traceback:\n\n" + "\n\n".join(found.values())


def test_a_damaged_footer_is_one_sentence(tmp_path: Path) -> None:
    """Arrow calls some damage an error of the system, with a line break in its words."""
    file = tmp_path / "points.parquet"
    pq.write_table(pa.table({"x": [0.5], "y": [0.5]}), file)
    whole = file.read_bytes()
    for damaged in (
        _after(whole, b"ARROW:schema", b"/" * 60),
        whole[:-60] + b"\x0e" * 20 + whole[-40:],
    ):
        file.write_bytes(damaged)
        with pytest.raises((OSError, pa.ArrowException)):
            pq.read_schema(file)

        def use() -> object:
            box = ((0, 1), (0, 1))
            return tt.spatial(str(file), columns=("x", "y"), box=box, epsilon=1, insecure_seed=1)

        assert complaint(use) is None


def _after(whole: bytes, mark: bytes, other: bytes) -> bytes:
    """The same with other bytes a little after a mark."""
    place = whole.index(mark) + len(mark) + 24
    return whole[:place] + other + whole[place + len(other) :]

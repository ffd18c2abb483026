"""Configs with anything in them: an exit code and a message, never a traceback."""

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallytree.cli import load_commands
from tallytree.options.base import fields_of, spelling_of
from tallytree.options.degrees import DegreesOptions
from tallytree.options.group_sizes import GroupSizesOutput, ReleaseOptions
from tallytree.options.histogram import HistogramOptions
from tallytree.options.maps import MapOptions
from tallytree.options.reading import EngineOptions, ReadOptions
from tests.fuzz.watching import TIMES, command_complaint, seeded

TABLE = {
    "household": [1, 1, 2, 3],
    "state": ["GA", "GA", "GA", "NY"],
    "x": [0.5, 1.5, 2.5, 3.5],
    "y": [1, 2, 3, 4],
}
WHOLE: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "release": (
        (GroupSizesOutput, ReadOptions, EngineOptions, ReleaseOptions),
        {
            "public": "groups",
            "group": "household",
            "levels": ["state"],
            "epsilon": 1,
            "mechanism": "matching",
        },
    ),
    "histogram": ((HistogramOptions,), {"column": "y", "bounds": [0, 8], "bins": 8, "epsilon": 1}),
    "degrees": ((DegreesOptions,), {"column": "household", "public": "groups", "epsilon": 1}),
    "spatial": (
        (MapOptions,),
        {"columns": ["x", "y"], "box": [[0, 4], [0, 5]], "resolution": [4, 4], "epsilon": 1},
    ),
}
STRANGE = [
    "true", "false", "0", "-1", "1", "7", "9223372036854775807", "1e308", "-inf", "nan", "inf", "0.1", '""', '"x"', '"1/0"',
    '"1/3"', '"1e999999999"', '"auto"', '"groups"', '"pure"', '"zcdp"', '"a,b"', '"\\u0000"', '"state"', '"household=1"', "[]",
    "[1]", '["a"]', '[["a", 1], {b = 2}]', "[1, 2.5]", "[[0, 4], [0, 5]]", "{}", "{a = 1}", "1979-05-27", "07:32:00",
    "1979-05-27T07:32:00Z", '"' + "a" * 5000 + '"', "1" * 400, "0x10", "[" * 50 + "]" * 50,
]  # fmt: skip


def toml_of(value: Any) -> str:
    return json.dumps(value)


def config(command: str, dice: random.Random) -> bytes:
    """A config that would do, with one to three lines changed, and now and then a byte."""
    groups, whole = WHOLE[command]
    lines = {"source": '"people.parquet"', "out": '"out"', "overwrite": "true"}
    lines |= {name: toml_of(value) for name, value in whole.items()}
    known = [
        spelling_of(field).flag or field.name for group in groups for field in fields_of(group)
    ]
    known = [name for name in known if name not in ("ledger", "engine", "master", "intervals")]
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3))):
        match dice.randrange(6):
            case 0:
                lines.pop(dice.choice(list(lines)))
            case 1:
                lines[dice.choice(["x", "epsilonn", "", "a.b", "source"])] = dice.choice(STRANGE)
            case _:
                lines[dice.choice(known).replace("_", dice.choice("_-"))] = dice.choice(STRANGE)
    text = "\n".join(f"{name} = {value}" for name, value in lines.items()).encode()
    if dice.random() < 0.2:
        place = dice.randrange(len(text))
        text = dice.choice(
            [
                text[:place],
                text[:place] + dice.randbytes(3) + text[place:],
                dice.randbytes(50),
                b"[" * 5000,
            ]
        )
    return text


def test_configs_are_never_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(WHOLE) <= set(load_commands())
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table(TABLE), "people.parquet")
    dice, found, released = seeded(21), {}, 0
    for number in range(30 * TIMES):
        command = dice.choice(list(WHOLE))
        text = config(command, dice)
        Path("config.toml").write_bytes(text)
        wrong = command_complaint([command, "config.toml"], capsys)
        released += Path("out", "manifest.json").exists()
        if wrong:
            found.setdefault(
                wrong[-300:], f"{number} {command}: {text.decode(errors='replace')}\n{wrong}"
            )
    assert released
    assert not found, f"{len(found)} kinds of traceback:\n\n" + "\n\n".join(found.values())

"""Seeded damage to release folders: what a careless editor, a bad disk or a forger who knows the
format might leave.
"""

import copy
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.forging import forge

Route = tuple[str | int, ...]

# What may stand where something else is expected: other types, and numbers that no machine can hold
# or work out.
STRANGE: list[Any] = [
    None, True, False, -1, 0, 1, 7, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, 5e-324, "", " ", "x", "0",
    "1/0", "-1", "1/3", "1e999999999", "1e-999999999", "9" * 5000, "nan", "inf", "\x00", "\ud7ff", "\N{SNOWMAN}", "../../x",
    "group-sizes", "pure", "zcdp", "a" * 10_000, [], {}, [None], [[]], {"": None}, {"name": 1}, [1, "two", 3.0], [2**70, {}],
]  # fmt: skip


def deep(levels: int) -> Any:
    nested: Any = "deep"
    for _ in range(levels):
        nested = [nested] if levels % 2 else {"a": nested}
    return nested


def routes(value: Any, before: Route = ()) -> Iterator[Route]:
    """The way to every value, through dictionaries and lists."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, part in inner:
        yield (*before, key)
        yield from routes(part, (*before, key))


def place_of(facts: Any, route: Route) -> Any:
    for step in route[:-1]:
        facts = facts[step]
    return facts


def edited(manifest: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """A copy of a manifest with one to three values replaced, removed, doubled or exchanged."""
    changed = copy.deepcopy(manifest)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        ways = list(routes(changed))
        if not ways:
            break
        route = dice.choice(ways)
        place, key = place_of(changed, route), route[-1]
        match dice.randrange(8):
            case 0:
                del place[key]
            case 1:
                other = dice.choice(ways)
                place[key] = copy.deepcopy(place_of(changed, other)[other[-1]])
            case 2:
                place[key] = deep(dice.choice((3, 50, 200)))
            case 3 if isinstance(place, list):
                place.insert(int(key), copy.deepcopy(place[key]))
            case 3:
                place[f"{key} "] = place.pop(key)
            case 4 if isinstance(place[key], int):
                place[key] += dice.choice((-1, 1))
            case 5 if isinstance(place[key], str):
                place[key] = place[key][:-1] + dice.choice("0129/ e-x")
            case _:
                place[key] = copy.deepcopy(dice.choice(STRANGE))
    return changed


def spoiled_table(table: pa.Table, dice: random.Random) -> pa.Table:
    """A table with a column of another type, nulls, numbers out of range, rows doubled, gone or in
    another order ….
    """
    names = table.column_names
    number = dice.randrange(len(names))
    name, column = names[number], table.column(number)
    n_rows = table.num_rows
    match dice.randrange(12):
        case 0:
            return table.drop_columns([name])
        case 1:
            return table.rename_columns([f"{n}x" if n == name else n for n in names])
        case 2:
            return table.slice(0, dice.randrange(n_rows + 1))
        case 3:
            return pa.concat_tables([table, table.slice(dice.randrange(n_rows + 1))])
        case 4:
            order = list(range(n_rows))
            dice.shuffle(order)
            return table.take(pa.array(order, type=pa.int64()))
        case 5:
            return table.set_column(number, name, pa.nulls(n_rows, column.type))
        case 6:
            return table.append_column(dice.choice(["more", name]), column)
        case 7:
            return table.set_column(
                number, name, pa.array([dice.choice("aß/") for _ in range(n_rows)])
            )
        case 8:
            return table.set_column(
                number,
                name,
                pa.array([dice.choice([0.5, float("nan"), -1.0]) for _ in range(n_rows)]),
            )
        case 9:
            return table.set_column(
                number, name, pa.array([[1, 2]] * n_rows, type=pa.list_(pa.int64()))
            )
        case 10:
            return table.slice(0, 0)
        case _:
            values = [
                dice.choice([-1, 0, 1, 2**62, -(2**63), 2**63 - 1, 10**9]) for _ in range(n_rows)
            ]
            return table.set_column(number, name, pa.array(values, type=pa.int64()))


def spoil(folder: Path, dice: random.Random) -> str:
    """Damage a folder in place; what was done."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    tables = sorted(file.name for file in folder.glob("*.parquet"))
    ways: list[Callable[[], str]] = [
        lambda: _edit(folder, manifest, dice, sealed=True),
        lambda: _edit(folder, manifest, dice, sealed=True),
        lambda: _edit(folder, manifest, dice, sealed=False),
        lambda: _edit_table(folder, manifest, dice.choice(tables), dice),
        lambda: _edit_table(folder, manifest, dice.choice(tables), dice),
        lambda: _spoil_bytes(folder / dice.choice(["manifest.json", *tables]), dice),
        lambda: _spoil_bytes(folder / dice.choice(["manifest.json", *tables]), dice),
        lambda: _replace_file(folder / dice.choice(["manifest.json", *tables]), dice),
        lambda: _add_file(folder, dice),
    ]
    return dice.choice(ways)()


def _edit(folder: Path, manifest: dict[str, Any], dice: random.Random, *, sealed: bool) -> str:
    changed = edited(manifest, dice)
    _write(folder, changed, sealed=sealed)
    return "manifest edited" + (", with a checksum that fits" if sealed else "")


def _write(folder: Path, manifest: dict[str, Any], *, sealed: bool) -> None:
    try:
        if sealed:
            forge(folder, manifest)
            return
    except ValueError:
        pass
    text = json.dumps(manifest, ensure_ascii=False)
    (folder / "manifest.json").write_text(text, encoding="utf-8", errors="surrogatepass")


def _edit_table(folder: Path, manifest: dict[str, Any], name: str, dice: random.Random) -> str:
    import hashlib

    spoiled = spoiled_table(pq.read_table(folder / name), dice)
    pq.write_table(spoiled, folder / name)
    if dice.random() < 0.8:
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        manifest["files"][name] = {"rows": spoiled.num_rows, "sha256": digest}
        _write(folder, manifest, sealed=True)
    return f"{name} is another table"


def _spoil_bytes(file: Path, dice: random.Random) -> str:
    whole = bytearray(file.read_bytes())
    match dice.randrange(5):
        case 0:
            whole = whole[: dice.randrange(len(whole))]
        case 1:
            start = dice.randrange(len(whole))
            whole[start : start + 40] = dice.randbytes(min(40, len(whole) - start))
        case 2:
            whole[dice.randrange(len(whole))] ^= 1 << dice.randrange(8)
        case 3:
            whole += dice.randbytes(10)
        case _:
            whole = bytearray(
                dice.choice(
                    [b"", b"{}", b"[" * 100_000, b"PAR1", b"\xff\xfe", b'{"a":' * 5000, b"null"]
                )
            )
    file.write_bytes(bytes(whole))
    return f"bytes of {file.name} changed"


def _replace_file(file: Path, dice: random.Random) -> str:
    file.unlink()
    match dice.randrange(4):
        case 0:
            return f"{file.name} is gone"
        case 1:
            file.mkdir()
            return f"{file.name} is a folder"
        case 2:
            file.symlink_to(file)
            return f"{file.name} is a link to itself"
        case _:
            file.symlink_to("/nowhere/at/all")
            return f"{file.name} is a link to nowhere"


def _add_file(folder: Path, dice: random.Random) -> str:
    name = dice.choice(
        [
            "notes.txt",
            "counts2.parquet",
            "manifest.sig",
            "ä\N{SNOWMAN}",
            ".hidden",
            "strategy.parquet",
        ]
    )
    (folder / name).write_bytes(dice.choice([b"", b"{}", dice.randbytes(100)]))
    return f"{name} was added"


def copied(folder: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target))

"""A manifest from which any one key is missing fails verification with one line, never a traceback."""

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import VerificationError
from tests.forging import forge
from tests.fuzz.small import KINDS_MADE, MADE

Route = tuple[str | int, ...]


def routes(value: Any, before: Route = ()) -> Iterator[Route]:
    """The way to every key, through dictionaries and lists."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*before, key)
            yield from routes(inner, (*before, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from routes(inner, (*before, number))


def without(manifest: dict[str, Any], route: Route) -> dict[str, Any]:
    """A copy of a manifest less one key."""
    less = copy.deepcopy(manifest)
    place: Any = less
    for step in route[:-1]:
        place = place[step]
    del place[route[-1]]
    return less


def test_routes_reach_every_key() -> None:
    manifest = {"a": {"b": 1}, "c": [{"d": 1}, {"d": 2, "e": [[{"f": 1}]]}, {"d": 3}]}
    assert [*routes(manifest)] == [
        ("a",), ("a", "b"), ("c",), ("c", 0, "d"), ("c", 1, "d"), ("c", 1, "e"), ("c", 1, "e", 0, 0, "f"), ("c", 2, "d"),
    ]  # fmt: skip
    assert without(manifest, ("c", 1, "e", 0, 0, "f"))["c"][1] == {"d": 2, "e": [[{}]]}


def complaints(folder: Path) -> list[str]:
    """What verification finds wrong, a line for each; a VerificationError is one."""
    try:
        return [check.name for check in tt.verify(folder).checks if not check.passed]
    except VerificationError as error:
        return str(error).splitlines()


# Whoever cuts a key out of a manifest has made its checksum fit. Versions of libraries are told,
# not relied on.
def is_told(route: Route) -> bool:
    return route[0] == "versions" and len(route) == 2


STREAMS: dict[str, dict[str, Any]] = {
    "tree, no horizon": {"epsilon": 1},
    "square root": {
        "rho": "1/2",
        "definition": "zcdp",
        "horizon": 30,
        "start": "2025-01-06",
        "every": "week",
    },
}


def whole(folder: Path) -> dict[str, Any]:
    """The manifest of a folder without its checksum."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return {key: value for key, value in manifest.items() if key != "sha256"}


# Whole groups state more than other releases of their kind.
MORE = ("group-sizes of whole groups",)
CASES: dict[str, Callable[[], Any]] = {
    **{name: partial(make, insecure_seed=1) for name, make in KINDS_MADE.items()},
    **{name: partial(MADE[name], insecure_seed=1) for name in MORE},
    **{
        f"stream, {name}": partial(tt.stream, counts=[3, 1, 4, 1, 5], **how)
        for name, how in STREAMS.items()
    },
}


@pytest.mark.parametrize("name", CASES)
def test_any_missing_key_is_one_complaint(name: str, tmp_path: Path) -> None:
    folder = CASES[name]().save(tmp_path / "out")
    assert not complaints(folder)
    manifest = whole(folder)
    wrong = []
    for route in routes(manifest):
        forge(folder, without(manifest, route))
        try:
            found = complaints(folder)
        except Exception as error:  # a traceback, or a message with another exit code
            found = [type(error).__name__, "in place of a failed check"]
        if len(found) != 1 and not is_told(route):
            wrong.append(f"{'.'.join(map(str, route))} ({' '.join(found) or 'nothing noticed'})")
    assert not wrong, f"{len(wrong)} missing keys: {'; '.join(wrong)}"


@pytest.mark.parametrize("kind", KINDS_MADE)
def test_the_command_line_ends_with_1_and_one_line(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = KINDS_MADE[kind](insecure_seed=1).save(tmp_path / "out")
    manifest = whole(folder)
    wrong = []
    for key in manifest:
        forge(folder, without(manifest, (key,)))
        try:
            with pytest.raises(SystemExit) as end:
                main(["verify", str(folder)])
        except Exception as error:  # what a user would see as a traceback
            wrong.append(f"{key}: {type(error).__name__}")
            continue
        told = capsys.readouterr()
        problems = [
            line for line in (told.out + told.err).splitlines() if not line.startswith("ok ")
        ]
        if end.value.code != 1 or len(problems) != 1:
            wrong.append(f"{key}: exit code {end.value.code}, {len(problems)} lines")
    assert not wrong, "; ".join(wrong)

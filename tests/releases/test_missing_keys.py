"""A manifest from which any one key is missing fails verification with one line, never a traceback."""

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.errors import VerificationError
from tests.forging import forge
from tests.releases.older_folders import EXPECTED, FORMAT_1, run

Route = tuple[str | int, ...]
ONE_PER_KIND = list({facts["kind"]: name for name, facts in EXPECTED.items()}.values())


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


# Nothing else in a folder of format 1 vouches for these: a receipt is optional, and a view that is
# the default may go unsaid. Folders of the present format carry a checksum of their manifest, so
# there no key can go.
NOT_VOUCHED_FOR = {("privacy", "ledger"), ("request", "view")}


@pytest.mark.parametrize("name", EXPECTED)
def test_any_missing_key_is_one_complaint(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FORMAT_1 / name, tmp_path / name))
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    assert not complaints(folder)
    wrong = []
    for route in routes(manifest):
        file.write_text(json.dumps(without(manifest, route)), encoding="utf-8")
        try:
            found = complaints(folder)
        except Exception as error:  # a traceback, or a message with another exit code
            found = [type(error).__name__, "in place of a failed check"]
        if len(found) != 1 and (found or route not in NOT_VOUCHED_FOR):
            wrong.append(f"{'.'.join(map(str, route))} ({' '.join(found) or 'nothing noticed'})")
    assert not wrong, f"{len(wrong)} missing keys: {'; '.join(wrong)}"


# A stream is younger than format 1. Its manifest carries a checksum; here somebody who cuts a key
# out has made it fit.
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


@pytest.mark.parametrize("name", STREAMS)
def test_any_missing_key_of_a_stream_is_one_complaint(name: str, tmp_path: Path) -> None:
    folder = tt.stream(counts=[3, 1, 4, 1, 5], **STREAMS[name]).save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    wrong = []
    for route in routes({key: value for key, value in manifest.items() if key != "sha256"}):
        forge(folder, without(manifest, route))
        try:
            found = complaints(folder)
        except Exception as error:
            found = [type(error).__name__, "in place of a failed check"]
        # Versions of libraries are told, not relied on.
        if len(found) != 1 and not (route[0] == "versions" and len(route) == 2):
            wrong.append(f"{'.'.join(map(str, route))} ({' '.join(found) or 'nothing noticed'})")
    assert not wrong, f"{len(wrong)} missing keys: {'; '.join(wrong)}"


@pytest.mark.parametrize("name", ONE_PER_KIND)
def test_the_command_line_ends_with_1_and_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(FORMAT_1 / name, tmp_path / name))
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    wrong = []
    for key in manifest:
        file.write_text(json.dumps(without(manifest, (key,))), encoding="utf-8")
        try:
            code, out, err = run(capsys, "verify", folder)
        except Exception as error:  # what a user would see as a traceback
            wrong.append(f"{key}: {type(error).__name__}")
            continue
        problems = [line for line in (out + err).splitlines() if not line.startswith("ok ")]
        if code != 1 or len(problems) != 1:
            wrong.append(f"{key}: exit code {code}, {len(problems)} lines")
    assert not wrong, "; ".join(wrong)

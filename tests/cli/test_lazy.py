"""The help lists commands without importing them, and lists what they are."""

import subprocess
import sys
from inspect import cleandoc
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tallytree as tt
from tallytree.cli.app import app
from tallytree.cli.lazy import COMMANDS, LazyGroup, load_commands

PARTS_OF_SCIPY = (
    "scipy.fft",
    "scipy.interpolate",
    "scipy.optimize",
    "scipy.signal",
    "scipy.special",
)
VERBS = "tallytree.kinds.verbs"
LIBRARIES = (
    *PARTS_OF_SCIPY,
    VERBS,
    "numpy",
    "scipy",
    "numba",
    "pyarrow",
    "duckdb",
    "ibis",
    "sqlalchemy",
    "cryptography",
)


def fresh(*arguments: str) -> str:
    """Standard output of a command in a fresh interpreter, and the libraries that it loaded."""
    code = (
        "import sys\nfrom tallytree.cli import main\ntry:\n    main(sys.argv[1:])\nfinally:\n"
        f"    print('loaded:', *[name for name in {LIBRARIES!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_loads_no_library_and_says_what_loaded_commands_say() -> None:
    printed, loaded = fresh("--help").split("loaded:")
    assert loaded.split() == []
    load_commands()
    assert " ".join(printed.split()) == " ".join(
        CliRunner().invoke(app, ["--help"], prog_name="tallytree").stdout.split()
    )


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"doctor", "ledger"}))
def test_the_help_of_a_command_loads_no_library(name: str) -> None:
    """All of them together take a second; only what parses and prints is needed. What is installed,
    and accounts, are looked at by libraries throughout.
    """
    assert fresh(name, "--help").split("loaded:")[1].split() == []


def test_a_question_loads_what_reads_the_release_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("household,state\n1,GA\n1,GA\n2,NY\n", encoding="utf-8")
    made = tt.release(
        tt.read(tmp_path / "people.csv", group="household", levels=["state"], public="groups"),
        epsilon=1,
    )
    made.save(tmp_path / "out")
    for words in (["query", "--size", "2"], ["verify"], ["report", "--out", "page.html"]):
        out = str(tmp_path / "out")
        more = [str(tmp_path / word) if word == "page.html" else word for word in words[1:]]
        loaded = set(fresh(words[0], out, *more).split("loaded:")[1].split())
        heavy = {"scipy", "numba", "duckdb", "ibis", "sqlalchemy", *PARTS_OF_SCIPY}
        assert loaded & {"numpy", "pyarrow"} == {"numpy", "pyarrow"}
        assert not loaded & heavy, words


def test_a_command_loads_its_own_module_only() -> None:
    assert "duckdb" not in fresh("ledger", "--help").split("loaded:")[1]


def test_a_plain_release_loads_neither_scipy_nor_the_ledger(tmp_path: Path) -> None:
    """Each is half a second or more, and a small release takes less than that. Numba loads
    ``scipy.linalg`` by itself.
    """
    (tmp_path / "people.csv").write_text("household,state\n1,GA\n1,GA\n2,NY\n", encoding="utf-8")
    request = ["--public", "groups", "--group", "household", "--levels", "state", "--epsilon", "1"]
    printed = fresh(
        "release", str(tmp_path / "people.csv"), *request, "--out", str(tmp_path / "out")
    )
    loaded = set(printed.split("loaded:")[1].split())
    assert "numba" in loaded
    assert not {*PARTS_OF_SCIPY, VERBS, "sqlalchemy"} & loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_listed_help_is_the_first_line_of_the_command(name: str) -> None:
    assert cleandoc(load_commands()[name].help).splitlines()[0] == COMMANDS[name][1]


def test_every_module_with_commands_is_listed() -> None:
    folder = Path(sys.modules[LazyGroup.__module__].__file__ or "").parent
    marks = ("@app.command(", "@command(app", "app.add_typer(")
    registering = {
        path.stem
        for path in folder.glob("*.py")
        if any(mark in path.read_text(encoding="utf-8") for mark in marks)
    }
    assert registering == {module for module, _ in COMMANDS.values()}
    load_commands()
    names = {
        info.name or info.callback.__name__ for info in app.registered_commands if info.callback
    }
    names |= {str(info.name) for info in app.registered_groups}
    assert names == set(COMMANDS)


def test_a_misspelt_command_is_pointed_to_the_right_one() -> None:
    result = CliRunner().invoke(app, ["relase"])
    assert result.exit_code == 2
    assert "release" in result.output

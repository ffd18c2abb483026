"""The public names: imported when asked for, complete, and the same for type checkers as at run
time.
"""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import tallytree

HEAVY = (
    "numpy",
    "scipy",
    "numba",
    "pyarrow",
    "duckdb",
    "ibis",
    "pandas",
    "sqlalchemy",
    "cryptography",
    "pyspark",
    "rich",
    "typer",
)


def in_fresh_interpreter(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_loads_no_library() -> None:
    code = f"import sys, tallytree; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert in_fresh_interpreter(code).strip() == "[]"


@pytest.mark.parametrize("name", tallytree.__all__)
def test_a_public_name_is_what_its_module_defines(name: str) -> None:
    home = importlib.import_module(f"tallytree.{tallytree._HOMES[name]}")
    assert getattr(tallytree, name) is getattr(home, name)
    assert name in dir(tallytree)


def test_type_checkers_see_the_same_homes() -> None:
    tree = ast.parse(Path(tallytree.__file__).read_text(encoding="utf-8"))
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    stated = {
        alias.name: node.module.removeprefix("tallytree.")
        for node in typed.body
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    }
    assert stated == tallytree._HOMES
    assert sorted(stated) == sorted(tallytree.__all__)


def test_no_room_is_called_like_a_public_name() -> None:
    rooms = {place.parent.name for place in Path(tallytree.__file__).parent.glob("*/__init__.py")}
    files = {place.stem for place in Path(tallytree.__file__).parent.glob("*.py")}
    assert {"releases", "maps"} <= rooms
    assert not (rooms | files) & set(tallytree.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'relase'"):
        tallytree.relase  # noqa: B018


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(tallytree.__file__).parent / "py.typed").exists()

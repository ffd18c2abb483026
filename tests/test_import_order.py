"""The table of rooms in CONTRIBUTING.md: a room imports only rooms above it, and no kind another."""

import ast
import re
import sys
from pathlib import Path

import pytest

import tallytree

PACKAGE = Path(tallytree.__file__).parent
PAGE = Path(__file__).parents[1] / "CONTRIBUTING.md"
TABLE = re.findall(r"^\| (`.*?`) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
ROOMS = [name for names, _ in TABLE for name in re.findall(r"`(\w+)`", names)]
KINDS = {names.strip("`") for names, text in TABLE if text.startswith("kind:")}
ONLY_IN = {
    "ibis": {"ingest"},
    "duckdb": {"ingest"},
    "polars": {"ingest"},
    "pandas": {"ingest"},
    "numba": {"kernels"},
    "cryptography": {"privacy", "ledger"},
    "secrets": {"privacy", "ledger"},
    "sqlalchemy": {"ledger"},
    "typer": {"cli"},
}
MODEL_MAY_IMPORT = {"numpy", "tallytree"}
FILES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name != "__init__.py"
)


def imported_modules(path: Path) -> list[tuple[int, str]]:
    """Modules that a file imports, those given as text included, with the lines."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "tallytree"
                else [node.module]
            )
            found += [(node.lineno, name) for name in names]
        elif isinstance(node, ast.Constant) and is_module_as_text(node.value):
            found.append((node.lineno, node.value))
    return found


def is_module_as_text(value: object) -> bool:
    if not isinstance(value, str) or not re.fullmatch(r"tallytree(\.\w+)+", value):
        return False
    return value.split(".")[1] not in tallytree.__all__


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def forbidden(path: Path) -> list[str]:
    room = room_of(path)
    wrong = []
    for line, module in imported_modules(path):
        parts = module.split(".")
        if parts[0] != "tallytree":
            continue
        assert len(parts) > 1, f"{path.name}:{line}: import from the room, not from the package"
        below = ROOMS.index(parts[1]) > ROOMS.index(room)
        other_kind = {room, parts[1]} <= KINDS and room != parts[1]
        if below or other_kind:
            wrong.append(f"line {line}: {room} may not import {parts[1]}")
    return wrong


def test_the_table_names_every_room() -> None:
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ROOMS) == folders | {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    assert len(ROOMS) == len(set(ROOMS))
    assert len(KINDS) == 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upwards(path: Path) -> None:
    assert not forbidden(path)
    room = room_of(path)
    for line, module in imported_modules(path):
        top = module.split(".")[0]
        assert room in ONLY_IN.get(top, {room}), f"{path.name}:{line}: {room} may not import {top}"


def test_model_needs_numpy_only() -> None:
    for path in (PACKAGE / "model").glob("*.py"):
        for line, module in imported_modules(path):
            top = module.split(".")[0]
            assert top in MODEL_MAY_IMPORT or top in sys.stdlib_module_names, (
                f"{path.name}:{line}: {top}"
            )

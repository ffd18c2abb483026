"""A room imports only rooms above it, and only some rooms may import some libraries."""

import ast
from pathlib import Path

import pytest

import tallytree

PACKAGE = Path(tallytree.__file__).parent
ROOMS = [
    "version", "errors", "model", "tuning", "kernels", "privacy", "options", "planning", "storage", "ingest", "ranges",
    "shapes", "maps", "measure", "estimate", "consistency", "released", "exporting", "report", "publish", "kinds",
    "distributed", "reproduce", "cli", "__main__",
]  # fmt: skip
ONLY_IN = {
    "ibis": {"ingest"},
    "duckdb": {"ingest"},
    "polars": {"ingest"},
    "pandas": {"ingest"},
    "numba": {"kernels"},
    "cryptography": {"privacy"},
    "secrets": {"privacy"},
    "sqlalchemy": {"privacy"},
    "typer": {"cli"},
}
MODEL_MAY_IMPORT = {"numpy", "tallytree"}


def imported_modules(path: Path) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "tallytree" else [node.module]
            )
            found += [(node.lineno, name) for name in names]
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_upwards(path: Path) -> None:
    room = room_of(path)
    for line, module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "tallytree":
            assert len(parts) > 1, f"{path.name}:{line}: import from the room, not from the package"
            assert ROOMS.index(parts[1]) <= ROOMS.index(room), f"{path.name}:{line}: {room} may not import {parts[1]}"
        assert room in ONLY_IN.get(parts[0], {room}), f"{path.name}:{line}: {room} may not import {parts[0]}"


def test_model_needs_numpy_only() -> None:
    import sys

    for path in (PACKAGE / "model").glob("*.py"):
        for line, module in imported_modules(path):
            top = module.split(".")[0]
            assert top in MODEL_MAY_IMPORT or top in sys.stdlib_module_names, f"{path.name}:{line}: {top}"

"""Which versions made a release."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

LIBRARIES = ("tallytree", "numpy", "numba", "pyarrow", "duckdb", "cryptography")


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a release depends on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"

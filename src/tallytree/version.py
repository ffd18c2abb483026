"""The version, written here alone, and those of the libraries that a release depends on."""

from functools import cache

__version__ = "0.1.0"

LIBRARIES = ("tallytree", "numpy", "numba", "pyarrow", "duckdb", "cryptography")


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that a release depends on."""
    import platform

    return {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}


@cache
def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed as a package"

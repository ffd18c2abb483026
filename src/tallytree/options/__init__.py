"""Every option of every kind of release, declared once: name, type, default and what it means.

Command line, TOML files, Python keywords and manifests follow from these classes. A class is
imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallytree.options.base import Options, option
    from tallytree.options.degrees import DegreesOptions
    from tallytree.options.group_sizes import ReleaseOptions
    from tallytree.options.histogram import HistogramOptions
    from tallytree.options.maps import MapOptions, MethodOptions
    from tallytree.options.reading import ReadOptions
    from tallytree.options.stream import StreamOptions
    from tallytree.options.tables import TableOptions

__all__ = [
    "DegreesOptions",
    "HistogramOptions",
    "MapOptions",
    "MethodOptions",
    "Options",
    "ReadOptions",
    "ReleaseOptions",
    "StreamOptions",
    "TableOptions",
    "option",
]

_HOMES = {
    "DegreesOptions": "degrees",
    "HistogramOptions": "histogram",
    "MapOptions": "maps",
    "MethodOptions": "maps",
    "Options": "base",
    "ReadOptions": "reading",
    "ReleaseOptions": "group_sizes",
    "StreamOptions": "stream",
    "TableOptions": "tables",
    "option": "base",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found

"""Differentially private tables of counts over a hierarchy that add up."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallytree.distributed.reading import read
    from tallytree.kinds.showing import card
    from tallytree.kinds.verbs import (
        ask,
        compare,
        evaluate,
        export,
        load,
        microdata,
        plan,
        re_estimate,
        resume,
        sign,
        verify,
    )
    from tallytree.model.confidential import AssumedCounts, ConfidentialCounts
    from tallytree.model.hierarchy import Hierarchy
    from tallytree.options.degrees import DegreesOptions
    from tallytree.options.group_sizes import ReleaseOptions
    from tallytree.options.histogram import HistogramOptions
    from tallytree.options.maps import GridHistogramOptions, MapOptions
    from tallytree.options.reading import ReadOptions
    from tallytree.options.stream import StreamOptions
    from tallytree.publish.degrees import degrees
    from tallytree.publish.grid_histogram import grid_histogram
    from tallytree.publish.group_sizes import release
    from tallytree.publish.histogram import histogram
    from tallytree.publish.intervals import with_intervals
    from tallytree.publish.spatial import spatial
    from tallytree.publish.stream import stream
    from tallytree.publish.stream_counter import StreamCounter
    from tallytree.released.degrees import DegreeSequence
    from tallytree.released.group_sizes.release import Release
    from tallytree.released.histogram.release import RangeHistogram
    from tallytree.released.maps.release import SpatialRelease
    from tallytree.released.stream.release import StreamRelease
    from tallytree.version import __version__

__all__ = [
    "AssumedCounts",
    "ConfidentialCounts",
    "DegreeSequence",
    "DegreesOptions",
    "GridHistogramOptions",
    "Hierarchy",
    "HistogramOptions",
    "MapOptions",
    "RangeHistogram",
    "ReadOptions",
    "Release",
    "ReleaseOptions",
    "SpatialRelease",
    "StreamCounter",
    "StreamOptions",
    "StreamRelease",
    "__version__",
    "ask",
    "card",
    "compare",
    "degrees",
    "evaluate",
    "export",
    "grid_histogram",
    "histogram",
    "load",
    "microdata",
    "plan",
    "re_estimate",
    "read",
    "release",
    "resume",
    "sign",
    "spatial",
    "stream",
    "verify",
    "with_intervals",
]

# Where each public name lives. Its module is imported when the name is first asked for: all of them together load SciPy, Numba,
# Arrow and DuckDB, ten times as long as NumPy takes.
_HOMES = {
    "AssumedCounts": "model.confidential",
    "ConfidentialCounts": "model.confidential",
    "DegreeSequence": "released.degrees",
    "DegreesOptions": "options.degrees",
    "GridHistogramOptions": "options.maps",
    "Hierarchy": "model.hierarchy",
    "HistogramOptions": "options.histogram",
    "MapOptions": "options.maps",
    "RangeHistogram": "released.histogram.release",
    "ReadOptions": "options.reading",
    "Release": "released.group_sizes.release",
    "ReleaseOptions": "options.group_sizes",
    "SpatialRelease": "released.maps.release",
    "StreamCounter": "publish.stream_counter",
    "StreamOptions": "options.stream",
    "StreamRelease": "released.stream.release",
    "__version__": "version",
    "ask": "kinds.verbs",
    "card": "kinds.showing",
    "compare": "kinds.verbs",
    "degrees": "publish.degrees",
    "evaluate": "kinds.verbs",
    "export": "kinds.verbs",
    "grid_histogram": "publish.grid_histogram",
    "histogram": "publish.histogram",
    "load": "kinds.verbs",
    "microdata": "kinds.verbs",
    "plan": "kinds.verbs",
    "re_estimate": "kinds.verbs",
    "read": "distributed.reading",
    "release": "publish.group_sizes",
    "resume": "kinds.verbs",
    "sign": "kinds.verbs",
    "spatial": "publish.spatial",
    "stream": "publish.stream",
    "verify": "kinds.verbs",
    "with_intervals": "publish.intervals",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Differentially private tables of counts over a hierarchy that add up."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tallytree.extensions import MODULES

if TYPE_CHECKING:
    from tallytree.boxes.release import SpatialRelease
    from tallytree.degree_sequences.publish import degrees
    from tallytree.degree_sequences.release import DegreeSequence
    from tallytree.group_sizes.intervals.intervals import with_intervals
    from tallytree.group_sizes.publish import release
    from tallytree.group_sizes.release.release import Release
    from tallytree.group_sizes.values.publish import values
    from tallytree.group_sizes.values.release import ValuesRelease
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
    from tallytree.maps.publish import spatial
    from tallytree.model.confidential import AssumedCounts, ConfidentialCounts
    from tallytree.model.hierarchy import Hierarchy
    from tallytree.options.degrees import DegreesOptions
    from tallytree.options.group_sizes import ReleaseOptions
    from tallytree.options.histogram import HistogramOptions
    from tallytree.options.maps import MapOptions
    from tallytree.options.reading import ReadOptions
    from tallytree.options.stream import StreamOptions
    from tallytree.options.tables import TableOptions
    from tallytree.options.values import ValuesOptions
    from tallytree.ranges.publish import histogram
    from tallytree.ranges.release import RangeHistogram
    from tallytree.spark.reading import read
    from tallytree.streams.counter import StreamCounter
    from tallytree.streams.publish import stream
    from tallytree.streams.release import StreamRelease
    from tallytree.tables.publish import table
    from tallytree.tables.release import TableRelease
    from tallytree.version import __version__

__all__ = [
    "AssumedCounts",
    "ConfidentialCounts",
    "DegreeSequence",
    "DegreesOptions",
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
    "TableOptions",
    "TableRelease",
    "ValuesOptions",
    "ValuesRelease",
    "__version__",
    "ask",
    "card",
    "compare",
    "degrees",
    "evaluate",
    "export",
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
    "table",
    "values",
    "verify",
    "with_intervals",
]

# Mechanisms of papers, which no default chooses, and how releases are shown; each module is imported
# when it is first needed.
MODULES |= {
    "showing": "tallytree.kinds.showing",
    "group sizes": "tallytree.papers.fioretto2021.mechanisms",
    "boxes": "tallytree.papers.rivals.methods",
}

# Where each public name lives. Its module is imported when the name is first asked for: all of them
# together load SciPy, Numba, Arrow and DuckDB, ten times as long as NumPy takes.
_HOMES = {
    "AssumedCounts": "model.confidential",
    "ConfidentialCounts": "model.confidential",
    "DegreeSequence": "degree_sequences.release",
    "DegreesOptions": "options.degrees",
    "Hierarchy": "model.hierarchy",
    "HistogramOptions": "options.histogram",
    "MapOptions": "options.maps",
    "RangeHistogram": "ranges.release",
    "ReadOptions": "options.reading",
    "Release": "group_sizes.release.release",
    "ReleaseOptions": "options.group_sizes",
    "SpatialRelease": "boxes.release",
    "StreamCounter": "streams.counter",
    "StreamOptions": "options.stream",
    "StreamRelease": "streams.release",
    "TableOptions": "options.tables",
    "TableRelease": "tables.release",
    "ValuesOptions": "options.values",
    "ValuesRelease": "group_sizes.values.release",
    "__version__": "version",
    "ask": "kinds.verbs",
    "card": "kinds.showing",
    "compare": "kinds.verbs",
    "degrees": "degree_sequences.publish",
    "evaluate": "kinds.verbs",
    "export": "kinds.verbs",
    "histogram": "ranges.publish",
    "load": "kinds.verbs",
    "microdata": "kinds.verbs",
    "plan": "kinds.verbs",
    "re_estimate": "kinds.verbs",
    "read": "spark.reading",
    "release": "group_sizes.publish",
    "resume": "kinds.verbs",
    "sign": "kinds.verbs",
    "spatial": "maps.publish",
    "stream": "streams.publish",
    "table": "tables.publish",
    "values": "group_sizes.values.publish",
    "verify": "kinds.verbs",
    "with_intervals": "group_sizes.intervals.intervals",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Differentially private tables of counts over a hierarchy that add up."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tallytree.distributed.reading import read
    from tallytree.model.confidential import ConfidentialCounts
    from tallytree.model.hierarchy import Hierarchy
    from tallytree.publish.accuracy import plan
    from tallytree.publish.degrees import degrees
    from tallytree.publish.evaluation import evaluate
    from tallytree.publish.grid_histogram import grid_histogram
    from tallytree.publish.group_sizes import release
    from tallytree.publish.histogram import histogram
    from tallytree.publish.intervals import with_intervals
    from tallytree.publish.spatial import spatial
    from tallytree.release.any_release import load, verify
    from tallytree.release.degrees import DegreeSequence
    from tallytree.release.grid_histogram import GridHistogram
    from tallytree.release.histogram import RangeHistogram
    from tallytree.release.release import Release
    from tallytree.release.spatial import SpatialRelease

__all__ = [
    "ConfidentialCounts",
    "DegreeSequence",
    "GridHistogram",
    "Hierarchy",
    "RangeHistogram",
    "Release",
    "SpatialRelease",
    "degrees",
    "evaluate",
    "grid_histogram",
    "histogram",
    "load",
    "plan",
    "read",
    "release",
    "spatial",
    "verify",
    "with_intervals",
]

# Where each public name lives. Its module is imported when the name is first asked for: all of them together load SciPy, Numba,
# Arrow and DuckDB, ten times as long as NumPy takes.
_HOMES = {
    "ConfidentialCounts": "model.confidential",
    "DegreeSequence": "release.degrees",
    "GridHistogram": "release.grid_histogram",
    "Hierarchy": "model.hierarchy",
    "RangeHistogram": "release.histogram",
    "Release": "release.release",
    "SpatialRelease": "release.spatial",
    "degrees": "publish.degrees",
    "evaluate": "publish.evaluation",
    "grid_histogram": "publish.grid_histogram",
    "histogram": "publish.histogram",
    "load": "release.any_release",
    "plan": "publish.accuracy",
    "read": "distributed.reading",
    "release": "publish.group_sizes",
    "spatial": "publish.spatial",
    "verify": "release.any_release",
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


class _Package(ModuleType):
    """Keeps public names free of the rooms that are called like them: importing a room binds it in its package."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

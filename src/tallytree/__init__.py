"""Differentially private tables of counts over a hierarchy that add up."""

from tallytree.distributed.reading import read
from tallytree.kinds.verbs import ask, evaluate, load, plan, re_estimate, resume, verify
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.hierarchy import Hierarchy
from tallytree.options import (
    DegreesOptions,
    GridHistogramOptions,
    HistogramOptions,
    MapOptions,
    ReadOptions,
    ReleaseOptions,
)
from tallytree.publish.degrees import degrees
from tallytree.publish.grid_histogram import grid_histogram
from tallytree.publish.group_sizes import release
from tallytree.publish.histogram import histogram
from tallytree.publish.intervals import with_intervals
from tallytree.publish.spatial import spatial
from tallytree.release.degrees import DegreeSequence
from tallytree.release.grid_histogram import GridHistogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.release import Release
from tallytree.release.spatial import SpatialRelease
from tallytree.version import __version__

__all__ = [
    "ConfidentialCounts",
    "DegreeSequence",
    "DegreesOptions",
    "GridHistogram",
    "GridHistogramOptions",
    "Hierarchy",
    "HistogramOptions",
    "MapOptions",
    "RangeHistogram",
    "ReadOptions",
    "Release",
    "ReleaseOptions",
    "SpatialRelease",
    "__version__",
    "ask",
    "degrees",
    "evaluate",
    "grid_histogram",
    "histogram",
    "load",
    "plan",
    "re_estimate",
    "read",
    "release",
    "resume",
    "spatial",
    "verify",
    "with_intervals",
]

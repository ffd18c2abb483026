"""Releases of every kind from disk: the manifest says which kind it is."""

from __future__ import annotations

from pathlib import Path

from tallytree.errors import RequestError
from tallytree.release import degrees, grid_histogram, histogram_loading, loading, spatial_loading
from tallytree.release.checks import Verification
from tallytree.release.degrees import DegreeSequence
from tallytree.release.grid_histogram import GridHistogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.release import Release
from tallytree.release.spatial import SpatialRelease
from tallytree.storage.folder import read_manifest


def load(path: str | Path) -> Release | RangeHistogram | GridHistogram | DegreeSequence | SpatialRelease:
    """Load a release: group sizes, a histogram, a degree sequence or a map."""
    match _kind(path):
        case "group-sizes":
            return loading.load_release(path)
        case "histogram":
            return histogram_loading.load_histogram(path)
        case "grid-histogram":
            return grid_histogram.load_grid_histogram(path)
        case "degrees":
            return degrees.load_degrees(path)
        case "map":
            return spatial_loading.load_map(path)
        case kind:
            raise RequestError(_unknown(path, kind))


def verify(path: str | Path) -> Verification:
    """Check a release on disk without trusting it: checksums first, then what its tables promise."""
    match _kind(path):
        case "group-sizes":
            return loading.verify_release(path)
        case "histogram":
            return histogram_loading.verify_histogram(path)
        case "grid-histogram":
            return grid_histogram.verify_grid_histogram(path)
        case "degrees":
            return degrees.verify_degrees(path)
        case "map":
            return spatial_loading.verify_map(path)
        case kind:
            raise RequestError(_unknown(path, kind))


def _kind(path: str | Path) -> object:
    return read_manifest(path).get("kind")


def _unknown(path: str | Path, kind: object) -> str:
    return f"{path} holds a release of kind {kind!r}, which this version does not know. Upgrade tallytree."

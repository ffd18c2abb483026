"""Releases from disk: load one, or check one without trusting it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError, TallytreeError
from tallytree.release.checks import Check, Verification
from tallytree.release.release import CountIntervals, Release
from tallytree.release.tables import counts_from_table, hierarchy_from_table
from tallytree.release.zero_cells import ZeroEnds
from tallytree.storage.folder import changed_files, read_manifest, read_table

KIND = "group-sizes"


def load_release(path: str | Path) -> Release:
    """Load a release of group sizes; its raw measurements stay on disk."""
    manifest = read_manifest(path)
    if manifest.get("kind") != KIND:
        raise RequestError(f"{path} holds a release of kind {manifest.get('kind')!r}, not {KIND!r}.")
    regions = read_table(path, "regions.parquet")
    hierarchy = hierarchy_from_table(regions, [level["name"] for level in manifest["levels"]])
    table = read_table(path, "counts.parquet", names=("region",))
    counts = counts_from_table(hierarchy, table)
    intervals = _intervals(table, manifest.pop("intervals", None))
    # Both are written anew whenever a release is saved.
    del manifest["files"], manifest["format_version"]
    return Release(hierarchy, counts, regions["groups"].to_numpy().astype(np.int64), manifest, intervals=intervals)


def _intervals(table: pa.Table, facts: dict[str, Any] | None) -> CountIntervals | None:
    """Intervals as they stand in a table of counts, whose rows are in the order of the release's runs."""
    if facts is None:
        return None
    std_error, low, high = (table[name].to_numpy() for name in ("std_error", "low", "high"))
    return CountIntervals(facts["confidence"], std_error, low, high, ZeroEnds.from_json(facts.get("zeros", [])))


def verify_release(path: str | Path) -> Verification:
    """Check a release on disk: checksums first, then what its tables promise."""
    changed = changed_files(path)
    files = Check("files match their checksums", not changed, " ".join(changed))
    if changed:
        return Verification((files,))
    try:
        release = load_release(path)
    except TallytreeError as error:
        return Verification((files, Check("tables can be read", False, str(error))))
    return Verification((files, *release.verify().checks))

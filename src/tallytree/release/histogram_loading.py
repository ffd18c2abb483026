"""Range histograms from disk: load one, or check one without trusting it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tallytree.errors import RequestError, StorageError, TallytreeError, VerificationError
from tallytree.measure.histogram import NoisyHistogram
from tallytree.release.checks import Check, Verification
from tallytree.release.histogram import RangeHistogram
from tallytree.release.histogram_manifest import KIND, plan_from_manifest
from tallytree.release.histogram_tables import bins_from_table, noisy_from_table, rows_from_table
from tallytree.storage.folder import changed_files, read_manifest, read_table


def load_histogram(path: str | Path) -> RangeHistogram:
    """Load a range histogram, with its raw measurements where they were saved."""
    manifest = read_manifest(path)
    if manifest.get("kind") != KIND:
        raise RequestError(f"{path} holds a release of kind {manifest.get('kind')!r}, not {KIND!r}.")
    files = manifest["files"]
    table = read_table(path, "counts.parquet")
    try:
        bins = bins_from_table(table)
        rows = (
            rows_from_table(read_table(path, "strategy.parquet"), bins.n_bins) if "strategy.parquet" in files else None
        )
        plan = plan_from_manifest(manifest, rows)
        noisy = None
        if "noisy.parquet" in files:
            noisy = NoisyHistogram(plan, noisy_from_table(read_table(path, "noisy.parquet"), len(plan.noise)))
        # Both are written anew whenever a histogram is saved.
        del manifest["files"], manifest["format_version"]
        counts, estimates = table["count"].to_numpy(), table["estimate"].to_numpy()
        return RangeHistogram(bins, np.array(counts), np.array(estimates), plan, manifest, noisy)
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, TallytreeError):
            raise
        raise VerificationError(f"{path} is not a whole histogram: {error}.", ("manifest.json",)) from None


def verify_histogram(path: str | Path) -> Verification:
    """Check a range histogram on disk: checksums, the noise that the manifest states, then what the tables promise."""
    changed = changed_files(path)
    files = Check("files match their checksums", not changed, " ".join(changed))
    if changed:
        return Verification((files,))
    try:
        histogram = load_histogram(path)
    except (RequestError, StorageError, VerificationError) as error:
        return Verification((files, Check("tables can be read", False, str(error))))
    return Verification((files, *histogram.verify().checks))

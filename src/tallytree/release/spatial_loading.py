"""Maps from disk: load one, or check one without trusting it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from tallytree.errors import RequestError, TallytreeError, VerificationError
from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.sensitivity import histogram_sensitivity
from tallytree.release.checks import Check, Verification
from tallytree.release.spatial import SpatialRelease
from tallytree.release.spatial_manifest import KIND, budget_of
from tallytree.release.spatial_tables import estimates_from_table, measurements_from_table
from tallytree.storage.folder import Manifest, changed_files, read_manifest, read_table


def load_map(path: str | Path) -> SpatialRelease:
    """Load a map, with its raw measurements where they were saved."""
    manifest = read_manifest(path)
    if manifest.get("kind") != KIND:
        raise RequestError(f"{path} holds a release of kind {manifest.get('kind')!r}, not {KIND!r}.")
    boxes = read_table(path, "counts.parquet")
    noisy = read_table(path, "noisy.parquet") if "noisy.parquet" in manifest["files"] else None
    try:
        estimates = estimates_from_table(boxes, manifest["columns"], tuple(manifest["resolution"]))
        measurements = None if noisy is None else measurements_from_table(noisy, _variances(manifest))
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise VerificationError(f"{path} is not a whole map: {error}.", ("counts.parquet",)) from None
    # Both are written anew whenever a map is saved.
    del manifest["files"], manifest["format_version"]
    return SpatialRelease(estimates, manifest, measurements)


def _variances(manifest: Manifest) -> dict[str, float]:
    """Noise variance by share, worked out anew from budget and sensitivity."""
    budget, contributions = budget_of(manifest), int(manifest["privacy"]["contributions"])
    bound = histogram_sensitivity(contributions=contributions)
    shares = {step["share"] for step in manifest["privacy"]["steps"] if "noise" in step}
    return {
        share: noise_for(Budget(budget.definition, budget.total * Fraction(share)), bound).variance for share in shares
    }


def verify_map(path: str | Path) -> Verification:
    """Check a map on disk: checksums first, then what its tables promise."""
    changed = changed_files(path)
    files = Check("files match their checksums", not changed, " ".join(changed))
    if changed:
        return Verification((files,))
    try:
        release = load_map(path)
    except TallytreeError as error:
        return Verification((files, Check("tables can be read", False, str(error))))
    return Verification((files, *release.verify().checks))

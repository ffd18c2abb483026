"""What a manifest says about privacy, recomputed by someone who trusts none of it.

The record of measurements in the manifest is enough: its total loss follows from sensitivities and noise alone, and each
sensitivity from the query, the bound on contributions and the bound on quantities.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from tallytree.errors import TallytreeError, VerificationError
from tallytree.model.confidential import GROUP
from tallytree.privacy.accounting import (
    MechanismRecord,
    Record,
    check_composition,
    measurements,
    record_from_json,
    record_to_json,
    total_loss,
)
from tallytree.privacy.budget import Budget, exact
from tallytree.privacy.sensitivity import (
    Sensitivity,
    chain_sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
    edge_degrees_sensitivity,
    group_totals_sensitivity,
    hybrid_sensitivity,
    largest_size_sensitivity,
    size_bins_sensitivity,
    size_blocks_sensitivity,
    sizes_sensitivity,
)
from tallytree.release.checks import Check, Verification
from tallytree.release.histogram_manifest import GRID_KIND as GRID_HISTOGRAM
from tallytree.release.histogram_manifest import KIND as HISTOGRAM
from tallytree.release.histogram_manifest import plan_from_manifest
from tallytree.release.histogram_tables import rows_from_table
from tallytree.release.spatial_checks import check_charges, check_steps
from tallytree.release.spatial_loading import load_map
from tallytree.release.spatial_manifest import KIND as MAP
from tallytree.storage.folder import Manifest, read_manifest, read_table


def verify_privacy(path: str | Path) -> Verification:
    """Recompute the privacy loss of a release on disk from its manifest, and compare it with what is stated."""
    manifest = read_manifest(path)
    if manifest.get("kind") == MAP:
        return _verify_map(path, manifest)
    try:
        stated, record = stated_budget(manifest), _record(manifest)
        sensitivities = _check_sensitivities(record, _expected_sensitivities(path, manifest, record))
        listed = _check_listed(manifest, record)
    except (TallytreeError, KeyError, TypeError, ValueError, AttributeError) as error:
        detail = str(error) if isinstance(error, TallytreeError) else f"{type(error).__name__}: {error}"
        return Verification((Check("the privacy record can be read", False, detail),))
    failures = check_composition(record, stated)
    return Verification(
        (
            Check("the privacy record can be read", True),
            Check(f"the measurements cost at most {stated}", not failures, " ".join(failures)),
            sensitivities,
            listed,
            _check_secure(manifest),
        )
    )


def _verify_map(path: str | Path, manifest: Manifest) -> Verification:
    """Which boxes a map asks about follows from noisy answers, so its loss is added up cell by cell."""
    checks = [check_steps(manifest), _check_secure(manifest)]
    try:
        made = load_map(path)
    except TallytreeError as error:
        return Verification((*checks, Check("tables can be read", False, str(error))))
    if made.measurements is not None:
        checks.append(check_charges(made.estimates, manifest, made.measurements))
    return Verification(tuple(checks))


def recomputed_loss(path: str | Path) -> Budget:
    """The loss of a release, from sensitivities and noise alone."""
    manifest = read_manifest(path)
    definition = stated_budget(manifest).definition
    return Budget(definition, total_loss(_record(manifest), definition))


def stated_budget(manifest: Manifest) -> Budget:
    """The loss that a manifest states."""
    privacy = manifest["privacy"]
    symbol = "epsilon" if privacy["definition"] == "pure" else "rho"
    return Budget(privacy["definition"], exact(privacy[symbol], symbol))


def _record(manifest: Manifest) -> Record:
    if "composition" not in manifest["privacy"]:
        raise VerificationError("The manifest holds no record of the measurements.")
    return record_from_json(manifest["privacy"]["composition"])


def _expected_sensitivities(path: str | Path, manifest: Manifest, record: Record) -> list[Sensitivity | None]:
    """The sensitivity that each measurement must have; None where its query is not known."""
    if manifest["kind"] in (HISTOGRAM, GRID_HISTOGRAM):
        rows = None
        if "strategy.parquet" in manifest["files"]:
            rows = rows_from_table(read_table(path, "strategy.parquet"), int(manifest["strategy"]["bins"]))
        by_level = plan_from_manifest(manifest, rows).sensitivities
        return [None if leaf.level is None else by_level[leaf.level] for leaf in measurements(record)]
    contributions, max_quantity = int(manifest["privacy"]["contributions"]), int(manifest["public"]["max_quantity"])
    known = group_size_sensitivities(contributions=contributions, max_quantity=max_quantity)
    if manifest["privacy"].get("unit_name") == GROUP:
        known = whole_group_sensitivities()

    def of(leaf: MechanismRecord) -> Sensitivity | None:
        if leaf.query != "chain" or leaf.level is None:
            return known.get(leaf.query)
        n_regions = int(manifest["levels"][leaf.level]["regions"])
        return chain_sensitivity(n_regions, max_quantity=max_quantity, contributions=contributions)

    return [of(leaf) for leaf in measurements(record)]


def group_size_sensitivities(*, contributions: int, max_quantity: int) -> Mapping[str, Sensitivity]:
    """Sensitivity of each query of group sizes, by the name that manifests give it."""
    units = {"max_quantity": max_quantity, "contributions": contributions}
    return {
        "naive": counts_sensitivity(contributions=contributions),
        "cumulative": cumulative_sensitivity(**units),
        "sizes": sizes_sensitivity(**units),
        "hybrid": hybrid_sensitivity(**units),
        "staircase": hybrid_sensitivity(**units),
        "first look": hybrid_sensitivity(**units),
        "largest size": largest_size_sensitivity(**units),
        "group totals": group_totals_sensitivity(contributions=contributions),
        "edge degrees": edge_degrees_sensitivity(contributions=contributions),
    }


def whole_group_sensitivities() -> Mapping[str, Sensitivity]:
    """The same where the unit is a whole group; no other query is answered then."""
    bins = size_bins_sensitivity()
    return {"first look": bins, "bins": bins, "blocks": size_blocks_sensitivity()}


def _check_sensitivities(record: Record, expected: list[Sensitivity | None]) -> Check:
    wrong = []
    for leaf, sensitivity in zip(measurements(record), expected):
        if sensitivity is None:
            wrong.append(f"{_where(leaf)}: the query is not known, so its sensitivity cannot be checked.")
        elif leaf.sensitivity != sensitivity:
            wrong.append(
                f"{_where(leaf)}: one unit can change {_norms(sensitivity)}, stated is {_norms(leaf.sensitivity)}."
            )
    return Check("each query states its sensitivity", not wrong, " ".join(wrong))


def _norms(sensitivity: Sensitivity) -> str:
    return f"l1 = {sensitivity.l1}, l2² = {sensitivity.l2_squared}"


def _where(leaf: MechanismRecord) -> str:
    return leaf.query if leaf.level is None else f"{leaf.query}, level {leaf.level}"


def _check_listed(manifest: Manifest, record: Record) -> Check:
    """The figures per level, which people read, are those of the record, which was just recomputed."""
    privacy = manifest["privacy"]
    symbol = "epsilon" if privacy["definition"] == "pure" else "rho"
    shown = [privacy, *privacy.get("side_queries", []), *privacy.get("levels", [])]
    listed = [_facts(facts, symbol) for facts in shown if "noise" in facts]
    recorded = [_facts(record_to_json(leaf), "loss") for leaf in measurements(record)]
    same = sorted(listed, key=repr) == sorted(recorded, key=repr)
    return Check(
        "the figures per level agree with the record", same, "" if same else "sensitivity, noise or loss differ."
    )


def _facts(facts: Mapping[str, Any], loss: str) -> tuple[Any, ...]:
    scale = facts.get("scale", facts.get("variance", facts.get("sigma2")))
    kind = str(facts["noise"]).lower().replace(" ", "-")
    bounds = facts["sensitivity"]
    return facts.get("level"), kind, str(scale), bounds["l1"], bounds["l2_squared"], Fraction(facts[loss])


def _check_secure(manifest: Manifest) -> Check:
    private = manifest["privacy"].get("private") is True
    return Check("the noise came from secure randomness", private, "" if private else "An insecure seed was used.")

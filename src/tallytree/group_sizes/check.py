"""The manifest of group sizes checked: written again, with its loss and sensitivities recomputed."""

from __future__ import annotations

from collections.abc import Mapping

from tallytree.group_sizes.manifest import (
    VALUES,
    facts_of,
    group_sizes_manifest,
    mechanism_of,
)
from tallytree.group_sizes.mechanisms.table import mechanism_named
from tallytree.group_sizes.plan.plan import SIZE_LOOK, plan_release
from tallytree.group_sizes.release.tables import regions_of_folder
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.accounting import MechanismRecord
from tallytree.privacy.guarantee import budget_of
from tallytree.privacy.sensitivity import (
    Sensitivity,
    chain_sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
    group_totals_sensitivity,
    hybrid_sensitivity,
    largest_size_sensitivity,
    moved_size_bins_sensitivity,
    moved_size_blocks_sensitivity,
    people_sensitivity,
    size_bins_sensitivity,
    size_blocks_sensitivity,
    sizes_sensitivity,
)
from tallytree.releases.checks import Check
from tallytree.releases.privacy_checks import Leaves, check_privacy
from tallytree.releases.rewriting import check_written
from tallytree.storage.folder import Folder, Manifest


def group_sizes_again(folder: Folder) -> Manifest:
    """The manifest of group sizes. Told: the request, notes on what is public, shares and bins
    chosen after a look, the fit.
    """
    manifest = folder.manifest
    mechanism = manifest["mechanism"]
    hierarchy, _ = regions_of_folder(folder)
    facts = facts_of(manifest, hierarchy)
    plan = plan_release(ReleaseOptions.told(manifest["request"]), facts)
    again = group_sizes_manifest(plan, facts, secure=manifest["privacy"]["private"] is True)
    chosen = mechanism_named(plan.mechanism)
    settled = chosen.settle(plan, facts, manifest)
    again = chosen.describe(again, settled, facts)
    # What intervals must know of the answers; tables that a cluster wrote in parts do without.
    needed: dict[str, object] = {"differences": []} if "bins" in again["mechanism"] else {}
    if settled.plan.levels[-1].view == "staircase" and not folder.split:
        needed |= {"heaped": False, "told_apart": 0, "hidden": [0, 0]}
    if needed or "fit" in mechanism:
        fit = needed | dict(mechanism.get("fit", {}))
        again["mechanism"] = {**again["mechanism"], "fit": fit}
    return again


def check_group_sizes_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same, and that what was measured is what the request asked for."""
    return (
        *check_privacy(folder, expected_sensitivities),
        _check_request(folder),
        *check_written(folder, group_sizes_again),
    )


def _check_request(folder: Folder) -> Check:
    """Mechanism, totals and, unless they were planned after a first look, shares follow from the
    request anew.
    """
    manifest = folder.manifest
    hierarchy, _ = regions_of_folder(folder)
    facts = facts_of(manifest, hierarchy)
    asked = plan_release(ReleaseOptions.told(manifest["request"]), facts)
    plan = mechanism_named(asked.mechanism).settle(asked, facts, manifest).plan
    kept = "every region" if plan.totals == "regions" else "root"
    mechanism = mechanism_of(plan, facts)
    expected = {**mechanism, "kept": kept, "regions": hierarchy.fingerprint}
    stated = {
        **manifest["mechanism"],
        "kept": manifest["totals"]["kept"],
        "regions": manifest["hierarchy_sha256"],
    }
    wrong = [name for name, value in expected.items() if stated.get(name) != value]
    if plan.budget != budget_of(manifest["privacy"]):
        wrong.append("loss")
    shares = [level["share"] for level in manifest["privacy"]["levels"]]
    if not asked.awaits_look and shares != [str(level.share) for level in plan.levels]:
        wrong.append("shares")
    return Check(
        "mechanism and regions are those of the request",
        not wrong,
        f"{', '.join(wrong)} differ." if wrong else "",
    )


def expected_sensitivities(folder: Folder, leaves: Leaves) -> list[Sensitivity | None]:
    """The sensitivity that each measurement of group sizes must have, by its query."""
    manifest = folder.manifest
    contributions = int(manifest["privacy"]["unit"]["contributions"])
    max_quantity = int(manifest["public"].get("max_quantity", 1))
    known = group_size_sensitivities(contributions=contributions, max_quantity=max_quantity)
    if manifest["privacy"]["unit"]["group"]:
        known = whole_group_sensitivities(contributions=contributions)
    if manifest["kind"] == VALUES:
        known = whole_group_sensitivities(groups=contributions)

    def of(leaf: MechanismRecord) -> Sensitivity | None:
        if leaf.query != "chain" or leaf.level is None:
            return known.get(leaf.query.partition(" by ")[0])
        n_regions = int(manifest["levels"][leaf.level]["regions"])
        return chain_sensitivity(n_regions, max_quantity=max_quantity, contributions=contributions)

    return [of(leaf) for leaf in leaves]


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
        SIZE_LOOK: moved_size_bins_sensitivity(contributions=contributions),
        "largest size": largest_size_sensitivity(**units),
        "group totals": group_totals_sensitivity(contributions=contributions),
        "people": people_sensitivity(contributions=contributions),
        "bins": moved_size_bins_sensitivity(contributions=contributions),
        "blocks": moved_size_blocks_sensitivity(contributions=contributions),
    }


def whole_group_sensitivities(
    *, contributions: int = 1, groups: int = 1
) -> Mapping[str, Sensitivity]:
    """The same where the unit is so many whole groups, of which so many entities count; no other
    query is answered then.
    """
    bins = size_bins_sensitivity(contributions=groups)
    blocks = size_blocks_sensitivity(contributions=groups)
    people = people_sensitivity(contributions=contributions)
    return {"first look": bins, "bins": bins, "blocks": blocks, "people": people}

"""What a manifest says about privacy, recomputed by someone who trusts none of it.

The record of measurements in the manifest is enough: its total loss follows from sensitivities and
noise alone, and each sensitivity from the query, the bound on contributions and the bound on
quantities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallytree.boxes.checks import check_charges, check_steps
from tallytree.boxes.release import load_map
from tallytree.errors import VerificationError
from tallytree.group_sizes.manifest import facts_of, mechanism_of
from tallytree.group_sizes.plan.plan import plan_release
from tallytree.group_sizes.plan.traits import traits_of
from tallytree.group_sizes.release.tables import regions_of_folder
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.accounting import (
    MechanismRecord,
    Record,
    check_composition,
    measurements,
    noise_from_json,
    record_from_json,
    record_to_json,
    total_loss,
)
from tallytree.privacy.budget import Budget, written_fraction
from tallytree.privacy.guarantee import budget_of, false_claims
from tallytree.privacy.sensitivity import (
    Sensitivity,
    chain_sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
    edge_degrees_sensitivity,
    edge_nodes_sensitivity,
    group_totals_sensitivity,
    hybrid_sensitivity,
    largest_size_sensitivity,
    people_sensitivity,
    size_bins_sensitivity,
    size_blocks_sensitivity,
    sizes_sensitivity,
)
from tallytree.ranges.manifest import KIND as HISTOGRAM
from tallytree.ranges.manifest import asks_boxes, plan_from_manifest
from tallytree.ranges.tables import rows_from_table
from tallytree.releases.checks import Check
from tallytree.releases.rewriting import (
    check_written,
    degrees_again,
    group_sizes_again,
    histogram_again,
    map_again,
    stream_again,
)
from tallytree.storage.folder import Folder, Manifest
from tallytree.streams.manifest import KIND as STREAM
from tallytree.streams.manifest import check_stream_record, stream_plan


def check_privacy(folder: Folder) -> tuple[Check, ...]:
    """The loss of a release, recomputed from the record of its measurements and compared with what
    is stated.
    """
    stated, record = budget_of(folder.manifest["privacy"]), record_of(folder.manifest)
    failures = check_composition(record, stated)
    return (
        Check(f"the measurements cost at most {stated}", not failures, " ".join(failures)),
        _check_sensitivities(record, _expected_sensitivities(folder, record)),
        _check_listed(folder.manifest, record),
    )


def check_group_sizes_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same, and that what was measured is what the request asked for."""
    return (
        *check_privacy(folder),
        _check_request(folder),
        *check_written(folder, group_sizes_again),
    )


def check_histogram_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that the manifest is that of its strategy and budget; of
    boxes, the same as for maps.
    """
    if asks_boxes(folder.manifest):
        return (*check_boxes_privacy(folder), *check_written(folder, histogram_again))
    return (*check_privacy(folder), *check_written(folder, histogram_again))


def check_degrees_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that the manifest is that of its question and budget."""
    return (*check_privacy(folder), *check_written(folder, degrees_again))


def _check_request(folder: Folder) -> Check:
    """Mechanism, totals and, unless they were planned after a first look, shares follow from the
    request anew.
    """
    manifest = folder.manifest
    hierarchy, _ = regions_of_folder(folder)
    plan = plan_release(ReleaseOptions.told(manifest["request"]), facts_of(manifest, hierarchy))
    kept = "every region" if plan.totals == "regions" else "root"
    mechanism = mechanism_of(plan)
    if plan.awaits_look and traits_of(plan.mechanism).chooses_questions:
        del mechanism["views"]  # chosen after the first look
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
    if not plan.awaits_look and shares != [str(level.share) for level in plan.levels]:
        wrong.append("shares")
    return Check(
        "mechanism and regions are those of the request",
        not wrong,
        f"{', '.join(wrong)} differ." if wrong else "",
    )


def check_stream_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that record, figures per level and what is held fixed are
    those of the plan.
    """
    cost, sensitivities, _ = check_privacy(folder)
    return (
        cost,
        sensitivities,
        check_stream_record(folder.manifest),
        *check_written(folder, stream_again),
    )


def check_map_privacy(folder: Folder) -> tuple[Check, ...]:
    """The loss of a map, and that its manifest is that of its method and budget."""
    return (*check_boxes_privacy(folder), *check_written(folder, map_again))


def check_boxes_privacy(folder: Folder) -> tuple[Check, ...]:
    """Which boxes are asked about follows from noisy answers, so their loss is added up cell by
    cell.
    """
    made = load_map(folder)
    checks = [check_steps(folder.manifest)]
    if made.noisy is not None:
        checks.append(check_charges(made.estimates, folder.manifest, made.noisy))
    return tuple(checks)


def check_secure(folder: Folder) -> Check:
    """Whether the noise came from secure randomness, by the manifest's own word."""
    private = folder.manifest["privacy"].get("private") is True
    return Check(
        "the noise came from secure randomness",
        private,
        "" if private else "An insecure seed was used.",
    )


def check_claims(folder: Folder) -> Check:
    """Statement, factor, cost of replacing and (ε, δ) follow from budget, unit and what is fixed."""
    wrong = false_claims(folder.manifest["privacy"])
    return Check(
        "the statement follows from the figures",
        not wrong,
        f"{', '.join(wrong)} differ." if wrong else "",
    )


def recomputed_loss(folder: Folder) -> Budget:
    """The loss of a release, from sensitivities and noise alone."""
    definition = budget_of(folder.manifest["privacy"]).definition
    return Budget(definition, total_loss(record_of(folder.manifest), definition))


def record_of(manifest: Manifest) -> Record:
    """The tree of measurements that a manifest records."""
    if "composition" not in manifest["privacy"]:
        raise VerificationError("The manifest holds no record of the measurements.")
    return record_from_json(manifest["privacy"]["composition"])


def _expected_sensitivities(folder: Folder, record: Record) -> list[Sensitivity | None]:
    """The sensitivity that each measurement must have; None where its query is not known."""
    manifest = folder.manifest
    if manifest["kind"] == HISTOGRAM:
        rows = None
        if folder.has("strategy.parquet"):
            rows = rows_from_table(
                folder.table("strategy.parquet"), int(manifest["mechanism"]["bins"])
            )
        plan = plan_from_manifest(manifest, rows)
        looked = None if plan.look is None else plan.look.sensitivity
        by_level = plan.sensitivities
        return [
            looked if leaf.level is None else by_level[leaf.level] for leaf in measurements(record)
        ]
    if manifest["kind"] == STREAM:
        planned = stream_plan(manifest).record(manifest["privacy"]["unit"]["words"])
        by_query = {
            (leaf.query, leaf.level, leaf.noise): leaf.sensitivity for leaf in measurements(planned)
        }
        return [by_query.get((leaf.query, leaf.level, leaf.noise)) for leaf in measurements(record)]
    contributions = int(manifest["privacy"]["unit"]["contributions"])
    max_quantity = int(manifest["public"]["max_quantity"])
    known = group_size_sensitivities(contributions=contributions, max_quantity=max_quantity)
    if manifest["privacy"]["unit"]["group"]:
        known = whole_group_sensitivities(contributions=contributions)

    def of(leaf: MechanismRecord) -> Sensitivity | None:
        if leaf.query != "chain" or leaf.level is None:
            return known.get(leaf.query.partition(" by ")[0])
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
        "people": people_sensitivity(contributions=contributions),
        "edge degrees": edge_degrees_sensitivity(contributions=contributions),
        "nodes": edge_nodes_sensitivity(contributions=contributions),
    }


def whole_group_sensitivities(*, contributions: int = 1) -> Mapping[str, Sensitivity]:
    """The same where the unit is a whole group, of which so many entities count; no other query is
    answered then.
    """
    bins = size_bins_sensitivity()
    people = people_sensitivity(contributions=contributions)
    return {"first look": bins, "bins": bins, "blocks": size_blocks_sensitivity(), "people": people}


def _check_sensitivities(record: Record, expected: list[Sensitivity | None]) -> Check:
    wrong = []
    for leaf, sensitivity in zip(measurements(record), expected):
        if sensitivity is None:
            wrong.append(
                f"{_where(leaf)}: the query is not known, so its sensitivity cannot be checked."
            )
        elif leaf.sensitivity != sensitivity:
            wrong.append(
                f"{_where(leaf)}: one unit can change {_norms(sensitivity)}, stated is "
                f"{_norms(leaf.sensitivity)}."
            )
    return Check("each query states its sensitivity", not wrong, " ".join(wrong))


def _norms(sensitivity: Sensitivity) -> str:
    return f"l1 = {sensitivity.l1}, l2² = {sensitivity.l2_squared}"


def _where(leaf: MechanismRecord) -> str:
    return leaf.query if leaf.level is None else f"{leaf.query}, level {leaf.level}"


def _check_listed(manifest: Manifest, record: Record) -> Check:
    """The figures per level, which people read, are those of the record, which was just recomputed."""
    privacy = manifest["privacy"]
    symbol = budget_of(privacy).symbol
    shown = [
        privacy,
        *(
            facts
            for part in ("side_queries", "levels", "people")
            for facts in privacy.get(part, [])
        ),
    ]
    listed = [_facts(facts, symbol) for facts in shown if "noise" in facts]
    recorded = [_facts(record_to_json(leaf), "loss") for leaf in measurements(record)]
    same = sorted(listed, key=repr) == sorted(recorded, key=repr)
    return Check(
        "the figures per level agree with the record",
        same,
        "" if same else "sensitivity, noise or loss differ.",
    )


def _facts(facts: Mapping[str, Any], loss: str) -> tuple[Any, ...]:
    bounds = facts["sensitivity"]
    return (
        facts.get("level"),
        noise_from_json(facts),
        bounds["l1"],
        bounds["l2_squared"],
        written_fraction(facts[loss]),
    )

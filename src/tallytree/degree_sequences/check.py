"""The manifest of a degree sequence checked: written again, with its loss and sensitivities recomputed."""

from __future__ import annotations

from tallytree.degree_sequences.release import PlannedQuery, PublicSizes, degrees_manifest
from tallytree.model.part import part_of
from tallytree.privacy.accounting import measurements, record_from_json
from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.guarantee import budget_of, unit_from_json
from tallytree.privacy.sensitivity import (
    Sensitivity,
    edge_degrees_sensitivity,
    edge_nodes_sensitivity,
    group_totals_sensitivity,
    sizes_sensitivity,
)
from tallytree.releases.checks import Check
from tallytree.releases.privacy_checks import Leaves, check_privacy
from tallytree.releases.rewriting import check_written
from tallytree.storage.folder import Folder, Manifest


def degrees_again(folder: Folder) -> Manifest:
    """The manifest of a degree sequence. Told: the method, which questions were asked and what each
    cost, what is public.
    """
    manifest = folder.manifest
    privacy, public, asked = manifest["privacy"], manifest["public"], manifest["mechanism"]
    budget = budget_of(privacy)
    queries = [
        PlannedQuery(
            leaf.query,
            leaf.sensitivity,
            noise_for(Budget(budget.definition, leaf.stated), leaf.sensitivity),
            leaf.stated,
        )
        for leaf in measurements(record_from_json(privacy["composition"]))
    ]
    sizes = PublicSizes(
        unit_from_json(privacy["unit"]),
        "; ".join(privacy["fixed"]) or None,
        None if public["groups"] is None else int(public["groups"]),
        str(public["note"]),
        1 if queries[-1].query == "edge degrees" else int(public["max_quantity"]),
        part_of(manifest),
    )
    promised = {"name": str(asked["name"]), "graphical": bool(asked["graphical"])}
    return degrees_manifest(
        sizes, budget, queries, mechanism=promised, secure=privacy["private"] is True
    )


def expected_sensitivities(folder: Folder, leaves: Leaves) -> list[Sensitivity | None]:
    """The sensitivity that each measurement of a degree sequence must have, by its query."""
    manifest = folder.manifest
    contributions = int(manifest["privacy"]["unit"]["contributions"])
    max_quantity = int(manifest["public"]["max_quantity"])
    known = {
        "sizes": sizes_sensitivity(max_quantity=max_quantity, contributions=contributions),
        "group totals": group_totals_sensitivity(contributions=contributions),
        "edge degrees": edge_degrees_sensitivity(contributions=contributions),
        "nodes": edge_nodes_sensitivity(contributions=contributions),
    }
    return [known.get(leaf.query) for leaf in leaves]


def check_degrees_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that the manifest is that of its question and budget."""
    return (*check_privacy(folder, expected_sensitivities), *check_written(folder, degrees_again))

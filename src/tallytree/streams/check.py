"""The manifest of a stream checked: written again, with its loss and sensitivities recomputed."""

from __future__ import annotations

from tallytree.model.part import part_of
from tallytree.privacy.accounting import measurements
from tallytree.privacy.guarantee import unit_from_json
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.releases.checks import Check
from tallytree.releases.privacy_checks import Leaves, check_privacy
from tallytree.releases.rewriting import check_written
from tallytree.storage.folder import Folder, Manifest
from tallytree.streams.manifest import check_stream_record, steps_of, stream_manifest, stream_plan
from tallytree.streams.plan import usual_epochs


def stream_again(folder: Folder) -> Manifest:
    """The manifest of a stream. Told: its horizon and tree, the steps, and what the rows are."""
    manifest = folder.manifest
    mechanism = manifest["mechanism"]
    manifest = {
        **manifest,
        "mechanism": {**mechanism, "epochs": list(usual_epochs(mechanism["horizon"]))},
    }
    steps, n_steps = steps_of(manifest)
    return stream_manifest(
        stream_plan(manifest),
        steps,
        n_steps,
        unit_from_json(manifest["privacy"]["unit"]),
        note=str(manifest["public"]["rows"]),
        part=part_of(manifest),
        secure=manifest["privacy"]["private"] is True,
        noted="ledger" in manifest["privacy"],
    )


def expected_sensitivities(folder: Folder, leaves: Leaves) -> list[Sensitivity | None]:
    """The sensitivity that each measurement of a stream must have, by its plan."""
    manifest = folder.manifest
    planned = stream_plan(manifest).record(manifest["privacy"]["unit"]["words"])
    by_query = {
        (leaf.query, leaf.level, leaf.noise): leaf.sensitivity for leaf in measurements(planned)
    }
    return [by_query.get((leaf.query, leaf.level, leaf.noise)) for leaf in leaves]


def check_stream_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that record, figures per level and what is held fixed are
    those of the plan.
    """
    cost, sensitivities, _ = check_privacy(folder, expected_sensitivities)
    return (
        cost,
        sensitivities,
        check_stream_record(folder.manifest),
        *check_written(folder, stream_again),
    )

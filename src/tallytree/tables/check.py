"""The manifest of a table checked: written again, with its loss and sensitivities recomputed."""

from __future__ import annotations

from tallytree.privacy.sensitivity import Sensitivity, histogram_sensitivity
from tallytree.releases.checks import Check
from tallytree.releases.privacy_checks import Leaves, check_privacy
from tallytree.releases.region_tables import hierarchy_of_folder
from tallytree.releases.rewriting import check_written
from tallytree.storage.folder import Folder, Manifest
from tallytree.tables.manifest import options_of, plan_from_manifest, table_manifest


def table_again(folder: Folder) -> Manifest:
    """The manifest of a table. Told: what was wanted, the shares, notes on what is public."""
    manifest, tree = folder.manifest, hierarchy_of_folder(folder)
    plan = plan_from_manifest(manifest, tree)
    secure = manifest["privacy"]["private"] is True
    return table_manifest(plan, options_of(manifest), secure=secure)


def expected_sensitivities(folder: Folder, leaves: Leaves) -> list[Sensitivity | None]:
    """The sensitivity that each measurement of a table must have: all are counts of cells."""
    contributions = int(folder.manifest["privacy"]["unit"]["contributions"])
    return [histogram_sensitivity(contributions=contributions) for _ in leaves]


def check_table_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that the manifest is that of its shares and budget."""
    return (*check_privacy(folder, expected_sensitivities), *check_written(folder, table_again))

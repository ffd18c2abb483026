"""The manifest of a histogram checked: written again, with its loss and sensitivities recomputed."""

from __future__ import annotations

from tallytree.model.confidential_histogram import PublicHistogram
from tallytree.model.part import part_of
from tallytree.privacy.guarantee import unit_from_json
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.ranges.manifest import (
    asks_boxes,
    box_histogram_manifest,
    histogram_manifest,
    plan_from_manifest,
)
from tallytree.ranges.plan import HistogramPlan
from tallytree.ranges.tables import rows_from_table
from tallytree.releases.checks import Check
from tallytree.releases.privacy_checks import Leaves, check_privacy
from tallytree.releases.rewriting import check_written, whole_numbers
from tallytree.storage.folder import Folder, Manifest


def histogram_again(folder: Folder) -> Manifest:
    """The manifest of a histogram. Told: the strategy and why it was chosen, how values outside the
    bins count.
    """
    manifest = folder.manifest
    if asks_boxes(manifest):
        from tallytree.boxes.rewriting import boxes_again

        return box_histogram_manifest(boxes_again(folder), str(manifest["mechanism"]["reason"]))
    histogram = PublicHistogram(
        str(manifest["public"]["outside"]),
        unit_from_json(manifest["privacy"]["unit"]),
        part_of(manifest),
    )
    return histogram_manifest(
        plan_of(folder),
        histogram,
        published={**manifest["published"], "integers": whole_numbers(folder, "count")},
        reason=str(manifest["mechanism"]["reason"]),
        secure=manifest["privacy"]["private"] is True,
    )


def expected_sensitivities(folder: Folder, leaves: Leaves) -> list[Sensitivity | None]:
    """The sensitivity that each measurement of a histogram must have, by its strategy."""
    plan = plan_of(folder)
    looked = None if plan.look is None else plan.look.sensitivity
    return [looked if leaf.level is None else plan.sensitivities[leaf.level] for leaf in leaves]


def plan_of(folder: Folder) -> HistogramPlan:
    """The plan of a histogram, with the rows of its strategy where these are a table."""
    manifest, rows = folder.manifest, None
    if folder.has("strategy.parquet"):
        rows = rows_from_table(folder.table("strategy.parquet"), int(manifest["mechanism"]["bins"]))
    return plan_from_manifest(manifest, rows)


def check_histogram_privacy(folder: Folder) -> tuple[Check, ...]:
    """The same as for every kind, and that the manifest is that of its strategy and budget; of
    boxes, the same as for maps.
    """
    if asks_boxes(folder.manifest):
        from tallytree.boxes.rewriting import check_boxes_privacy

        return (*check_boxes_privacy(folder), *check_written(folder, histogram_again))
    return (*check_privacy(folder, expected_sensitivities), *check_written(folder, histogram_again))

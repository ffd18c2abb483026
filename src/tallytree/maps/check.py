"""The manifest of a map checked: written again, with its loss recomputed."""

from __future__ import annotations

from tallytree.boxes.rewriting import boxes_again, check_boxes_privacy
from tallytree.releases.checks import Check
from tallytree.releases.rewriting import check_written
from tallytree.storage.folder import Folder


def check_map_privacy(folder: Folder) -> tuple[Check, ...]:
    """The loss of a map, and that its manifest is that of its method and budget."""
    return (*check_boxes_privacy(folder), *check_written(folder, boxes_again))

"""What maps and histograms of boxes are checked by: the manifest written again, the loss added up."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from tallytree.boxes.checks import check_charges, check_steps
from tallytree.boxes.manifest import planned_manifest, published_way
from tallytree.boxes.release import load_map
from tallytree.boxes.tables import axes_of_folder
from tallytree.model.confidential_grid import PublicGrid
from tallytree.model.part import part_of
from tallytree.options.choices import MapMethod
from tallytree.options.maps import MethodOptions
from tallytree.privacy.guarantee import budget_of, unit_from_json
from tallytree.releases.checks import Check
from tallytree.releases.rewriting import whole_numbers
from tallytree.storage.folder import Folder, Manifest

# What a map may promise about counts below 0: none are left, by one of these rules, or nothing is
# done about them.
_MAP_RULES = (True, False, "least-squares", "subtree")


def boxes_again(folder: Folder) -> Manifest:
    """The manifest of a map. Told: the method and its parameters, the box, every step but what it
    cost and how many boxes it was about, and what standard errors include.
    """
    manifest = folder.manifest
    privacy, asked, published = manifest["privacy"], manifest["mechanism"], manifest["published"]
    options = MethodOptions.told({**asked, "mechanism": asked["asked_for"]})
    axes = axes_of_folder(folder)
    ends = manifest["box"] if axes is None else [(axis.edges[0], axis.edges[-1]) for axis in axes]
    grid = PublicGrid(
        tuple((float(low), float(high)) for low, high in ends),
        tuple(map(str, manifest["columns"])),
        tuple(map(int, manifest["resolution"])),
        str(manifest["public"]["outside"]),
        unit_from_json(privacy["unit"]),
        part_of(manifest),
        str(manifest.get("crs", "")),
    )
    rule = published["nonnegative"] if published["nonnegative"] in _MAP_RULES else None
    plain = {"nonnegative": rule is not None and rule, "integers": whole_numbers(folder, "count")}
    again = planned_manifest(
        grid, budget_of(privacy), options, published=plain, secure=privacy["private"] is True
    )
    method = options.mechanism
    if method == "auto":  # one of the methods was chosen, which one is told
        method = asked["name"] if asked["name"] in get_args(MapMethod) else method
    steps = privacy["steps"]
    if folder.has("noisy.parquet"):
        steps = _with_boxes(steps, folder)
    way = published_way(method, plain["nonnegative"])
    # Histograms of boxes say so, and why.
    more = {name: asked[name] for name in ("reason", "kind") if name in asked}
    return again | {
        "mechanism": {"name": method, **again["mechanism"], **more},
        "published": plain | way,
        "privacy": {**again["privacy"], "steps": steps},
        "public": {**again["public"], "box": str(manifest["public"]["box"])},
        "uniformity": manifest["uniformity"],
    }


def _with_boxes(steps: list[dict[str, Any]], folder: Folder) -> list[dict[str, Any]]:
    """Steps that counted boxes with the query and the number of boxes that the table of answers
    has.
    """
    table = folder.table("noisy.parquet")
    _, first, boxes = np.unique(table["step"].to_numpy(), return_index=True, return_counts=True)
    counted = iter(
        [
            (table["query"][place].as_py(), n_boxes)
            for place, n_boxes in zip(first.tolist(), boxes.tolist())
        ]
    )
    found = []
    for step in steps:
        query, n_boxes = (
            next(counted, ("", 0)) if "noise" in step else (step["query"], step["boxes"])
        )
        found.append({**step, "query": query, "boxes": n_boxes})
    return found


def check_boxes_privacy(folder: Folder) -> tuple[Check, ...]:
    """Which boxes are asked about follows from noisy answers, so their loss is added up cell by
    cell.
    """
    made = load_map(folder)
    checks = [check_steps(folder.manifest)]
    if made.noisy is not None:
        checks.append(check_charges(made.estimates, folder.manifest, made.noisy))
    return tuple(checks)

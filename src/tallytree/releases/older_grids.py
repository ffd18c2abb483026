"""Folders of the former kind ``grid-histogram``, read as the maps that they are.

Such a folder holds cells, and noisy counts of nested blocks: every axis cut into blocks of one
width per level, the last ones possibly short. Blocks are boxes and levels are steps, so that one
reading serves both. Flat grids were divided by halves of every axis where nothing was measured, to
make counts nonnegative and whole; these halves are boxes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.boxes.draft import Measurement
from tallytree.boxes.estimates import MapEstimates, sums_of_leaves
from tallytree.boxes.manifest import COMPOSITION, KIND, UNIFORMITY
from tallytree.boxes.release import noise_variances
from tallytree.boxes.tables import axes_of_folder, boxes_table, noisy_table
from tallytree.errors import VerificationError
from tallytree.model.arrays import AnyArray, IntArray, offsets_from_lengths
from tallytree.model.box_tree import BoxTree
from tallytree.model.frame import frame_of
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.accounting import measurements, record_from_json, record_to_json
from tallytree.privacy.guarantee import budget_of
from tallytree.ranges.tables import noisy_from_table
from tallytree.storage.folder import MANIFEST, Folder, Manifest


def as_map(folder: Folder) -> Folder:
    """The folder as that of a map: manifest and tables as maps have them, files and checksums as
    they are.
    """
    return GridFolder(
        folder.path, folder.version, _manifest(folder), folder.files, folder.split, folder
    )


@dataclass(frozen=True, eq=False)
class GridFolder(Folder):
    """A folder of cells and nested blocks; ``written`` is as it was written."""

    written: Folder

    def table(self, name: str, **how: Any) -> pa.Table:
        """One table of a map, made from what is there."""
        match name:
            case "counts.parquet":
                axes = axes_of_folder(self.written)
                assert axes is not None  # the manifest was made from them
                return boxes_table(self._estimates, tuple(self.manifest["columns"]), frame_of(axes))
            case "noisy.parquet":
                return noisy_table(self._measurements)
            case _:
                return super().table(name, **how)

    @cached_property
    def _blocks(self) -> Blocks:
        facts, shape = self.written.manifest["mechanism"], tuple(self.manifest["resolution"])
        widths = tuple(facts["widths"])
        if len(widths) == 1 and self.manifest["published"]["nonnegative"] in ("evenly", False):
            widths = RangeTree.regular(max(shape), 2).widths
        return nested_blocks(shape, widths)

    @cached_property
    def _measurements(self) -> tuple[Measurement, ...]:
        facts, variances = self.written.manifest["mechanism"], noise_variances(self.manifest)
        levels = noisy_from_table(self.written.table("noisy.parquet"), len(facts["shares"]))
        found = zip(facts["shares"][::-1], levels[::-1], self._blocks.levels[::-1])
        return tuple(
            Measurement("block", Fraction(share), nodes, values, variances[share])
            for share, values, nodes in found
            if Fraction(share) > 0
        )[::-1]

    @cached_property
    def _estimates(self) -> MapEstimates:
        tree, cells = self._blocks.tree, self._blocks.levels[-1]
        table = self.written.table("counts.parquet")
        variances = np.full(tree.n_nodes, np.inf)
        noise, facts = noise_variances(self.manifest), self.written.manifest["mechanism"]
        for share, nodes in zip(facts["shares"][::-1], self._blocks.levels[::-1]):
            variances[nodes] = noise.get(share, np.inf)

        def of_boxes(name: str) -> AnyArray:
            found = table[name].to_numpy()
            by_node = np.zeros(tree.n_nodes, dtype=found.dtype)
            by_node[cells] = found
            return sums_of_leaves(tree, by_node)

        return MapEstimates(
            tree, variances, of_boxes("estimate"), of_boxes("count"), np.array(tree.is_leaf)
        )


@dataclass(frozen=True, eq=False)
class Blocks:
    """Nested blocks over a grid as a tree of boxes; ``levels`` hold the nodes of each width in
    row-major order.
    """

    tree: BoxTree
    levels: tuple[IntArray, ...]


def nested_blocks(shape: tuple[int, ...], widths: tuple[int, ...]) -> Blocks:
    """The blocks of each width, the coarsest first, below a root where the first level is more than
    one block.
    """
    whole = np.zeros((1, len(shape)), dtype=np.int64)
    low, high, children, levels = [whole], [np.array([shape])], [], []
    rank, n_nodes, above = np.zeros(1, dtype=np.int64), 1, max(*shape, widths[0])
    for level, width in enumerate(widths):
        blocks = tuple(-(-size // width) for size in shape)
        places = np.stack(np.unravel_index(np.arange(math.prod(blocks)), blocks), axis=1) * width
        outer = tuple(-(-size // above) for size in shape)
        parent = rank[np.ravel_multi_index(tuple((places // above).T), outer)]
        order = np.argsort(parent, kind="stable")
        if level > 0 or len(order) > 1:
            low.append(places[order])
            high.append(np.minimum(places[order] + width, np.array(shape)))
            children.append(np.bincount(parent, minlength=len(rank)))
            first, n_nodes = n_nodes, n_nodes + len(order)
        else:
            first = 0  # one block that is the whole grid is the root itself
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        levels.append(first + rank)
        above = width
    cells = np.zeros(len(rank), dtype=np.int64)
    starts = 1 + offsets_from_lengths(np.concatenate([*children, cells]))
    return Blocks(BoxTree(shape, np.concatenate(low), np.concatenate(high), starts), tuple(levels))


def _manifest(folder: Folder) -> Manifest:
    """The manifest of a map, from that of a grid histogram and its axes."""
    old = folder.manifest
    axes = axes_of_folder(folder)
    facts, published, privacy = old["mechanism"], old["published"], old["privacy"]
    if axes is None or [axis.n_bins for axis in axes] != facts["shape"]:
        raise VerificationError(
            f"{folder.path} is not a whole release: its axes and its cells do not fit.", (MANIFEST,)
        )
    rule = {"top-down": True, "no": False}.get(published["nonnegative"], published["nonnegative"])
    if rule is True and len(facts["widths"]) == 1:
        rule = "evenly"
    names = (
        ("x", "y", "z")[: len(axes)]
        if len(axes) <= 3
        else tuple(f"x{axis}" for axis in range(len(axes)))
    )
    asked = dict.fromkeys(("n_points", "alpha", "cells", "depth", "branching", "prune"))
    frame = frame_of(axes)
    rest = {
        name: value
        for name, value in old.items()
        if name not in ("kind", "mechanism", "published", "privacy", "public")
    }
    return {
        "kind": KIND,
        "mechanism": {
            "name": facts["name"],
            "asked_for": facts["name"],
            **asked,
            "reason": facts["reason"],
        },
        "columns": list(names),
        "box": [list(side) for side in frame.box],
        "resolution": list(frame.shape),
        "uniformity": UNIFORMITY,
        "published": {"nonnegative": rule, "integers": published["integers"], "sparse": False},
        "privacy": {
            **{
                name: value
                for name, value in privacy.items()
                if name not in ("levels", "composition")
            },
            "composition": COMPOSITION,
            "steps": _steps(folder),
        },
        "public": {
            "box": old["public"]["bins"],
            "outside": old["public"]["outside"],
            "number_of_points": "not public",
        },
        **rest,
    }


def _steps(folder: Folder) -> list[dict[str, Any]]:
    """The levels as steps, after a look that they are what the record of the measurements lists."""
    manifest = folder.manifest
    privacy, shape = manifest["privacy"], manifest["mechanism"]["shape"]
    symbol = budget_of(privacy).symbol
    contributions = int(privacy["unit"]["contributions"])
    bound = {"l1": contributions, "l2_squared": contributions**2}
    measured = [level for level in privacy["levels"] if "noise" in level]
    recorded = [
        record_to_json(part) for part in measurements(record_from_json(privacy["composition"]))
    ]
    noise = ("level", "noise", "scale", "sigma2", "sensitivity")
    if [{**_some(level, noise), "loss": level[symbol]} for level in measured] != [
        _some(part, (*noise, "loss")) for part in recorded
    ] or any(level["sensitivity"] != bound for level in measured):
        raise VerificationError(
            f"{folder.path}: the figures per level differ from the record of measurements.",
            (MANIFEST,),
        )
    return [
        {
            "query": "block",
            "boxes": math.prod(
                -(-size // manifest["mechanism"]["widths"][level["level"]]) for size in shape
            ),
            "share": level["share"],
            **_some(level, (symbol, "noise", "scale", "sigma2")),
        }
        for level in measured
    ]


def _some(facts: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: facts[name] for name in names if name in facts}

"""The manifest of a map: how it was made, what every step cost and what is public."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from tallytree.boxes.measure import NoisyMap, Step
from tallytree.boxes.methods import method_named
from tallytree.model.confidential_grid import PublicGrid
from tallytree.model.part import kept_rows
from tallytree.options.maps import MethodOptions
from tallytree.privacy.accounting import noise_to_json
from tallytree.privacy.budget import Budget
from tallytree.privacy.guarantee import Guarantee, guarantee_to_json
from tallytree.storage.folder import Manifest
from tallytree.version import library_versions

KIND = "map"
UNIFORMITY = (
    "Inside a box points count as evenly spread; a query that cuts a box takes the share of its "
    "area. Standard errors "
    "include what that may cost, estimated from how unevenly the boxes of the map divide."
)
COMPOSITION = {
    "composition": "cells",
    "meaning": "boxes of one step do not overlap; the shares of the steps that ask about a cell "
    "add up to at most 1",
}


def planned_manifest(
    grid: PublicGrid,
    budget: Budget,
    options: MethodOptions,
    *,
    published: dict[str, Any],
    secure: bool,
) -> Manifest:
    """What can be said about a map before it is measured, all of it public."""
    asked = {
        field.name: getattr(options, field.name)
        for field in fields(MethodOptions)
        if field.name != "mechanism"
    }
    return {
        "kind": KIND,
        "mechanism": {"asked_for": options.mechanism}
        | asked
        | {"alpha": options.coarse_share and str(options.coarse_share)},
        "columns": list(grid.columns),
        "box": [list(side) for side in grid.box],
        **({"crs": grid.crs} if grid.crs else {}),
        "resolution": list(grid.shape),
        "uniformity": UNIFORMITY,
        "published": published,
        "privacy": {
            **guarantee_to_json(Guarantee(budget, grid.unit, (), secure)),
            "composition": COMPOSITION,
        },
        "public": {
            "box": "the bounding box and the resolution of the grid that points are counted on",
            "outside": grid.note,
            "number_of_points": "not public"
            if options.n_points is None
            else f"stated as public: {options.n_points}",
        },
        **kept_rows(grid.part),
        "versions": library_versions(),
    }


def with_measurements(manifest: Manifest, noisy: NoisyMap) -> Manifest:
    """The manifest with the method that was used and every step that was paid for."""
    steps = [describe_step(step, noisy.budget) for step in noisy.steps]
    published = manifest["published"]
    return manifest | {
        "published": published | published_way(noisy.method, published["nonnegative"]),
        "mechanism": {"name": noisy.method, **manifest["mechanism"]},
        "privacy": {**manifest["privacy"], "steps": steps},
    }


def published_way(method: str, nonnegative: object) -> dict[str, bool]:
    """How the counts of a method are made nonnegative, where the method has a way of its own."""
    used = method_named(method)
    way = {"sparse": used.sparse, "smoothed": used.smoothed}
    chosen = {name: nonnegative is True and chosen for name, chosen in way.items()}
    clustered = used.clusters is not None and isinstance(nonnegative, bool)
    return chosen | ({"clustered": True} if clustered else {})


def describe_step(step: Step, budget: Budget) -> dict[str, Any]:
    """One paid question."""
    facts: dict[str, Any] = {
        "query": step.query,
        "boxes": step.boxes,
        "share": str(step.share),
        budget.symbol: str(step.share * budget.total),
    }
    if step.noise is not None:
        return facts | noise_to_json(step.noise)
    if step.compared is not None:
        return facts | {"mechanism": "noisy comparisons", "scale": str(step.compared.scale)}
    cut_off = {} if step.largest is None else {"largest_count": step.largest}
    return facts | {"mechanism": "exponential", "rate": str(step.rate)} | cut_off

"""The manifest of a map: how it was made, what every step cost and what is public."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tallytree.measure.spatial import NoisyMap, Step
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.privacy.accounting import noise_to_json
from tallytree.privacy.budget import Budget
from tallytree.spatial.options import MethodOptions
from tallytree.storage.folder import Manifest
from tallytree.storage.versions import library_versions

KIND = "map"
UNIFORMITY = (
    "Inside a box points count as evenly spread; a query that cuts a box takes the share of its area. Standard errors are of "
    "the noise alone and do not include what that assumption costs."
)


def map_manifest(
    noisy: NoisyMap, grid: ConfidentialGrid, options: MethodOptions, *, published: dict[str, Any], secure: bool
) -> Manifest:
    """Everything that ``manifest.json`` says about a map, all of it public."""
    budget = noisy.budget
    unit = (
        f"one {grid.entity}"
        if grid.contributions == 1
        else f"all rows of one {grid.entity}, at most {grid.contributions}"
    )
    return {
        "kind": KIND,
        "method": {
            "name": noisy.method,
            "asked_for": options.method,
            "alpha": None if options.alpha is None else str(options.alpha),
            **{name: getattr(options, name) for name in ("cells", "depth", "branching", "prune")},
        },
        "columns": list(grid.columns),
        "box": [list(side) for side in grid.box],
        "resolution": list(grid.shape),
        "uniformity": UNIFORMITY,
        "published": published,
        "privacy": {
            "private": secure,
            "definition": budget.definition,
            budget.symbol: str(budget.total),
            "unit": unit,
            "contributions": grid.contributions,
            "neighbours": "add or remove one unit",
            "statement": privacy_statement(budget, unit, secure=secure),
            "composition": "boxes of one step do not overlap; the steps that ask about a cell share the whole budget",
            "steps": [describe_step(step, budget) for step in noisy.steps],
        },
        "public": {
            "box": "the bounding box and the resolution of the grid that points are counted on",
            "outside": grid.note,
            "number_of_points": "not public" if options.n_points is None else f"stated as public: {options.n_points}",
        },
        "versions": library_versions(),
    }


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
    return facts | {"mechanism": "exponential", "rate": str(step.rate)}


def privacy_statement(budget: Budget, unit: str, *, secure: bool) -> str:
    """What is protected, in one sentence of plain English."""
    if not secure:
        return "NOT PRIVATE: the noise came from an insecure seed, for tests and experiments only."
    if budget.definition == "pure":
        return (
            f"Adding or removing {unit} changes the probability of any outcome by a factor of at most e^{budget.total}."
        )
    return f"Adding or removing {unit} is hidden with zero-concentrated differential privacy, rho = {budget.total}."


def budget_of(manifest: Manifest) -> Budget:
    """The budget that a manifest states."""
    privacy = manifest["privacy"]
    symbol = "epsilon" if privacy["definition"] == "pure" else "rho"
    return Budget(privacy["definition"], Fraction(privacy[symbol]))

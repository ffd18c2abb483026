"""The manifest of a range histogram: how it was made and what it promises, enough to load it and to check it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.model.confidential_histogram import ConfidentialHistogram
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.accounting import Composition, MechanismRecord, record_to_json
from tallytree.privacy.budget import Budget
from tallytree.privacy.noise import DiscreteLaplace, Noise
from tallytree.ranges.plan import HistogramPlan, plan_histogram
from tallytree.ranges.strategies import (
    GridStrategy,
    MatrixStrategy,
    Strategy,
    TreeStrategy,
    WaveletStrategy,
    query_name,
)
from tallytree.release.manifest import kept_rows
from tallytree.storage.folder import Manifest
from tallytree.storage.versions import library_versions

KIND = "histogram"
GRID_KIND = "grid-histogram"


def histogram_manifest(
    plan: HistogramPlan, histogram: ConfidentialHistogram, *, published: dict[str, Any], reason: str, secure: bool
) -> Manifest:
    """Everything that ``manifest.json`` says about a range histogram, all of it public."""
    loss = plan.budget.symbol
    return {
        "kind": KIND if len(histogram.axes) == 1 else GRID_KIND,
        "strategy": describe_strategy(plan.strategy) | {"reason": reason},
        "published": published,
        "privacy": {
            "private": secure,
            "definition": plan.budget.definition,
            loss: str(plan.budget.total),
            "unit": unit_in_words(histogram),
            "unit_column": unit_name(histogram),
            "unit_name": histogram.unit or histogram.entity,
            "unit_rows": "several" if unit_name(histogram) else "one",
            "contributions": histogram.contributions,
            "neighbours": "add or remove one unit",
            "statement": privacy_statement(plan.budget, unit_in_words(histogram), secure=secure),
            "levels": [_level(plan, level, loss) for level in range(len(plan.noise))],
            "composition": record_to_json(composition_of(plan, unit_in_words(histogram))),
        },
        "public": {"bins": "the edges or categories of the bins", "outside": histogram.note},
        **kept_rows(histogram.part),
        "versions": library_versions(),
    }


def composition_of(plan: HistogramPlan, unit: str) -> Composition:
    """The tree of all measurements of a plan: its levels, one after the other."""
    name, query = plan.strategy.name, query_name(plan.strategy)
    return Composition(
        "sequential",
        tuple(
            MechanismRecord(name, level, query, unit, plan.sensitivities[level], noise, plan.budget.total * share)
            for level, (noise, share) in enumerate(zip(plan.noise, plan.strategy.shares))
            if noise is not None
        ),
    )


def unit_in_words(data: ConfidentialHistogram | ConfidentialGrid) -> str:
    """What is protected: one entity, or all entities of a unit."""
    if data.unit:
        return f"all rows of one {data.unit} (of which at most {data.contributions} are counted)"
    return (
        f"one {data.entity}"
        if data.contributions == 1
        else f"all rows of one {data.entity}, at most {data.contributions}"
    )


def unit_name(data: ConfidentialHistogram | ConfidentialGrid) -> str | None:
    """The name of a unit of several entities, by which the ledger knows it; None for one entity."""
    return data.unit or (data.entity if data.contributions > 1 else None)


def privacy_statement(budget: Budget, unit: str, *, secure: bool) -> str:
    """What is protected, in one sentence of plain English."""
    if not secure:
        return "NOT PRIVATE: the noise came from an insecure seed, for tests and experiments only."
    if budget.definition == "pure":
        return (
            f"Adding or removing {unit} changes the probability of any outcome by a factor of at most e^{budget.total}."
        )
    return f"Adding or removing {unit} is hidden with zero-concentrated differential privacy, rho = {budget.total}."


def _level(plan: HistogramPlan, level: int, loss: str) -> dict[str, Any]:
    share, noise, bound = plan.strategy.shares[level], plan.noise[level], plan.sensitivities[level]
    facts: dict[str, Any] = {"level": level, "query": query_name(plan.strategy), "share": str(share)}
    facts[loss] = str(plan.budget.total * share)
    if noise is not None:
        facts["sensitivity"] = {"l1": bound.l1, "l2_squared": bound.l2_squared}
        facts |= describe_noise(noise)
    return facts


def describe_noise(noise: Noise) -> dict[str, str]:
    """Kind and exact scale of noise."""
    if isinstance(noise, DiscreteLaplace):
        return {"noise": "discrete Laplace", "scale": str(noise.scale)}
    return {"noise": "discrete Gaussian", "variance": str(noise.sigma2)}


def describe_strategy(strategy: Strategy) -> dict[str, Any]:
    """A strategy as the manifest holds it; the rows of a matrix are a table of their own."""
    facts: dict[str, Any] = {"name": strategy.name, "bins": strategy.n_bins}
    match strategy:
        case TreeStrategy():
            facts |= {"kind": "tree", "widths": list(strategy.tree.widths)}
        case WaveletStrategy():
            facts |= {"kind": "wavelet"}
        case MatrixStrategy():
            facts |= {"kind": "matrix", "rows": len(strategy.rows)}
        case GridStrategy():
            facts |= {"kind": "grid", "shape": list(strategy.shape), "widths": list(strategy.widths)}
    return facts | {"shares": [str(share) for share in strategy.shares]}


def strategy_from_manifest(facts: dict[str, Any], rows: IntArray | None) -> Strategy:
    """The strategy that :func:`describe_strategy` described."""
    shares = tuple(Fraction(share) for share in facts["shares"])
    match facts["kind"]:
        case "tree":
            return TreeStrategy(facts["name"], RangeTree(int(facts["bins"]), tuple(facts["widths"])), shares)
        case "wavelet":
            return WaveletStrategy(int(facts["bins"]), shares)
        case "matrix" if rows is not None:
            return MatrixStrategy(facts["name"], rows)
        case "grid":
            return GridStrategy(facts["name"], tuple(facts["shape"]), tuple(facts["widths"]), shares)
    raise RequestError(f"The manifest names a strategy of unknown kind {facts['kind']!r}. Upgrade tallytree.")


def plan_from_manifest(manifest: Manifest, rows: IntArray | None) -> HistogramPlan:
    """The plan that a manifest describes; its noise is computed anew from budget and sensitivity, not believed."""
    privacy = manifest["privacy"]
    loss = "epsilon" if privacy["definition"] == "pure" else "rho"
    budget = Budget(privacy["definition"], Fraction(privacy[loss]))
    strategy = strategy_from_manifest(manifest["strategy"], rows)
    return plan_histogram(strategy, budget, contributions=int(privacy["contributions"]))

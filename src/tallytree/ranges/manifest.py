"""The manifest of a range histogram: how it was made and what it promises, enough to load it and to
check it.
"""

from __future__ import annotations

from typing import Any

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.confidential_histogram import PublicHistogram
from tallytree.model.part import kept_rows
from tallytree.model.range_tree import RangeTree
from tallytree.privacy.accounting import Composition, MechanismRecord, noise_to_json, record_to_json
from tallytree.privacy.budget import Budget, written_fraction
from tallytree.privacy.guarantee import Guarantee, budget_of, guarantee_to_json
from tallytree.ranges.plan import HistogramPlan, Look, plan_histogram
from tallytree.storage.folder import Manifest
from tallytree.strategies.hats import HatLevel, Hats
from tallytree.strategies.strategies import (
    HatStrategy,
    MatrixStrategy,
    Strategy,
    TreeStrategy,
    WaveletStrategy,
    query_name,
)
from tallytree.version import library_versions

KIND = "histogram"
BOXES = "boxes"
LOOK = "number of points"


def histogram_manifest(
    plan: HistogramPlan,
    histogram: PublicHistogram,
    *,
    published: dict[str, Any],
    reason: str,
    secure: bool,
) -> Manifest:
    """Everything that ``manifest.json`` says about a range histogram, all of it public."""
    unit, look = histogram.unit, plan.look
    return {
        "kind": KIND,
        "mechanism": describe_strategy(plan.strategy)
        | {"reason": reason}
        | ({} if look is None else {"look": str(look.share)}),
        "published": published,
        "privacy": {
            **guarantee_to_json(Guarantee(plan.budget, unit, (), secure)),
            "levels": [_level(plan, level) for level in range(len(plan.noise))],
            **({} if look is None else {"side_queries": [_side_query(look, plan.budget)]}),
            "composition": record_to_json(composition_of(plan, unit.words)),
        },
        "public": {"bins": "the edges or categories of the bins", "outside": histogram.note},
        **kept_rows(histogram.part),
        "versions": library_versions(),
    }


def box_histogram_manifest(planned: Manifest, reason: str) -> Manifest:
    """The manifest of a map of one column as that of a histogram whose bins are tiled by boxes."""
    return planned | {
        "kind": KIND,
        "mechanism": planned["mechanism"] | {"kind": BOXES, "reason": reason},
        "public": {"bins": "the edges or categories of the bins", **planned["public"]},
    }


def asks_boxes(manifest: Manifest) -> bool:
    """Whether a histogram asks about boxes chosen by noisy answers; the others ask what a strategy
    laid out before.
    """
    return bool(manifest["mechanism"].get("kind") == BOXES)


def composition_of(plan: HistogramPlan, unit: str) -> Composition:
    """The tree of all measurements of a plan: its levels, one after the other."""
    name, query, look = plan.strategy.name, query_name(plan.strategy), plan.look
    first: tuple[MechanismRecord, ...] = ()
    if look is not None:
        cost = plan.budget.total * look.share
        first = (MechanismRecord(name, None, LOOK, unit, look.sensitivity, look.noise, cost),)
    levels = tuple(
        MechanismRecord(
            name, level, query, unit, plan.sensitivities[level], noise, plan.loss(level)
        )
        for level, noise in enumerate(plan.noise)
        if noise is not None
    )
    return Composition("sequential", (*first, *levels))


def _side_query(look: Look, budget: Budget) -> dict[str, Any]:
    """The look, as the manifest lists it beside the levels."""
    bound = {"l1": look.sensitivity.l1, "l2_squared": look.sensitivity.l2_squared}
    facts = {
        "query": LOOK,
        "share": str(look.share),
        budget.symbol: str(budget.total * look.share),
        "sensitivity": bound,
    }
    return facts | noise_to_json(look.noise)


def _level(plan: HistogramPlan, level: int) -> dict[str, Any]:
    share, noise, bound = plan.strategy.shares[level], plan.noise[level], plan.sensitivities[level]
    facts: dict[str, Any] = {
        "level": level,
        "query": query_name(plan.strategy),
        "share": str(share),
    }
    facts[plan.budget.symbol] = str(plan.loss(level))
    if noise is not None:
        facts["sensitivity"] = {"l1": bound.l1, "l2_squared": bound.l2_squared}
        facts |= noise_to_json(noise)
    return facts


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
        case HatStrategy():
            levels = [
                {"spacing": level.spacing, "height": level.height} for level in strategy.hats.levels
            ]
            facts |= {"kind": "hats", "levels": levels, "crowding": strategy.hats.crowding}
    return facts | {"shares": [str(share) for share in strategy.shares]}


def strategy_from_manifest(facts: dict[str, Any], rows: IntArray | None) -> Strategy:
    """The strategy that :func:`describe_strategy` described."""
    shares = tuple(written_fraction(share) for share in facts["shares"])
    match facts["kind"]:
        case "tree":
            return TreeStrategy(
                facts["name"], RangeTree(int(facts["bins"]), tuple(facts["widths"])), shares
            )
        case "wavelet":
            return WaveletStrategy(int(facts["bins"]), shares)
        case "matrix" if rows is not None:
            return MatrixStrategy(facts["name"], rows)
        case "hats":
            levels = tuple(
                HatLevel(int(level["spacing"]), int(level["height"])) for level in facts["levels"]
            )
            return HatStrategy(
                facts["name"], Hats(int(facts["bins"]), levels, int(facts["crowding"]))
            )
    raise RequestError(
        f"The manifest names a strategy of unknown kind {facts['kind']!r}. Upgrade tallytree."
    )


def plan_from_manifest(manifest: Manifest, rows: IntArray | None) -> HistogramPlan:
    """The plan that a manifest describes; its noise is computed anew from budget and sensitivity,
    not believed.
    """
    privacy = manifest["privacy"]
    strategy = strategy_from_manifest(manifest["mechanism"], rows)
    look = manifest["mechanism"].get("look")
    return plan_histogram(
        strategy,
        budget_of(privacy),
        contributions=int(privacy["unit"]["contributions"]),
        look=None if look is None else written_fraction(look),
    )

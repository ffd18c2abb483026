"""Checks that a map must pass."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.boxes.draft import Measurement, combine_measurements
from tallytree.boxes.estimates import MapEstimates, MapRule, nonnegative_counts
from tallytree.boxes.measure import CellCharges, parts_noise, splits_noise
from tallytree.boxes.methods import method_named
from tallytree.kernels.trees.least_squares import tree_least_squares
from tallytree.kernels.trees.rounding import round_tree
from tallytree.model.arrays import FloatArray, IntArray
from tallytree.privacy.accounting import noise_from_json
from tallytree.privacy.budget import Budget, noise_for, written_fraction
from tallytree.privacy.exponential import exponential_rate
from tallytree.privacy.guarantee import budget_of
from tallytree.privacy.sensitivity import (
    deviation_score_sensitivity,
    histogram_sensitivity,
    median_score_sensitivity,
    squares_score_sensitivity,
)
from tallytree.releases.checks import Check, Verification
from tallytree.storage.folder import Manifest

CLOSE = 1e-9


def check_map(
    estimates: MapEstimates, manifest: Manifest, measurements: Sequence[Measurement] | None
) -> Verification:
    """All checks; the last two need the raw measurements."""
    tree, published = estimates.tree, estimates.published
    promised = manifest["published"]
    checks = [
        Check("boxes tile the map", tree.tiles() and _is_tiling(estimates)),
        Check("counts add up from boxes to the boxes around them", _adds_up(estimates, published)),
        check_steps(manifest),
    ]
    if promised["nonnegative"]:
        checks.append(Check("counts are nonnegative", bool(np.all(published >= 0))))
    if promised["integers"]:
        checks.append(Check("counts are whole numbers", published.dtype == np.int64))
    if measurements is not None:
        checks.append(check_charges(estimates, manifest, measurements))
        checks.append(
            Check("counts follow from the noisy ones", _follows(estimates, manifest, measurements))
        )
    return Verification(tuple(checks))


def _is_tiling(estimates: MapEstimates) -> bool:
    """Leaves of the map tile it: their volumes add up to it and no leaf lies below another."""
    tree, leaves = estimates.tree, estimates.leaves
    return not bool(np.any(tree.below(leaves) & leaves)) and int(tree.volume[leaves].sum()) == int(
        tree.volume[0]
    )


def _adds_up(estimates: MapEstimates, values: FloatArray | IntArray) -> bool:
    tree = estimates.tree
    if tree.n_nodes == 1:
        return True
    sums = np.bincount(
        tree.parent[1:], weights=values[1:].astype(np.float64), minlength=tree.n_nodes
    )
    inner = ~tree.is_leaf
    scale = max(1.0, float(np.abs(values).max()))
    return bool(np.all(np.abs(sums[inner] - values[inner]) <= CLOSE * scale))


def check_steps(manifest: Manifest) -> Check:
    """Noise and rates of every step, worked out anew from its share of the budget, are the stated
    ones.
    """
    try:
        holds = _noise_holds(manifest)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        holds = False
    return Check("noise and rates of every step cost what the manifest states", holds)


def _noise_holds(manifest: Manifest) -> bool:
    """Whether noise and rates, worked out anew from shares and sensitivities, are the stated ones."""
    budget, contributions = (
        budget_of(manifest["privacy"]),
        int(manifest["privacy"]["unit"]["contributions"]),
    )
    for step in manifest["privacy"]["steps"]:
        part = Budget(budget.definition, budget.total * written_fraction(step["share"]))
        if str(part.total) != step[budget.symbol]:
            return False
        if "noise" in step:
            if noise_from_json(step) != noise_for(
                part, histogram_sensitivity(contributions=contributions)
            ):
                return False
        elif "scale" in step:
            dimensions = len(manifest["resolution"])
            law = parts_noise(part, contributions) if step["query"] == "parts" else None
            if (
                written_fraction(step["scale"])
                != (law or splits_noise(part, dimensions, contributions)).scale
            ):
                return False
        elif written_fraction(step["rate"]) != _rate_of(step, part, contributions):
            return False
    return True


def _rate_of(step: dict[str, Any], part: Budget, contributions: int) -> Fraction:
    """The rate of a step that chooses, worked out anew."""
    match step["query"]:
        case (
            "right boundaries"
        ):  # one after the other over the same bins, so that they share the step's budget
            one = Budget(part.definition, part.total / int(step["boxes"]))
            bound = squares_score_sensitivity(
                int(step["largest_count"]), contributions=contributions
            )
            return exponential_rate(one, bound.l1)
        case "boundary":
            return exponential_rate(
                part, deviation_score_sensitivity(contributions=contributions).l1
            )
        case _:
            return exponential_rate(part, median_score_sensitivity(contributions=contributions).l1)


def check_charges(
    estimates: MapEstimates, manifest: Manifest, measurements: Sequence[Measurement]
) -> Check:
    """What every cell was asked for, added up from the raw measurements."""
    within = _within_budget(estimates, manifest, measurements)
    return Check("no cell was asked for more than the whole budget", within)


def _within_budget(
    estimates: MapEstimates, manifest: Manifest, measurements: Sequence[Measurement]
) -> bool:
    """Whether the counts of every cell stay within the whole budget, with choices and counts that
    were not kept on top.
    """
    charges = CellCharges(estimates.tree.shape)
    tree, kept = estimates.tree, {one.query for one in measurements}
    unseen = [
        step
        for step in manifest["privacy"]["steps"]
        if "noise" not in step or step["query"] not in kept
    ]
    on_top = sum((Fraction(step["share"]) for step in unseen), Fraction(0))
    try:
        for one in measurements:
            charges.charge(*one.boxes(tree), one.share)
    except ValueError:
        return False
    return charges.most() + on_top <= 1


def _follows(
    estimates: MapEstimates, manifest: Manifest, measurements: Sequence[Measurement]
) -> bool:
    """Whether the unbiased estimates follow from the noisy counts, and what is published from them.

    What is published is worked out from the unbiased estimates as they were saved: a tie that
    another machine rounded the other way is then no difference.
    """
    tree, promised, unbiased = estimates.tree, manifest["published"], estimates.unbiased
    values, variances = combine_measurements(tree.n_nodes, list(measurements))
    again = tree_least_squares(values, variances, tree.child_starts)
    scale = CLOSE * max(1.0, float(np.abs(again).max()))
    if not np.allclose(again, unbiased, rtol=0, atol=scale) or not np.allclose(
        variances, estimates.variances
    ):
        return False
    rule: MapRule = promised["nonnegative"]
    way: dict[str, Any] = {name: promised[name] for name in ("sparse", "smoothed")}
    if promised.get("clustered", False):
        clusters = method_named(manifest["mechanism"]["name"]).clusters
        if clusters is None or not clusters.agree(measurements):
            return False
        way["clustered"] = clusters.cells(tree, measurements, nonnegative=rule is True)
    counts = nonnegative_counts(
        tree, unbiased, values, estimates.variances, nonnegative=rule, **way
    )
    finished = round_tree(counts, tree.child_starts) if promised["integers"] else counts
    # The nonnegative optimum is worked out from the noisy counts again, as for histograms, so that
    # ties may differ.
    slack = 1.0 if rule == "least-squares" and promised["integers"] else scale
    return bool(np.allclose(finished, estimates.published, rtol=0, atol=slack))

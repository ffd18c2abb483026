"""How far the default is from what is possible: a lower bound on the error of linear mechanisms
with Gaussian noise (zCDP).

    TALLYTREE_DATA=folder python -m benchmarks.accuracy.bound [--sets cps "made-up geometric"]
    [--runs 3] [--rhos 1/2 1/200]

Prints Markdown: per data set and ρ the error of the default, of the best split of the budget over
independent levels, and of the best strategy of all, each per level and as a geometric mean over
levels.

The family. Let x hold N(i) of every leaf: one entity more adds 1 to one cell. A mechanism answers A
x + noise of variance σ² = 1/(2ρ), where no column of A is longer than 1, and estimates all curves
by linear functions of the answers. Every split of the budget over levels is such an A, and so is
every correlated strategy over regions and sizes. Let x have covariance C. What is left of it is
(C⁻¹ + Q/σ²)⁻¹ with Q = AᵀA, diagonal at most 1, and a normal error of variance v has a mean
absolute value of √(2v/π).

Why the least can be found. The variance of a single cell or sum, v = wᵀ(C⁻¹ + Q/σ²)⁻¹w, is the
reciprocal of a concave function of Q, so log √v is convex; sums of functions whose logarithms are
convex are such functions, so the logarithm of a level's error, the sum of √v over sizes, is convex
in Q, and so is the sum over levels. Q runs over a convex set. Every Q gives a lower bound for all
others: with Γ the negative gradient, F(Q') ≥ F(Q) + ⟨Γ, Q⟩ − Σν for any prices ν with diag ν ⪰ Γ.

Why it is small. In a tree whose regions have all as many children and groups, the best Q treats
siblings alike (by convexity, the mean over all permutations is no worse), so it falls apart into
one table of sizes × sizes per level: for the mean over all leaves, and for differences between the
regions of each level that share a parent. Data are levelled for that (:func:`levelled`), and the
default releases the levelled data too.

What is known. C is the covariance that the levelled data have: per level that of the differences
between siblings, at least that of groups drawn at random; for the mean over all leaves that of
groups drawn at random alone. No mechanism knows either, so the bound is generous. It does not hold
for estimates that are not linear: cut off at 0, falling, whole, or chosen after a look at answers.
Where noise hides most groups these gain, and the default may come below the bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

from benchmarks.accuracy.data import data_sets
from benchmarks.real_data import data_folder
from tallytree import ConfidentialCounts, evaluate, release
from tallytree.group_sizes.plan.shapes import redrawn
from tallytree.model.arrays import FloatArray
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves

SETS = (
    "cps",
    "top-coded housing",
    "england and wales",
    "made-up geometric",
    "made-up tiny leaves",
    "made-up middling",
)
RHOS = ("1/2", "1/200")
# What keeps covariances of sizes that hardly occur invertible, in groups².
_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, eq=False)
class EvenTree:
    """A tree whose regions have all as many children, and what is known of its curves.

    Attributes
    ----------
    n_regions
        Regions per level, the root first.
    covariances
        Of the curves' components, sizes × sizes: the mean over all leaves times the root of their
        number, then differences between siblings of each level, in an orthonormal basis over
        leaves.
    """

    n_regions: tuple[int, ...]
    covariances: tuple[FloatArray, ...]

    @property
    def multiplicity(self) -> FloatArray:
        """Dimensions of each component."""
        return np.diff(np.array(self.n_regions, dtype=np.float64), prepend=0.0)

    def weights(self) -> FloatArray:
        """How much of a component's variance is in the curve of a region of each level (rows:
        levels).

        The sum over the n leaves of a region has the squared length n, of which each component
        holds its part of all dimensions of the levels down to the region's.
        """
        regions = np.array(self.n_regions, dtype=np.float64)
        leaves = regions[-1] / regions
        weights: FloatArray = np.tril(np.outer(leaves / regions, self.multiplicity))
        return weights

    def shares(self, shares: FloatArray) -> list[FloatArray]:
        """Q, component by component, of levels that are measured on their own with these shares of
        ρ.
        """
        leaves = self.n_regions[-1] / np.array(self.n_regions, dtype=np.float64)
        n_sizes = len(self.covariances[0])
        return [
            float((shares * leaves)[level:].sum()) * np.eye(n_sizes) for level in range(len(shares))
        ]


def levelled(counts: ConfidentialCounts, seed: int = 0) -> ConfidentialCounts:
    """The same data on a tree whose regions have all as many children, the mean number, and as many
    groups.

    Regions take their children's place in turn; sizes are drawn anew from each leaf's own.
    """
    tree = counts.hierarchy
    sizes = [tree.level_size(level) for level in range(tree.n_levels)]
    fan_outs = [max(1, round(below / here)) for here, below in pairwise(sizes)]
    region = np.zeros(1, dtype=np.int64)
    for n_children in fan_outs:
        first, after = tree.child_starts[region], tree.child_starts[region + 1]
        turn = np.arange(n_children) * (after - first)[:, None] // n_children
        region = (first[:, None] + turn).ravel()
    leaf = region - tree.level_slice(tree.n_levels - 1).start
    n_groups = np.full(len(leaf), max(1, int(counts.leaf_counts.n_groups().sum()) // len(leaf)))
    drawn = redrawn(_some_groups(counts).at(leaf), n_groups, seed=seed)
    paths = np.array(np.unravel_index(np.arange(len(leaf)), fan_outs)).T.tolist()
    labels = [
        tuple(".".join(map(str, path[: level + 1])) for level in range(len(path))) for path in paths
    ]
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(tree.level_names[1:], labels)), drawn, drawn.n_groups()
    )


def _some_groups(counts: ConfidentialCounts) -> CountsBySize:
    """The leaves' counts by size; leaves without groups have those of the leaf before, the first
    those of the last.
    """
    filled = np.flatnonzero(counts.leaf_counts.n_groups())
    before = np.searchsorted(filled, np.arange(counts.hierarchy.n_leaves), side="right") - 1
    return counts.leaf_counts.at(filled[before])


def even_tree(counts: ConfidentialCounts) -> EvenTree:
    """What is known of levelled data: the covariances of their curves."""
    tree = counts.hierarchy
    n_regions = tuple(tree.level_size(level) for level in range(tree.n_levels))
    largest = int(counts.leaf_counts.size.max())
    groups = counts.leaf_counts.n_groups()[:, None]
    curves = (groups - counts.leaf_counts.cumulative(largest)[:, :largest]).astype(np.float64)
    # Below the smallest size of all every group counts, and nothing is unknown.
    curves = curves[:, (curves < groups).any(axis=0)]
    n_sizes = curves.shape[1]
    # Groups drawn at random: N(i) and N(j) have covariance N(larger) − N(i) N(j)/G.
    largest_of = np.maximum.outer(np.arange(n_sizes), np.arange(n_sizes))
    at_random = curves.mean(axis=0)[largest_of] - (curves / groups).T @ curves / len(curves)
    at_random += _LEAST_VARIANCE * np.eye(n_sizes)
    covariances = [at_random]
    above = curves.mean(axis=0)[None]
    for of_parent, here in pairwise(n_regions):
        means = curves.reshape(here, -1, n_sizes).mean(axis=1)
        apart = means - np.repeat(above, here // of_parent, axis=0)
        # A level of single children holds no differences.
        found = apart.T @ apart * (n_regions[-1] / here) / max(here - of_parent, 1)
        values, vectors = np.linalg.eigh(found - at_random)
        covariances.append(at_random + (vectors * np.maximum(values, 0.0)) @ vectors.T)
        above = means
    return EvenTree(n_regions, tuple(covariances))


def level_errors(tree: EvenTree, moments: Sequence[FloatArray], variance: float) -> FloatArray:
    """Mean earth mover's distance per level for Q, component by component, and noise of this
    variance.
    """
    return np.asarray(_Objective(tree, variance).errors(moments)[0])


class _Objective:
    """The sum over levels of the logarithm of a level's error, and its slope, for Q times each
    component's part of all dimensions: those add up to a diagonal of at most 1.
    """

    def __init__(self, tree: EvenTree, variance: float) -> None:
        self.weights, self.variance = tree.weights(), variance
        self.part = tree.multiplicity / tree.n_regions[-1]
        self.roots = [np.linalg.cholesky(covariance) for covariance in tree.covariances]

    def errors(
        self, moments: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray, list[FloatArray]]:
        """Errors per level; variances per level and size; what is left of each component's
        covariance.
        """
        left = []
        for root, moment in zip(self.roots, moments):
            inner = np.eye(len(root)) + root.T @ moment @ root / self.variance
            left.append(root @ np.linalg.solve(inner, root.T))
        variances = self.weights @ np.array([np.diag(table) for table in left])
        return np.sqrt(2 * variances / np.pi).sum(axis=1), variances, left

    def value_and_slope(self, scaled: Sequence[FloatArray]) -> tuple[float, list[FloatArray]]:
        """The objective at Q times the components' parts, and the negative of its gradient there."""
        # Components without dimensions, of levels of single children, are never asked about.
        moments = [
            table / max(part, 1e-300) if part else 0 * table
            for table, part in zip(scaled, self.part)
        ]
        errors, variances, left = self.errors(moments)
        of_variance = np.sqrt(2 / np.pi) / (2 * np.sqrt(variances) * errors[:, None])
        inner = self.weights.T @ of_variance
        slopes = [
            (table * weight) @ table / (self.variance * part) if part else 0 * table
            for table, weight, part in zip(left, inner, self.part)
        ]
        return float(np.log(errors).sum()), slopes


@dataclass(frozen=True, eq=False)
class Best:
    """The errors of the best strategy per level, and a geometric mean over levels that no strategy
    is below.
    """

    errors: FloatArray
    bound: float


def best_shares(tree: EvenTree, variance: float) -> tuple[FloatArray, FloatArray]:
    """The split of ρ over independent levels with the least product of errors, and its errors."""
    n_levels = len(tree.n_regions)

    def objective(logits: FloatArray) -> float:
        shares = np.exp(logits - logits.max())
        return float(np.log(level_errors(tree, tree.shares(shares / shares.sum()), variance)).sum())

    starts = [np.zeros(n_levels)] + [4.0 * np.eye(n_levels)[level] for level in range(n_levels)]
    found = min(
        (minimize(objective, start, method="Nelder-Mead") for start in starts),
        key=lambda one: one.fun,
    )
    shares = np.exp(found.x - found.x.max())
    shares = shares / shares.sum()
    return shares, level_errors(tree, tree.shares(shares), variance)


def best_strategy(tree: EvenTree, variance: float, start: FloatArray) -> Best:
    """The strategy with the least product of errors; ``start`` are the shares to begin with."""
    objective = _Objective(tree, variance)
    n_levels, n_sizes = len(tree.n_regions), len(tree.covariances[0])
    shape = n_levels, n_sizes, n_sizes

    def scaled(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factors of Q times parts, with columns that add up to squared length 1, and the lengths
        before.
        """
        factors = flat.reshape(shape)
        lengths = np.sqrt((factors**2).sum(axis=(0, 1)))
        return factors / lengths, lengths

    def value(flat: FloatArray) -> tuple[float, FloatArray]:
        factors, lengths = scaled(flat)
        found, slopes = objective.value_and_slope([factor.T @ factor for factor in factors])
        slope = np.array([-2 * factor @ table for factor, table in zip(factors, slopes)])
        along = (slope * factors).sum(axis=(0, 1))
        return found, ((slope - factors * along) / lengths).ravel()

    first = np.array(
        [np.sqrt(part) * np.sqrt(q) for part, q in zip(objective.part, tree.shares(start))]
    )
    # A little of everything: a factor that is 0 stays 0.
    first = first + 1e-2 * np.random.default_rng(0).standard_normal(shape)
    options = {"maxiter": 3_000, "maxfun": 6_000, "ftol": 1e-13, "gtol": 1e-8}
    flat = minimize(value, first.ravel(), jac=True, method="L-BFGS-B", options=options).x
    factors, _ = scaled(flat)
    moments = [factor.T @ factor for factor in factors]
    found, slopes = objective.value_and_slope(moments)
    # Prices of the columns as they are at the optimum, raised until no strategy buys more than it
    # pays for.
    told = sum(np.diag(slope @ moment) for slope, moment in zip(slopes, moments))
    price = np.maximum(np.asarray(told), 1e-12)
    scale = 1 / np.sqrt(price)
    dear = max(float(np.linalg.eigvalsh(scale[:, None] * slope * scale)[-1]) for slope in slopes)
    bound = found + float(np.sum(told)) - dear * float(price.sum())
    parts = [moment / part if part else 0 * moment for moment, part in zip(moments, objective.part)]
    return Best(level_errors(tree, parts, variance), float(np.exp(bound / n_levels)))


def default_errors(counts: ConfidentialCounts, rho: Fraction, runs: int) -> FloatArray:
    """Mean earth mover's distance per level of the default under zCDP."""
    made = (release(counts, rho=rho, definition="zcdp", insecure_seed=seed) for seed in range(runs))
    return np.mean([[level.emd for level in evaluate(one, counts).levels] for one in made], axis=0)


def _mean(errors: FloatArray) -> float:
    return float(np.exp(np.log(errors).mean()))


def _text(errors: FloatArray) -> str:
    return " / ".join(f"{error:.3g}" if error < 1000 else f"{error:,.0f}" for error in errors)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy.bound", description=__doc__
    )
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rhos", nargs="*", default=RHOS)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    print(
        "| data, levelled | ρ | default | best split, true covariance | best strategy | default / "
        "bound | split / bound |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in given.sets:
        counts = levelled(data_sets(data_folder())[name]())
        tree = even_tree(counts)
        for rho in map(Fraction, given.rhos):
            variance = 1 / (2 * float(rho))
            shares, split = best_shares(tree, variance)
            best = best_strategy(tree, variance, shares)
            default = default_errors(counts, rho, given.runs)
            ratios = f"{_mean(default) / best.bound:.2f} | {_mean(split) / best.bound:.2f}"
            print(
                f"| {name} | {rho} | {_text(default)} | {_text(split)} | {_text(best.errors)} | "
                f"{ratios} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

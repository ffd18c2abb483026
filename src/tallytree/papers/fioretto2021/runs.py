"""One run of one mechanism of fioretto2021 on exact tables: noise, fit, time and errors.

The experiments need what no release may give: rounded relaxations that do not add up, and the chain
with the noise of the paper, which is not ε-differentially private. So they work on plain tables,
with seeded noise; nothing here is private.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.model.arrays import FloatArray, IntArray
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.hierarchy import Hierarchy
from tallytree.papers.fioretto2021.chain import chain_of_level, fit_chains
from tallytree.papers.fioretto2021.counts_tree import count_violations, relax_counts
from tallytree.papers.fioretto2021.cumulative_tree import fit_cumulative_then_tree, relax_cumulative
from tallytree.papers.fioretto2021.joint_fit import make_whole
from tallytree.papers.fioretto2021.kernels.allocation import allocate_over_tree
from tallytree.papers.fioretto2021.topdown import fit_top_down
from tallytree.privacy.noise import DiscreteLaplace, add_noise
from tallytree.privacy.randomness import KeyStream


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact counts of every region, ``(n_regions, n_sizes)``."""

    hierarchy: Hierarchy
    table: IntArray

    @property
    def totals(self) -> IntArray:
        """Groups per region."""
        return self.table.sum(axis=1)

    @property
    def total(self) -> int:
        """Groups at the root."""
        return int(self.table[0].sum())

    def cut(self, n_sizes: int) -> Exact:
        """The same groups without those of ``n_sizes`` entities or more (§11, synthetic data)."""
        return Exact(self.hierarchy, np.ascontiguousarray(self.table[:, :n_sizes]))


def exact_table(counts: ConfidentialCounts, max_size: int) -> Exact:
    """Dense counts of all levels; larger groups count as ``max_size``."""
    return Exact(counts.hierarchy, counts.counts_on_levels.dense(max_size))


@dataclass(frozen=True)
class Noisy:
    """Noisy tables of one run: everything with the budget ε divided equally over the levels."""

    exact: Exact
    epsilon: Fraction
    seed: int

    def _add(self, query: str, values: list[IntArray], sensitivities: list[int]) -> list[IntArray]:
        stream = KeyStream.from_insecure_seed(self.seed)
        n_levels = len(values)
        return [
            add_noise(
                table,
                DiscreteLaplace(n_levels * sensitivity / self.epsilon),
                stream,
                level=level,
                query=query,
            )
            for level, (table, sensitivity) in enumerate(zip(values, sensitivities))
        ]

    def _levels(self, table: IntArray) -> list[IntArray]:
        hierarchy = self.exact.hierarchy
        return [table[hierarchy.level_slice(level)] for level in range(hierarchy.n_levels)]

    def counts(self) -> IntArray:
        """Noisy counts by size, sensitivity 2."""
        levels = self._levels(self.exact.table)
        return np.concatenate(self._add("counts", levels, [2] * len(levels)))

    def cumulative(self) -> IntArray:
        """Noisy cumulative counts, sensitivity 1."""
        levels = self._levels(np.cumsum(self.exact.table, axis=1))
        return np.concatenate(self._add("cumulative", levels, [1] * len(levels)))

    def chains(self, *, sound: bool) -> list[IntArray]:
        """Noisy chains, with their true sensitivity or with the 1 that the paper takes."""
        levels = self._levels(self.exact.table)
        sensitivities = [len(level) if sound else 1 for level in levels]
        return self._add("chain", [chain_of_level(level) for level in levels], sensitivities)


@dataclass(frozen=True)
class Mechanism:
    """How a table of the paper is filled: measure, then fit; only fitting is timed, as in §11."""

    name: str
    measure: Callable[[Noisy], Any]
    fit: Callable[[Exact, Any], IntArray]


def _whole(table: FloatArray) -> IntArray:
    return np.rint(table).astype(np.int64)


def _rounded_cumulative(exact: Exact, noisy: IntArray) -> IntArray:
    fit = relax_cumulative(exact.hierarchy, noisy, exact.total)
    return np.diff(_whole(fit.table), axis=1, prepend=0)


def _joint(exact: Exact, noisy: IntArray) -> IntArray:
    return make_whole(
        exact.hierarchy, relax_cumulative(exact.hierarchy, noisy, exact.totals).table, exact.totals
    )


# In the setting of the paper only the root's total is public; the last two also keep those of all
# regions.
MECHANISMS: dict[str, Mechanism] = {
    m.name: m
    for m in (
        Mechanism(
            "M_H^r rounded",
            Noisy.counts,
            lambda e, y: _whole(relax_counts(e.hierarchy, y, e.total)),
        ),
        Mechanism("M_H^dp", Noisy.counts, lambda e, y: allocate_over_tree(e.hierarchy, y, e.total)),
        Mechanism("M_c^r rounded", Noisy.cumulative, _rounded_cumulative),
        Mechanism(
            "M_c^dp",
            Noisy.cumulative,
            lambda e, y: fit_cumulative_then_tree(e.hierarchy, y, e.total),
        ),
        Mechanism(
            "M_c^ch sound",
            lambda n: n.chains(sound=True),
            lambda e, y: fit_chains(e.hierarchy, y, e.total),
        ),
        Mechanism(
            "M_c^ch NOT ε-DP",
            lambda n: n.chains(sound=False),
            lambda e, y: fit_chains(e.hierarchy, y, e.total),
        ),
        Mechanism("TopDown", Noisy.counts, lambda e, y: fit_top_down(e.hierarchy, y, e.total)),
        Mechanism(
            "TopDown, every total",
            Noisy.counts,
            lambda e, y: fit_top_down(e.hierarchy, y, e.totals),
        ),
        Mechanism("M_c^r repaired, every total", Noisy.cumulative, _joint),
    )
}


@dataclass(frozen=True)
class Outcome:
    """What one run gave."""

    l1: tuple[float, ...]
    """L1 error per level, summed over its regions."""
    emd: tuple[float, ...]
    """Earth mover's distance per level, mean over its regions."""
    violations: int
    seconds: float


def run(mechanism: Mechanism, noisy: Noisy) -> Outcome:
    """Measure, fit and compare; the time is that of the fit alone."""
    exact = noisy.exact
    measured = mechanism.measure(noisy)
    start = time.perf_counter()
    table = mechanism.fit(exact, measured)
    seconds = time.perf_counter() - start
    difference = table - exact.table
    l1 = np.abs(difference).sum(axis=1)
    emd = np.abs(np.cumsum(difference, axis=1)).sum(axis=1)
    levels = [exact.hierarchy.level_slice(level) for level in range(exact.hierarchy.n_levels)]
    return Outcome(
        tuple(float(l1[here].sum()) for here in levels),
        tuple(float(emd[here].mean()) for here in levels),
        count_violations(exact.hierarchy, table),
        seconds,
    )


def epsilon_spent_by_chain(hierarchy: Hierarchy, epsilon: float) -> float:
    """Privacy loss of the chain with the noise of the paper: (ε / L) Σ_ℓ |R_ℓ|."""
    return epsilon / hierarchy.n_levels * hierarchy.n_regions

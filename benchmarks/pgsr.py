"""Exact allocation against open solvers for N = 5 … 50 sizes, and all fits at the size of a census,
at every ε.
"""

from fractions import Fraction

from tallytree.papers.fioretto2021.reproduce import OUTLIERS
from tallytree.papers.fioretto2021.runs import MECHANISMS, Noisy, exact_table
from tallytree.papers.fioretto2021.scaling import (
    EPSILON,
    fast_programs,
    seconds_of,
    solver_programs,
    synthetic_taxis,
)
from tallytree.papers.housing import housing_counts

SWEEP = (5, 10, 20, 30, 40, 50)
SOLVERS = {"M_H (tree-exact), HiGHS": 2, "M_H^r, OSQP": 10}  # name: runs, of which the best counts
EPSILONS = ("0.1", "0.2", "0.5", "1.0")
SOLVER_SECONDS = 300.0


def against_solvers() -> dict[str, float]:
    figures: dict[str, float] = {}
    taxis = synthetic_taxis()
    for n_sizes in SWEEP:
        exact = taxis.cut(n_sizes)
        noisy = Noisy(exact, EPSILON, seed=0)
        ours, _ = seconds_of(fast_programs(exact, noisy)["M_H^dp (tree-dp)"], 20)
        for name, runs in SOLVERS.items():
            theirs, solved = seconds_of(solver_programs(exact, noisy, SOLVER_SECONDS)[name], runs)
            figures[f"N = {n_sizes}: {name} / tree-dp"] = theirs / ours
            late = "" if solved else " (stopped at its time limit)"
            print(
                f"   N = {n_sizes}: tree-dp {ours * 1e3:.2f} ms; {name} {theirs * 1e3:.0f} "
                f"ms{late}, {theirs / ours:.0f} ×"
            )
    return figures


def census_scale() -> dict[str, float]:
    figures: dict[str, float] = {}
    exact = exact_table(housing_counts(outliers=OUTLIERS), 999)
    for epsilon in EPSILONS:
        noisy = Noisy(exact, Fraction(epsilon), seed=0)
        for mechanism in MECHANISMS.values():
            measured = mechanism.measure(noisy)
            best, _ = seconds_of(lambda m=mechanism, y=measured: m.fit(exact, y), 2)
            figures[f"ε = {epsilon}: {mechanism.name}, seconds"] = best
            print(f"   ε = {epsilon}: {mechanism.name} {best:.2f} s")
    return figures


def main() -> dict[str, float]:
    return against_solvers() | census_scale()


if __name__ == "__main__":
    main()

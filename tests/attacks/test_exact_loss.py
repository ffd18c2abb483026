"""Every mechanism, every neighbour of small inputs: the loss along replayed transcripts never exceeds what is stated."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.planning import plan as planning
from tallytree.planning.plan import MECHANISMS
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.publish.degrees import degrees
from tallytree.publish.grid_histogram import grid_histogram
from tallytree.publish.histogram import histogram
from tallytree.ranges import strategies
from tests.attacks.inputs import Households, random_households
from tests.attacks.transcript import listen, loss_between, replay

PURE = {"epsilon": Fraction(1)}
ZCDP = {"rho": Fraction(1, 4), "definition": "zcdp"}

Run = Callable[[], Any]
Pair = tuple[Run, Run]


def group_sizes(rng: np.random.Generator, kind: dict[str, Any], **options: Any) -> Iterator[Pair]:
    households = random_households(rng, **kind)
    for neighbour in households.neighbours():
        yield (
            partial(tt.release, households.counts(), insecure_seed=1, **options),
            partial(tt.release, neighbour.counts(), insecure_seed=1, **options),
        )


def cells(shape: tuple[int, ...], contributions: int, rng: np.random.Generator) -> Iterator[tuple[Any, Any]]:
    """Counts per cell, and the same with one unit more: all of its entities in one cell, or in two."""
    counts = rng.integers(0, 5, shape)
    for place in np.ndindex(shape):
        more = counts.copy()
        more[place] += contributions
        yield counts, more
        if contributions > 1:
            more = counts.copy()
            more[place] += contributions - 1
            more.flat[0] += 1
            yield counts, more


def from_counts(rng: np.random.Generator, shape: tuple[int, ...], make: Any, **options: Any) -> Iterator[Pair]:
    for counts, more in cells(shape, options.get("contributions", 1), rng):
        yield partial(make, counts, insecure_seed=1, **options), partial(make, more, insecure_seed=1, **options)


PUBLIC: dict[str, Any] = {}
PRIVATE = {"groups_public": False}
QUANTITIES = {"max_quantity": 3}
UNITS = {"contributions": 2}
MATRIX = np.vstack([np.eye(5), np.ones((2, 5)), [[3, -1, 0, 2, 0]]])

CASES: dict[str, Callable[[np.random.Generator], Iterator[Pair]]] = {
    "flat": lambda rng: from_counts(rng, (6,), histogram, strategy="flat", **PURE),
    "hierarchical": lambda rng: from_counts(rng, (9,), histogram, strategy="hierarchical", branching=2, **PURE),
    "wavelet": lambda rng: from_counts(rng, (8,), histogram, strategy="wavelet", **PURE),
    "wavelet, units, zcdp": lambda rng: from_counts(rng, (6,), histogram, strategy="wavelet", contributions=3, **ZCDP),
    "matrix": lambda rng: from_counts(rng, (5,), histogram, strategy=MATRIX, **PURE),
    "matrix, zcdp": lambda rng: from_counts(rng, (5,), histogram, strategy=MATRIX, **ZCDP),
    "optimised": lambda rng: from_counts(rng, (6,), histogram, strategy="optimised", **PURE),
    "grid": lambda rng: from_counts(rng, (3, 4), grid_histogram, strategy="hierarchical", branching=2, **PURE),
    "grid, units, zcdp": lambda rng: from_counts(rng, (3, 3), grid_histogram, strategy="flat", contributions=2, **ZCDP),
    "degrees": lambda rng: from_counts(rng, (6,), degrees, **PURE),
    "degrees, units, zcdp": lambda rng: from_counts(rng, (6,), degrees, contributions=2, **ZCDP),
}
for _mechanism in MECHANISMS:
    if _mechanism == "matching":
        continue
    for _name, _loss in (("", PURE), (", zcdp", ZCDP)):
        CASES[f"{_mechanism}{_name}"] = lambda rng, mechanism=_mechanism, loss=_loss: group_sizes(
            rng, PUBLIC, mechanism=mechanism, max_size=12, **loss
        )
for _view in ("naive", "sizes", "cumulative", "hybrid"):
    for _name, _kind, _loss in (
        ("", PUBLIC, PURE),
        (", private groups", PRIVATE, PURE),
        (", quantities", QUANTITIES, PURE),
        (", units", UNITS, PURE),
        (", zcdp", PUBLIC, ZCDP),
        (", units, zcdp", UNITS, ZCDP),
        (", quantities, zcdp", QUANTITIES | PRIVATE, ZCDP),
    ):
        CASES[f"{_view}{_name}"] = lambda rng, view=_view, kind=_kind, loss=_loss: group_sizes(
            rng, kind, view=view, budget=["0.2", "0.3", "0.5"], **loss
        )


def largest_loss(case: str, seed: int) -> tuple[Fraction, Fraction]:
    """The largest loss over all neighbours of one input, and what the release states."""
    rng = np.random.default_rng(seed)
    worst = Fraction(0)
    stated = Fraction(0)
    for run, other_run in CASES[case](rng):
        release, script = listen(run, rng)
        other, again = replay(other_run, script)
        privacy = release.manifest["privacy"]
        stated = Fraction(privacy["epsilon" if privacy["definition"] == "pure" else "rho"])
        worst = max(worst, loss_between(script, again, privacy["definition"]))
        # Everything after the noise is the same for both inputs.
        assert release.manifest == other.manifest
        assert release.table().equals(other.table())
    return worst, stated


@pytest.mark.parametrize("case", CASES)
def test_no_mechanism_loses_more_than_it_states(case: str) -> None:
    for seed in range(2):
        worst, stated = largest_loss(case, seed)
        assert 0 < worst <= stated


# A sensitivity that is one too small, planted where the plan takes it from; the case that must notice it.
PLANTED = {
    "naive": (planning, "counts_sensitivity"),
    "sizes, quantities": (planning, "sizes_sensitivity"),
    "sizes, units": (planning, "sizes_sensitivity"),
    "cumulative, quantities": (planning, "cumulative_sensitivity"),
    "hybrid, units": (planning, "hybrid_sensitivity"),
    "hybrid, quantities, zcdp": (planning, "hybrid_sensitivity"),
    "wavelet, units, zcdp": (strategies, "block_differences_sensitivity"),
    "matrix": (strategies, "linear_queries_sensitivity"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_a_planted_off_by_one_is_caught(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, name = PLANTED[case]
    right = getattr(module, name)

    def too_small(*arguments: Any, **options: Any) -> Sensitivity:
        true = right(*arguments, **options)
        return Sensitivity(true.l1 - 1, max(1, true.l2_squared - 1))

    monkeypatch.setattr(module, name, too_small)
    worst, stated = zip(*(largest_loss(case, seed) for seed in range(2)), strict=True)
    assert max(worst) > min(stated)


def test_a_question_that_depends_on_the_data_is_noticed() -> None:
    households = Households(((0, 2), (1, 3), (2, 1)))
    rng = np.random.default_rng(1)
    _, script = listen(lambda: tt.release(households.counts(), epsilon=1, insecure_seed=1), rng)
    more = Households((*households.groups, (0, 2)))
    with pytest.raises(AssertionError, match="question"):
        replay(lambda: tt.release(more.counts(), epsilon=1, insecure_seed=1), script)

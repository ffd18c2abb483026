"""How leaves are cut into pieces, and how many cores work on them, changes no number of a release."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.group_sizes.estimate import staircases as estimate
from tallytree.group_sizes.measure import staircases as measure
from tallytree.group_sizes.reconcile import staircases as consistency
from tallytree.kernels import jit
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves

RNG = np.random.default_rng(8)
N_LEAVES = 700
# Families of one to some thirty counties, counties of none to hundreds of households, a few large
# ones.
STATE = np.sort(RNG.choice(40, N_LEAVES, p=RNG.dirichlet(np.ones(40))))
TREE = hierarchy_from_leaves(
    ["region", "state", "county"],
    [(f"r{state // 7}", f"s{state:02}", f"c{leaf:03}") for leaf, state in enumerate(STATE)],
)
LEAF = np.repeat(np.arange(N_LEAVES), RNG.poisson(RNG.lognormal(3, 1.3, N_LEAVES)))
SIZE = np.where(
    RNG.random(len(LEAF)) < 0.002, RNG.integers(10, 400, len(LEAF)), RNG.geometric(0.4, len(LEAF))
)
RUNS = counts_from_runs(LEAF, SIZE, np.ones_like(SIZE), N_LEAVES)
COUNTS = ConfidentialCounts(PublicFacts(TREE), RUNS, RUNS.n_groups())


def released(**options: Any) -> tuple[Any, ...]:
    """All numbers of a release: what was measured, and what became of it."""
    made = tt.release(COUNTS, epsilon=1, insecure_seed=3, mechanism="adaptive", **options)
    assert made.noisy is not None
    answers = [
        array.tolist()
        for level in made.noisy.levels
        for q in level.queries
        for array in (q.offsets, q.values)
    ]
    return (
        made.counts.offsets.tolist(),
        made.counts.size.tolist(),
        made.counts.count.tolist(),
        answers,
    )


@pytest.mark.parametrize(
    "budget", ["auto", ["0", "0", "0.3", "0.7"], ["0", "0", "0", "1"]], ids=str
)
def test_cuts_and_cores_change_no_number(budget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all to the leaves they are the topmost level too, so that what is chosen once for it is
    told by them.
    """
    whole = released(budget=budget)
    for cells, regions, n_cores in [
        (1, 1 << 18, 2),
        (3_000, 50, 1),
        (20_000, 333, 4),
        (200_000, 699, 3),
    ]:
        monkeypatch.setattr(consistency, "PIECE_CELLS", cells)
        monkeypatch.setattr(measure, "REGIONS_AT_ONCE", regions)
        monkeypatch.setattr(jit, "n_workers", lambda n=n_cores: n)
        assert released(budget=budget) == whole


def test_pieces_are_whole_families_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "PIECE_CELLS", 500)
    leaves = consistency.Leaves(
        consistency.families_of_leaves(TREE),
        lambda regions: pytest.fail("nothing is estimated"),
        10,
    )
    pieces = leaves.pieces
    assert len(pieces) > 5
    assert [piece.start for piece in pieces] == [0, *(piece.stop for piece in pieces[:-1])]
    families = consistency.child_starts(TREE, 3)
    for piece in pieces:
        children = leaves.children(piece)
        assert children == slice(families[piece.start], families[piece.stop])
        assert children.stop - children.start <= 50 or piece.stop - piece.start == 1
    assert leaves.children(pieces[-1]).stop == N_LEAVES
    for one, other in pairwise(pieces):  # no piece could have taken the next family too
        assert families[other.start + 1] - families[one.start] > 50


def test_what_is_chosen_once_comes_from_the_same_regions_in_every_cut() -> None:
    """A region of the sample tells the same alone, in a piece, and among all."""
    regions = estimate._sample(N_LEAVES, 200)
    assert regions[0] == 0
    assert regions[-1] == N_LEAVES - 1
    assert len(np.unique(regions)) == 200
    np.testing.assert_array_equal(estimate._sample(7, 200), np.arange(7))

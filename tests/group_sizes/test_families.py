"""The split over tables by attributes: its model against dense least squares, what it keeps, what a
workload changes.
"""

from fractions import Fraction

import numpy as np
import pytest

from tallytree.group_sizes.plan.allocation import shares_for_levels
from tallytree.group_sizes.plan.families import _Model, shares_for_families
from tallytree.group_sizes.plan.first_look import FirstLook, look_ends
from tallytree.lattice.shares import shares_from_noise, wanted_families
from tallytree.model.attributes import Attributes
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.lattice import Family, Lattice
from tallytree.tuning import split as tuned
from tests.reference.lattice import membership

# Every region has three children, every combination of values a thousand groups per leaf.
LEAVES = [(f"s{state}", f"c{county}") for state in range(3) for county in range(3)]
TREE = hierarchy_from_leaves(["state", "county"], LEAVES, root="US")
LATTICE = Lattice(
    TREE, Attributes(("tenure", "head"), (("own", "other"), ("young", "old", "other")))
)
GROUPS = {
    family: np.full(LATTICE.n_rows(family), 54_000_000 // LATTICE.n_rows(family))
    for family in LATTICE.families
}


def look() -> FirstLook:
    height = 54_000_000 * np.exp(-look_ends() / 2.0)
    return FirstLook(look_ends(), height, 54_000_000, 40.0)


def noise_std(share: Fraction) -> float:
    return 1.5 / float(share)


def dense_deviation(family: Family, shares: dict[Family, Fraction]) -> float:
    """Root mean square standard deviation of a family's rows after dense least squares on one size."""
    precision = sum(
        membership(LATTICE, f).T @ membership(LATTICE, f) / noise_std(share) ** 2
        for f, share in shares.items()
    )
    rows = membership(LATTICE, family)
    covariance = rows @ np.linalg.inv(precision) @ rows.T
    return float(np.sqrt(np.diag(covariance).mean()))


@pytest.mark.parametrize(
    "shares",
    [
        {LATTICE.finest: Fraction(1)},
        {Family(0, ()): Fraction(1, 10), LATTICE.finest: Fraction(9, 10)},
        {
            Family(0, (0, 1)): Fraction(2, 10),
            Family(1, ()): Fraction(3, 10),
            LATTICE.finest: Fraction(1, 2),
        },
        {
            Family(0, (0,)): Fraction(1, 5),
            Family(2, (1,)): Fraction(2, 5),
            LATTICE.finest: Fraction(2, 5),
        },
    ],
)
def test_predicted_errors_are_those_of_dense_least_squares(
    shares: dict[Family, Fraction], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every size has the noise of its share and nothing is known beforehand."""
    model = _Model(look(), LATTICE, GROUPS, noise_std)
    n_blocks = len(model.shape.width)
    monkeypatch.setattr(
        model.combined, "_variance", lambda family, share: np.full(n_blocks, noise_std(share) ** 2)
    )
    monkeypatch.setattr(model, "spread", dict.fromkeys(LATTICE.families, np.inf))
    for family in LATTICE.families:
        predicted = model.error(family, shares) / model.shape.width.sum()
        assert predicted == pytest.approx(dense_deviation(family, shares), rel=1e-9)


def test_shares_add_up_and_the_cells_that_are_released_always_have_one() -> None:
    for want in ((), ["US", "state"], ["state:tenure"], ["county:tenure,head"]):
        wanted = wanted_families(want, LATTICE)
        shares = dict(
            zip(
                LATTICE.families,
                shares_for_families(look(), LATTICE, GROUPS, noise_std, wanted),
                strict=True,
            )
        )
        assert sum(shares.values()) == 1
        assert min(shares.values()) >= 0
        assert shares[LATTICE.finest] > 0


def test_a_workload_is_better_served_by_its_own_split() -> None:
    model = _Model(look(), LATTICE, GROUPS, noise_std)

    def split(want: list[str]) -> dict[Family, Fraction]:
        wanted = wanted_families(want, LATTICE)
        return dict(
            zip(
                LATTICE.families,
                shares_for_families(look(), LATTICE, GROUPS, noise_std, wanted),
                strict=True,
            )
        )

    cells, states = split(["county:tenure,head"]), split(["state:tenure"])
    assert model.error(Family(1, (0,)), states) < model.error(Family(1, (0,)), cells)
    assert model.error(LATTICE.finest, cells) < model.error(LATTICE.finest, states)


def test_tables_without_attributes_are_kept_near_a_release_without_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """48 states in 8 divisions, noise as at ε = 0.1: for the mean alone divisions would be
    measured, and states be three times as far off as in a release of regions. Half of that costs
    less than a twentieth of the mean.
    """
    leaves = [
        (f"r{r}", f"d{r}{d}", f"s{r}{d}{s}") for r in range(4) for d in range(2) for s in range(6)
    ]
    tree = hierarchy_from_leaves(["region", "division", "state"], leaves, root="US")
    lattice = Lattice(tree, LATTICE.attributes)
    groups = {
        family: np.full(lattice.n_rows(family), 200_000 // lattice.n_rows(family))
        for family in lattice.families
    }
    seen = FirstLook(look_ends(), 200_000 * np.exp(-look_ends() / 2.0), 200_000, 1_400.0)

    def std(share: Fraction) -> float:
        return 14.3 / float(share)

    model, wanted = _Model(seen, lattice, groups, std), wanted_families((), lattice)
    levels = [family for family in lattice.families if not family.margin]
    alone = dict(zip(levels, shares_for_levels(seen, [groups[family] for family in levels], std)))
    worst, mean = [], []
    for times in (tuned.TIMES_ALONE, np.inf):
        monkeypatch.setattr(tuned, "TIMES_ALONE", times)
        shares = dict(
            zip(lattice.families, shares_for_families(seen, lattice, groups, std, wanted))
        )
        worst.append(
            max(model.error(family, shares) / model.error(family, alone) for family in levels)
        )
        mean.append(np.mean([np.log(model.error(family, shares)) for family in wanted]))
    assert worst[1] > 2.9
    assert worst[0] < 2.1
    assert mean[1] < mean[0] < mean[1] + tuned.NOTICED


def test_a_look_that_shows_nothing_gives_a_fixed_split() -> None:
    blind = FirstLook(look_ends(), np.zeros(len(look_ends())), 100, 40.0)
    shares = dict(
        zip(
            LATTICE.families,
            shares_for_families(blind, LATTICE, GROUPS, noise_std, ()),
            strict=True,
        )
    )
    assert {family: share for family, share in shares.items() if share} == {
        Family(0, (0, 1)): Fraction(3, 10),
        LATTICE.finest: Fraction(7, 10),
    }


def test_names_of_tables() -> None:
    assert wanted_families("state", LATTICE) == (Family(1, ()),)
    assert wanted_families(["state: head, tenure", "US"], LATTICE) == (
        Family(1, (0, 1)),
        Family(0, ()),
    )
    assert len(wanted_families((), LATTICE)) == 6


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_people_are_counted_where_errors_are_smallest(power: float) -> None:
    """Against every split in tenths over the leaves by tenure and one other table, by dense least
    squares; 1/2 as in zCDP.
    """
    lattice = Lattice(TREE, Attributes(("tenure",), (("own", "rent", "other"),)))

    def std(share: Fraction) -> float:
        return 1.5 / float(share) ** power

    def regret(shares: dict[Family, Fraction]) -> float:
        precision = sum(
            membership(lattice, f).T @ membership(lattice, f) / std(share) ** 2
            for f, share in shares.items()
        )
        total = 0.0
        for family in lattice.families:
            rows = membership(lattice, family)
            total += np.log(np.diag(rows @ np.linalg.inv(precision) @ rows.T).mean())
        return total

    found = shares_from_noise(lattice, std)
    assert sum(found.values()) == 1
    others = [family for family in lattice.families if family != lattice.finest]
    tenths = [Fraction(i, 10) for i in range(1, 10)]
    candidates = [{other: share, lattice.finest: 1 - share} for other in others for share in tenths]
    best = min(regret(shares) for shares in [{lattice.finest: Fraction(1)}, *candidates])
    assert regret(found) <= best + 0.02 * len(lattice.families)

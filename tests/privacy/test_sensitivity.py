"""Every sensitivity against the largest change over all neighbours of small databases: never
exceeded, and reached.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.group_sizes.measure.size_bins import answers_of
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.privacy.sensitivity import (
    Sensitivity,
    chain_sensitivity,
    counts_sensitivity,
    cumulative_sensitivity,
    group_totals_sensitivity,
    histogram_sensitivity,
    hybrid_sensitivity,
    largest_size_sensitivity,
    moved_size_bins_sensitivity,
    moved_size_blocks_sensitivity,
    people_sensitivity,
    size_bins_sensitivity,
    size_blocks_sensitivity,
    sizes_sensitivity,
)

N_REGIONS = 2
# Large enough that no size is cut off.
MOST = 12


@dataclass(frozen=True)
class Database:
    """Sizes of the groups of each region; ``None`` is a private group without entities, which does
    not exist yet.
    """

    sizes: tuple[tuple[int | None, ...], ...]

    def with_unit(self, entities: tuple[tuple[int, int, int], ...]) -> "Database":
        """The database with entities (region, group, quantity) added."""
        regions = [list(region) for region in self.sizes]
        for region, group, quantity in entities:
            regions[region][group] = (regions[region][group] or 0) + quantity
        return Database(tuple(map(tuple, regions)))

    def region(self, region: int) -> list[int]:
        return [size for size in self.sizes[region] if size is not None]


def units(
    database: Database, max_quantity: int, contributions: int
) -> Iterator[tuple[tuple[int, int, int], ...]]:
    """Every unit: up to k entities, in any groups, of any quantities."""
    places = [
        (region, group)
        for region in range(N_REGIONS)
        for group in range(len(database.sizes[region]))
    ]
    entities = [(*place, quantity) for place in places for quantity in range(max_quantity + 1)]
    for n_entities in range(1, contributions + 1):
        yield from itertools.combinations_with_replacement(entities, n_entities)


def databases(rng: np.random.Generator, *, private: bool) -> Iterator[Database]:
    """Random ones, and those where all groups are alike, which reach the bounds."""
    missing = (None,) if private else ()
    for size in (0, 3):
        yield Database((((size,) * 2 + missing), ((size,) + missing * 2)))
    for _ in range(12):
        regions = [
            tuple(map(int, rng.integers(0, 6, rng.integers(0 if private else 1, 4))))
            for _ in range(N_REGIONS)
        ]
        yield Database(tuple(region + missing * 2 for region in regions))


Query = Callable[[Database], list[int]]


def counts(database: Database) -> list[int]:
    return [database.region(r).count(size) for r in range(N_REGIONS) for size in range(MOST)]


def cumulative(database: Database) -> list[int]:
    return [
        sum(s <= size for s in database.region(r)) for r in range(N_REGIONS) for size in range(MOST)
    ]


def more_than(database: Database) -> list[int]:
    return [
        sum(s > size for s in database.region(r)) for r in range(N_REGIONS) for size in range(MOST)
    ]


def largest(n: int, floor: int = 0) -> Query:
    """The n largest values of max(size, floor) of each region, filled up with ``floor``, in order."""

    def query(database: Database) -> list[int]:
        answers = []
        for r in range(N_REGIONS):
            values = [max(size, floor) for size in database.region(r)] + [floor] * n
            answers += sorted(values, reverse=True)[:n]
        return answers

    return query


def hybrid(threshold: int, n: int, blocks: list[int], *, private: bool) -> Query:
    """Cumulative counts below a threshold, added up from one block edge to the next, and the n
    largest sizes above.
    """

    def query(database: Database) -> list[int]:
        cells = more_than(database) if private else cumulative(database)
        answers = []
        for r in range(N_REGIONS):
            row = cells[r * MOST : r * MOST + threshold]
            answers += [sum(row[a:b]) for a, b in itertools.pairwise([0, *blocks, threshold])]
        return answers + largest(n, threshold)(database)

    return query


def sizes(database: Database) -> list[int]:
    return [size for r in range(N_REGIONS) for size in sorted(database.region(r))]


def chain(database: Database) -> list[int]:
    """fioretto2021 §9.2: running sums over sizes outside, regions inside."""
    return list(
        itertools.accumulate(
            database.region(r).count(s) for s in range(MOST) for r in range(N_REGIONS)
        )
    )


def n_groups(database: Database) -> list[int]:
    return [len(database.region(r)) for r in range(N_REGIONS)]


def largest_change(
    query: Query, *, private: bool, max_quantity: int, contributions: int
) -> tuple[int, int]:
    """The largest change of the answers over all units of all databases, in L1 and squared L2 norm."""
    l1 = l2_squared = 0
    for database in databases(np.random.default_rng(17), private=private):
        before = query(database)
        for unit in units(database, max_quantity, contributions):
            change = [
                after - answer
                for answer, after in zip(before, query(database.with_unit(unit)), strict=True)
            ]
            l1 = max(l1, sum(map(abs, change)))
            l2_squared = max(l2_squared, sum(c * c for c in change))
    return l1, l2_squared


def measured(query: Query, *, private: bool, max_quantity: int, contributions: int) -> Sensitivity:
    return Sensitivity(
        *largest_change(
            query, private=private, max_quantity=max_quantity, contributions=contributions
        )
    )


BOUNDS = [(1, 1), (1, 2), (3, 1), (2, 2)]
bounded = pytest.mark.parametrize(("max_quantity", "contributions"), BOUNDS)
both_settings = pytest.mark.parametrize("private", [False, True])


@both_settings
@bounded
def test_counts(private: bool, max_quantity: int, contributions: int) -> None:
    found = measured(
        counts, private=private, max_quantity=max_quantity, contributions=contributions
    )
    assert found == counts_sensitivity(contributions=contributions)


@bounded
def test_cumulative(max_quantity: int, contributions: int) -> None:
    stated = cumulative_sensitivity(max_quantity=max_quantity, contributions=contributions)
    assert (
        measured(cumulative, private=False, max_quantity=max_quantity, contributions=contributions)
        == stated
    )
    assert (
        measured(more_than, private=True, max_quantity=max_quantity, contributions=contributions)
        == stated
    )


@bounded
def test_sizes(max_quantity: int, contributions: int) -> None:
    stated = sizes_sensitivity(max_quantity=max_quantity, contributions=contributions)
    assert (
        measured(sizes, private=False, max_quantity=max_quantity, contributions=contributions)
        == stated
    )
    for n in (1, 2, 5):
        found = measured(
            largest(n), private=True, max_quantity=max_quantity, contributions=contributions
        )
        assert found == stated


@both_settings
@bounded
@pytest.mark.parametrize(
    ("threshold", "n", "blocks"),
    [(1, 2, []), (4, 1, []), (4, 3, [1, 2, 3]), (5, 2, [2, 4]), (6, 9, [1, 5])],
)
def test_hybrid(
    threshold: int, n: int, blocks: list[int], private: bool, max_quantity: int, contributions: int
) -> None:
    query = hybrid(threshold, n, blocks, private=private)
    found = measured(query, private=private, max_quantity=max_quantity, contributions=contributions)
    stated = hybrid_sensitivity(max_quantity=max_quantity, contributions=contributions)
    assert found.l1 == stated.l1
    assert found.l2_squared <= stated.l2_squared
    # Wide blocks or a large tail reach the bound in L2 too.
    assert found.l2_squared == stated.l2_squared or len(blocks) + 1 == threshold


def test_hybrid_changes_in_one_place_only_for_single_entities() -> None:
    """What lets T, the blocks and M depend on earlier noisy answers at no price: with k = z = 1 one
    answer changes.
    """
    for private in (False, True):
        query = hybrid(4, 3, [1, 3], private=private)
        for database in databases(np.random.default_rng(3), private=private):
            for unit in units(database, 1, 1):
                changed = np.flatnonzero(
                    np.subtract(query(database), query(database.with_unit(unit)))
                )
                assert len(changed) <= 1


@both_settings
@pytest.mark.parametrize("largest_size", [0, 1, 3])
def test_cutting_sizes_off_never_raises_a_sensitivity(private: bool, largest_size: int) -> None:
    def cut(query: Query) -> Query:
        def cut_query(database: Database) -> list[int]:
            sizes = [
                [None if s is None else min(s, largest_size) for s in region]
                for region in database.sizes
            ]
            return query(Database(tuple(map(tuple, sizes))))

        return cut_query

    bound = {"max_quantity": 2, "contributions": 2}
    for query, stated in [
        (counts, counts_sensitivity(contributions=2)),
        (more_than if private else cumulative, cumulative_sensitivity(**bound)),
        (largest(3), sizes_sensitivity(**bound)),
        (hybrid(2, 3, [1], private=private), hybrid_sensitivity(**bound)),
    ]:
        l1, l2_squared = largest_change(cut(query), private=private, **bound)
        assert l1 <= stated.l1
        assert l2_squared <= stated.l2_squared


@both_settings
@bounded
def test_largest_size(private: bool, max_quantity: int, contributions: int) -> None:
    found = measured(
        largest(1), private=private, max_quantity=max_quantity, contributions=contributions
    )
    assert found == largest_size_sensitivity(max_quantity=max_quantity, contributions=contributions)


@bounded
def test_group_totals(max_quantity: int, contributions: int) -> None:
    found = measured(n_groups, private=True, max_quantity=max_quantity, contributions=contributions)
    assert found == group_totals_sensitivity(contributions=contributions)


@bounded
def test_chain_is_not_what_the_paper_says(max_quantity: int, contributions: int) -> None:
    found = measured(chain, private=False, max_quantity=max_quantity, contributions=contributions)
    assert found == chain_sensitivity(
        N_REGIONS, max_quantity=max_quantity, contributions=contributions
    )
    assert found.l1 > contributions * max_quantity


@pytest.mark.parametrize("contributions", [1, 2, 3])
def test_histogram(contributions: int) -> None:
    """Entities fall into three bins; a unit brings up to k of them."""
    l1 = l2_squared = 0
    for n_entities in range(1, contributions + 1):
        for bins in itertools.combinations_with_replacement(range(3), n_entities):
            change = np.bincount(bins, minlength=3)
            l1, l2_squared = max(l1, int(change.sum())), max(l2_squared, int((change**2).sum()))
    assert Sensitivity(l1, l2_squared) == histogram_sensitivity(contributions=contributions)


def test_bounds_below_one_are_refused() -> None:
    with pytest.raises(RequestError, match="contributions must be at least 1"):
        counts_sensitivity(contributions=0)
    with pytest.raises(RequestError, match="max_quantity must be at least 1"):
        sizes_sensitivity(max_quantity=0)
    with pytest.raises(RequestError, match="n_regions must be at least 1"):
        chain_sensitivity(0)


def whole_group_change(query: Query) -> Sensitivity:
    """The largest change over all small databases, with one group more of any size in any region."""
    l1 = l2_squared = 0
    for n_groups in range(4):
        for groups in itertools.combinations_with_replacement(
            itertools.product(range(N_REGIONS), (0, 1, 3, 5)), n_groups
        ):
            before = query(_database(groups))
            for group in itertools.product(range(N_REGIONS), range(2 * MOST)):
                change = np.subtract(query(_database((*groups, group))), before)
                l1, l2_squared = (
                    max(l1, int(np.abs(change).sum())),
                    max(l2_squared, int((change**2).sum())),
                )
    return Sensitivity(l1, l2_squared)


def _database(groups: tuple[tuple[int, int], ...]) -> Database:
    return Database(
        tuple(tuple(size for region, size in groups if region == r) for r in range(N_REGIONS))
    )


def in_bins(bins: SizeBins) -> Query:
    """What the mechanism asks about a level, from the code that asks it."""

    def query(database: Database) -> list[int]:
        table = np.zeros((N_REGIONS, bins.n_bins), dtype=np.int64)
        for r in range(N_REGIONS):
            for size in database.region(r):
                table[r, bins.bin_of(np.array([size]))] += 1
        return answers_of(table, bins).ravel().tolist()

    return query


@pytest.mark.parametrize("edges", [[0, 1, 2, 3, 4], [0, 2, 3, 7, 30], [1, 2, 10]])
def test_bins_of_sizes_change_by_one_where_a_whole_group_comes_or_goes(edges: list[int]) -> None:
    bins = SizeBins(np.array(edges))
    assert whole_group_change(in_bins(bins)) == size_bins_sensitivity()


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("k", [2, 3])
def test_bins_and_blocks_where_several_whole_groups_come_or_go(block: int, k: int) -> None:
    query = in_bins(SizeBins(np.array([0, 1, 2, 4, 8]), block))
    before = query(_database(((0, 1),)))
    l1 = l2_squared = 0
    possible = list(itertools.product(range(N_REGIONS), range(2 * MOST)))
    for added in itertools.combinations_with_replacement(possible, k):
        change = np.subtract(query(_database(((0, 1), *added))), before)
        l1, l2_squared = (
            max(l1, int(np.abs(change).sum())),
            max(l2_squared, int((change**2).sum())),
        )
    stated = size_blocks_sensitivity if block else size_bins_sensitivity
    assert Sensitivity(l1, l2_squared) == stated(contributions=k)


@pytest.mark.parametrize("block", [2, 3, 4])
def test_blocks_of_bins_where_a_whole_group_comes_or_goes(block: int) -> None:
    bins = SizeBins(np.array([0, 1, 2, 3, 4, 8]), block)
    assert whole_group_change(in_bins(bins)) == size_blocks_sensitivity()


@both_settings
@bounded
@pytest.mark.parametrize("edges", [[0, 1, 2, 3, 4], [0, 2, 4, 30], [1, 2, 10]])
def test_bins_of_sizes_change_by_two_where_an_entity_moves_a_group(
    edges: list[int], private: bool, max_quantity: int, contributions: int
) -> None:
    found = measured(
        in_bins(SizeBins(np.array(edges))),
        private=private,
        max_quantity=max_quantity,
        contributions=contributions,
    )
    stated = moved_size_bins_sensitivity(contributions=contributions)
    assert found.l1 <= stated.l1
    assert found.l2_squared <= stated.l2_squared
    if edges == [0, 1, 2, 3, 4]:
        assert found == stated


@both_settings
@bounded
@pytest.mark.parametrize("block", [2, 3])
def test_blocks_of_bins_where_an_entity_moves_a_group(
    block: int, private: bool, max_quantity: int, contributions: int
) -> None:
    found = measured(
        in_bins(SizeBins(np.array([0, 1, 2, 3, 4, 5, 6, 8]), block)),
        private=private,
        max_quantity=max_quantity,
        contributions=contributions,
    )
    stated = moved_size_blocks_sensitivity(contributions=contributions)
    assert found.l1 <= stated.l1
    assert found.l2_squared <= stated.l2_squared
    if block == 2:
        assert found == stated


@pytest.mark.parametrize("query", [counts, cumulative, n_groups])
def test_a_whole_group_changes_other_views_by_more_or_as_much(query: Query) -> None:
    """Why no other view is offered for whole groups: cumulative counts change at every size from
    the group's on.
    """
    found = whole_group_change(query)
    assert found.l1 >= 1
    assert (found.l1 > 1) == (query is cumulative)


@pytest.mark.parametrize("bound", [1, 2, 3])
def test_people_by_class(bound: int) -> None:
    """All ways in which a unit of up to k entities, a person with several rows or a whole group,
    adds to tables of classes.
    """
    entities = list(itertools.product(range(N_REGIONS), range(3)))
    l1 = l2_squared = 0
    for n_entities in range(1, bound + 1):
        for unit in itertools.combinations_with_replacement(entities, n_entities):
            change = np.zeros((N_REGIONS, 3), dtype=np.int64)
            np.add.at(change, tuple(np.array(unit).T), 1)
            l1, l2_squared = max(l1, np.abs(change).sum()), max(l2_squared, (change**2).sum())
    assert people_sensitivity(contributions=bound) == Sensitivity(int(l1), int(l2_squared))

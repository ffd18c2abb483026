"""Every number that ``evaluate`` shows for group sizes, beside its value worked out by hand."""

import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tests.reference.group_sizes import counts_from_lists

TREE = hierarchy_from_leaves(["state"], [("a",), ("b",)])


def counts(*sizes: list[int]) -> ConfidentialCounts:
    table = counts_from_lists(list(sizes))
    return ConfidentialCounts(PublicFacts(TREE), table, table.n_groups())


RELEASED = counts([1, 1, 2, 6], [3, 3, 3])  # published as it is: at this ε there is no noise
TRUTH = counts([1, 2, 2, 4], [3, 3, 8])


def evaluation():
    made = tt.release(RELEASED, epsilon=10**6, view="cumulative", max_size=10, insecure_seed=1)
    assert [made.region(path).n_groups for path in ("total/a", "total/b")] == [4, 3]
    return tt.evaluate(made, TRUTH)


def test_errors_of_group_sizes_by_hand():
    total, states = evaluation().levels
    # State a: sizes 1 and 6 have one group too many, 2 and 4 one too few. Sorted, 1 1 2 6 against 1
    # 2 2 4: 1 + 2 = 3. State b: size 3 has one too many, 8 one too few; 3 3 3 against 3 3 8: 5.
    assert (states.level, states.name, states.regions) == (1, "state", 2)
    assert states.emd == pytest.approx((3 + 5) / 2)
    assert states.l1 == pytest.approx((4 + 2) / 2)
    assert states.l2 == pytest.approx((2 + 2**0.5) / 2)
    # Sizes that occur in the truth: 1, 2, 4 in a (errors 1, -1, -1), 3 and 8 in b (1, -1): all
    # squares are 1.
    assert states.count_error == pytest.approx(1.0)
    assert states.distinct_sizes == pytest.approx((3 + 2) / 2)
    # All: 1 1 2 3 3 3 6 against 1 2 2 3 3 4 8: 1 + 1 + 2 = 4. Counts by size 1: +1, 2: -1, 3: +1,
    # 4: -1, 6: +1, 8: -1.
    assert (total.level, total.name, total.regions) == (0, "total", 1)
    assert total.emd == 4
    assert total.l1 == 6
    assert total.l2 == pytest.approx(6**0.5)
    assert total.count_error == pytest.approx(1.0)
    assert total.distinct_sizes == 5
    assert evaluation().emd.tolist() == [4, 3, 5]
    assert (total.l1_total, states.l1_total) == (6, 4 + 2)
    # Half of ε for each level: √2/ε for each of the sizes that occur.
    assert total.omniscient == pytest.approx(5 * 2**0.5 / (10**6 / 2))
    assert states.omniscient == pytest.approx(2.5 * 2**0.5 / (10**6 / 2))


def test_errors_by_size_by_hand():
    found = {(one.name, one.sizes): one for one in evaluation().sizes}
    assert [sizes for name, sizes in found if name == "state"] == [
        "1",
        "2",
        "3",
        "4",
        "6",
        "8 to 9",
    ]
    one = found["state", "1"]
    assert (one.groups, one.l1, one.share, one.mean_error) == (1, 1, 1 / 6, 1.0)
    large = found["total", "8 to 9"]
    assert (large.groups, large.l1, large.share) == (1, 1, 1 / 6)
    assert found["state", "3"].groups == 2
    assert sum(one.l1 for one in evaluation().sizes) == 6 + 6
    many = counts([10, 11, 11, 15], [3])
    made = tt.release(
        counts([10, 10, 10, 10], [3]),
        epsilon=10**6,
        view="cumulative",
        max_size=20,
        insecure_seed=1,
    )
    tens = next(one for one in tt.evaluate(made, many).sizes if one.sizes == "10 to 19")
    # Four groups of 10 against one of 10, two of 11, one of 15: 3 + 2 + 1 over three counts.
    assert (tens.groups, tens.l1, tens.mean_error) == (4, 6, 2.0)


def test_all_of_it_is_marked_as_not_private():
    result = evaluation()
    assert "not private" in result.to_json()["warning"]
    assert "NOT PRIVATE; EMD total: 4, state: 4" in repr(result)
    assert "do not publish" in result._repr_html_()


def test_other_regions_are_refused():
    other = counts_from_lists([[1]])
    truth = ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(["state"], [("a",)])), other, other.n_groups()
    )
    with pytest.raises(RequestError, match="must be the same regions"):
        tt.evaluate(
            tt.release(RELEASED, epsilon=1, view="cumulative", max_size=10, insecure_seed=1), truth
        )

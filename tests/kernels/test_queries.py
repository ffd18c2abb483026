import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tallytree.kernels.queries import count_more_than, largest_sizes
from tests.reference.group_sizes import counts_from_lists, sizes_by_region


@given(sizes_by_region(), st.lists(st.integers(0, 40), min_size=6, max_size=6))
def test_count_more_than(sizes: list[list[int]], lengths: list[int]) -> None:
    values, offsets = count_more_than(counts_from_lists(sizes), np.array(lengths[: len(sizes)]))
    for region, groups in enumerate(sizes):
        got = values[offsets[region] : offsets[region + 1]].tolist()
        assert got == [sum(size > i for size in groups) for i in range(lengths[region])]


@given(
    sizes_by_region(),
    st.lists(st.integers(0, 15), min_size=6, max_size=6),
    st.lists(st.integers(0, 35), min_size=6, max_size=6),
)
def test_largest_sizes(sizes: list[list[int]], lengths: list[int], floors: list[int]) -> None:
    n = len(sizes)
    values, offsets = largest_sizes(
        counts_from_lists(sizes), np.array(lengths[:n]), np.array(floors[:n])
    )
    for region, groups in enumerate(sizes):
        raised = sorted(max(size, floors[region]) for size in groups)
        padded = [floors[region]] * max(0, lengths[region] - len(raised)) + raised
        assert (
            values[offsets[region] : offsets[region + 1]].tolist()
            == padded[len(padded) - lengths[region] :]
        )

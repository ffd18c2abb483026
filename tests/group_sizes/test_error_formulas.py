import pytest

from tallytree.group_sizes.plan.error_formulas import omniscient_error


def test_omniscient_error_of_the_papers_example() -> None:
    # kuo2018 §6.2: 2,352 sizes at 0.1 per level, "around 3.3 × 10⁴".
    assert omniscient_error(2352, 0.1) == pytest.approx(3.3e4, rel=0.01)

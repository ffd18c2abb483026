import pytest

import tallytree as tt
from tallytree.releases.progress import by_work
from tests.group_sizes.test_memory import TRUTH

Report = tuple[int, int, str]


def test_steps_count_by_their_work() -> None:
    seen: list[Report] = []
    report = by_work(lambda *step: seen.append(step), [1, 9, 30])
    for done in range(3):
        report(done, 3, "step")
    report(1, 2, "other steps")
    assert seen == [(0, 40, "step"), (1, 40, "step"), (10, 40, "step"), (1, 2, "other steps")]


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        ("matching", ("measuring total", "measuring leaf", "estimating total", "estimating leaf")),
        ("adaptive", ("measuring total", "estimating total", "measuring leaf", "estimating leaf")),
    ],
)
def test_a_release_reports_rising_shares_of_one_total(
    mechanism: str, expected: tuple[str, ...]
) -> None:
    seen: list[Report] = []
    tt.release(
        TRUTH,
        epsilon=1,
        mechanism=mechanism,
        budget="equal",
        progress=lambda *step: seen.append(step),
    )
    done, totals, steps = zip(*seen)
    assert list(done) == sorted(done)
    assert len(set(totals)) == 1
    assert steps == expected

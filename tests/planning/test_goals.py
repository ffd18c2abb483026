import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.planning.group_sizes.goals import GOALS, Goal, goal_from

LEVELS = ["US", "state", "county"]


@pytest.mark.parametrize("name", GOALS)
def test_every_goal_prefers_smaller_errors(name: str) -> None:
    goal = goal_from(name, LEVELS)
    errors = np.array([100.0, 30.0, 5.0])
    for level in range(3):
        better = errors.copy()
        better[level] *= 0.9
        assert goal.regret(better) < goal.regret(errors)


def test_targets_are_read_and_count_until_they_are_met() -> None:
    goal = goal_from(["state: emd<=50", " US:emd <= 1e3 "], LEVELS)
    assert goal == Goal(targets={1: 50.0, 0: 1000.0})
    met, missed = np.array([900.0, 50.0, 5.0]), np.array([90.0, 60.0, 0.5])
    assert goal.regret(met) < goal.regret(missed)


@pytest.mark.parametrize(
    "given", ["speed", "state: l1<=5", "state: emd<=0", "state: emd<=1.2.3", "zip: emd<=5", ["county"], "state: emd>=5"]
)
def test_other_goals_are_refused_with_what_is_accepted(given: object) -> None:
    with pytest.raises(RequestError, match=r"one of|Write LEVEL|levels are"):
        goal_from(given, LEVELS)  # type: ignore[arg-type]

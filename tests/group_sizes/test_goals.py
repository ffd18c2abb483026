import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.group_sizes.plan.goals import GOALS, Goal, PlainErrors, goal_from

LEVELS = ["US", "state", "county"]
PLAIN = PlainErrors(np.array([80.0, 40.0, 20.0]), np.array([80.0, 40.0, 6.0]))


@pytest.mark.parametrize("name", GOALS)
def test_every_goal_prefers_smaller_errors(name: str) -> None:
    goal = goal_from(name, LEVELS)
    errors = np.array([100.0, 30.0, 5.0])
    for level in range(3):
        better = errors.copy()
        better[level] *= 0.9
        assert goal.regret(better, PLAIN) < goal.regret(errors, PLAIN)


def test_targets_are_read_and_count_until_they_are_met() -> None:
    goal = goal_from(["state: emd<=50", " US:emd <= 1e3 "], LEVELS)
    assert goal == Goal(targets={1: 50.0, 0: 1000.0})
    met, missed = np.array([900.0, 50.0, 5.0]), np.array([90.0, 60.0, 0.5])
    assert goal.regret(met, PLAIN) < goal.regret(missed, PLAIN)


def test_a_percent_counts_more_behind_the_plain_choices() -> None:
    """For the balanced goal; more behind kuo2018 than behind the better plain choice alone, and
    most where it tips.
    """
    goal = Goal()

    def gain(leaf: float) -> float:
        worse, better = (np.array([40.0, 30.0, leaf * change]) for change in (1.0, 0.99))
        return goal.regret(worse, PLAIN) - goal.regret(better, PLAIN)

    ahead, behind, behind_both = gain(3.0), gain(15.0), gain(40.0)
    assert 0 < ahead < behind < behind_both
    assert gain(10.0) > ahead, "half of kuo2018 is at stake"
    assert gain(6.3) > behind, "it is about to be noticed"


def test_what_it_costs_to_be_behind_is_as_written_down() -> None:
    """By hand: 5 % behind both choices is noticed with chance 1/2, and half of kuo2018 then has
    little chance.
    """
    behind = np.array([np.exp(0.05)])
    alone = PlainErrors(np.ones(1), np.ones(1))
    little = 1 / (1 + np.exp(1.7 * (np.log(2) + 0.05) / 0.4))
    assert Goal().regret(behind, alone) == pytest.approx(0.05 + 2 * 1.5 * 0.05 + 1 / 2 - little / 2)
    half = np.array([0.5, 0.5])
    both = PlainErrors(np.ones(2), np.ones(2))
    noticed = [1 / (1 + np.exp(1.7 * (np.log(2) + 0.05) / unsure)) for unsure in (0.4, 0.3)]
    assert Goal().regret(half, both) == pytest.approx(-2 * np.log(2) + sum(noticed) - 2 * 1 / 4)


@pytest.mark.parametrize(
    "given",
    [
        "speed",
        "state: l1<=5",
        "state: emd<=0",
        "state: emd<=1.2.3",
        "zip: emd<=5",
        ["county"],
        "state: emd>=5",
    ],
)
def test_other_goals_are_refused_with_what_is_accepted(given: object) -> None:
    with pytest.raises(RequestError, match=r"one of|Write LEVEL|levels are"):
        goal_from(given, LEVELS)  # type: ignore[arg-type]

from datetime import date, timedelta

import pytest

from tallytree.errors import RequestError
from tallytree.model.steps import Steps, steps_from

ALL = [
    steps_from(None, None), steps_from("-3", None), steps_from("2025-01-30", "day"), steps_from("2024-02-26", "week"),
    steps_from(date(2024, 11, 28), "month"),
]  # fmt: skip


@pytest.mark.parametrize("steps", ALL, ids=str)
def test_every_moment_lies_in_the_step_whose_cuts_hold_it(steps: Steps) -> None:
    cuts = steps.cuts(20)
    for moment in range(int(cuts[0]) - 3, int(cuts[-1])):
        value = moment if steps.every is None else date(1970, 1, 1) + timedelta(days=moment)
        step = steps.holding(value)
        assert max(step, -1) == sum(cut <= moment for cut in cuts.tolist()) - 1
        # Over are the steps whose last moment is not after this one.
        assert max(steps.until(value), 0) == sum(cut <= moment + 1 for cut in cuts.tolist()[1:])


def test_names() -> None:
    assert [steps_from("5", None).name(step) for step in (0, 2)] == [5, 7]
    assert steps_from("2025-01-28", "month").name(14) == date(2026, 3, 28)
    with pytest.raises(RequestError, match="after the year 9999"):
        steps_from("9999-12-01", "month").name(1)


@pytest.mark.parametrize(
    ("start", "every", "message"),
    [
        ("2025-01-01", None, "For dates, add every"),
        (1.5, None, "whole number"),
        (True, None, "whole number"),
        ("1", "day", "A date is written as"),
        (None, "week", "need start"),
        ("2025-01-31", "month", "1 to 28"),
        ("2025-01-01", "year", "one of day, week, month"),
    ],
)
def test_steps_that_are_none_are_refused(start: object, every: str | None, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        steps_from(start, every)

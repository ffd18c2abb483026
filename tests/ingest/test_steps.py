from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tallytree.errors import InputError, RequestError
from tallytree.ingest.steps import read_steps
from tallytree.model.part import Part
from tallytree.model.steps import Steps, steps_from

DAYS = steps_from("2025-01-01", "day")


def counted(table: Any, column: str, steps: Steps, n_steps: int, **options: Any) -> list[int]:
    return read_steps(table, column, steps, n_steps, **options).counts.tolist()


def test_rows_of_numbers_dates_times_and_text_are_counted_per_step() -> None:
    numbers = pa.table(
        {"step": [0, 1, 1, 3, 4, 900], "n": [9, 2, 0, 5, 9, 9], "state": list("aabaab")}
    )
    assert counted(numbers, "step", Steps(), 3) == [2, 0, 1]
    assert counted(numbers, "step", Steps(), 3, count="n") == [2, 0, 5]
    assert counted(numbers, "step", Steps(), 4, where=Part("state", "a")) == [1, 0, 1, 1]
    assert counted(pa.table({"step": [1.0, 1.99, 2.0, 3.0]}), "step", Steps(), 2) == [2, 1]
    assert counted(numbers.slice(0, 0), "step", Steps(), 2) == [0, 0]
    days = [date(2024, 12, 31), date(2025, 1, 1), date(2025, 1, 3), date(2025, 1, 4)]
    assert counted(pa.table({"day": days}), "day", DAYS, 3) == [1, 0, 1]
    assert counted(pa.table({"day": [str(day) for day in days]}), "day", DAYS, 3) == [1, 0, 1]
    late = [datetime.combine(day, datetime.max.time()) for day in days]
    assert counted(pa.table({"time": late}), "time", DAYS, 3) == [1, 0, 1]
    assert counted(pa.table({"day": days}), "day", steps_from("2024-12-02", "month"), 2) == [2, 2]


def test_the_end_of_the_last_step_is_not_in_it() -> None:
    """Counted now and again in the next step, such a row would be counted twice."""
    noon = pa.table({"time": [datetime(2025, 1, 3), datetime(2025, 1, 2, 12)]})
    assert counted(noon, "time", DAYS, 2) == [0, 1]
    assert counted(noon, "time", DAYS, 3) == [0, 1, 1]


def test_more_steps_change_nothing_about_those_before() -> None:
    """Also with a unit: which of its rows count does not depend on rows that come later."""
    rng = np.random.default_rng(1)
    table = pa.table({"step": rng.integers(1, 40, 3000), "who": rng.integers(0, 90, 3000)})
    apart = {"unit": "who", "contributions": 3, "min_gap": 5}
    for options in (apart, {}, {"unit": "who", "contributions": 3}):
        whole = counted(table, "step", Steps(), 39, **options)
        for n_steps in (1, 7, 20):
            so_far = table.filter(pa.array(table["step"].to_numpy() <= n_steps))
            assert counted(so_far, "step", Steps(), n_steps, **options) == whole[:n_steps]
    assert sum(whole) == 3 * 90


def test_the_first_rows_of_a_unit_count() -> None:
    table = pa.table({"step": [5, 1, 3, 3, 2], "who": ["a", "a", "a", "a", "b"]})
    found = read_steps(table, "step", Steps(), 5, unit="who", contributions=2)
    assert found.counts.tolist() == [1, 1, 1, 0, 0]
    assert found.unit.words == "all rows of one who (of which at most 2 are counted)"
    assert "of one who the first rows by step count" in found.note
    assert repr(found) == "ConfidentialArrivals(5 steps, values hidden)"
    with pytest.raises(RequestError, match="unit= goes with rows"):
        read_steps(table, "step", Steps(), 5, unit="who", contributions=2, count="step")


@pytest.mark.parametrize("gap", [1, 3, 7])
@pytest.mark.parametrize("most", [2, 5])
def test_rows_that_come_back_too_soon_do_not_count(most: int, gap: int) -> None:
    """Beside a loop over the rows of each unit; of rows before the first step nothing is known."""
    rng = np.random.default_rng(gap)
    table = pa.table({"step": rng.integers(-3, 60, 700), "who": rng.integers(0, 40, 700)})
    expected, left_out = [0] * 50, 0
    for unit in range(40):
        counted_at: list[int] = []
        rows = sorted(table.filter(pc.equal(table["who"], unit))["step"].to_pylist())
        for step in (row for row in rows if 1 <= row <= 50):
            if len(counted_at) < most and all(step - other >= gap for other in counted_at):
                counted_at.append(step)
                expected[step - 1] += 1
            else:
                left_out += 1
    options: dict[str, Any] = {"unit": "who", "contributions": most, "min_gap": gap}
    found = read_steps(table, "step", Steps(), 50, **options)
    assert found.counts.tolist() == expected
    assert left_out in [number for _, number in found.altered.numbers]
    assert found.unit.words.endswith(f"at most {most} are counted, at least {gap} steps apart)")
    assert f"at least {gap} steps apart" in found.note


def test_weeks_apart_are_counted_in_steps_not_in_days() -> None:
    days = [date(2025, 1, 6), date(2025, 1, 13), date(2025, 1, 19), date(2025, 1, 20)]
    table = pa.table({"day": days, "who": ["a"] * 4})
    weeks = steps_from("2025-01-06", "week")
    options: dict[str, Any] = {"unit": "who", "contributions": 4}
    assert counted(table, "day", weeks, 3, **options, min_gap=1) == [1, 1, 1]
    assert counted(table, "day", weeks, 3, **options, min_gap=2) == [1, 0, 1]


@pytest.mark.parametrize(
    ("values", "steps", "message"),
    [
        (["2025-01-01", "soon"], DAYS, "text that is not a date"),
        ([date(2025, 1, 1), None], DAYS, "missing values"),
        (pa.array([0], pa.timestamp("us", "UTC")), DAYS, "has a time zone"),
        ([1, 2], DAYS, "dates or times are needed"),
        ([1.0, float("nan")], Steps(), "missing values"),
        (["1", "x"], Steps(), "not a number"),
        ([timedelta(1)], Steps(), "numbers are needed"),
    ],
)
def test_columns_that_say_no_time_are_refused(values: Any, steps: Steps, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_steps(pa.table({"when": values}), "when", steps, 3)


def test_a_row_without_its_unit_is_refused() -> None:
    with pytest.raises(InputError, match="who"):
        read_steps(
            pa.table({"step": [1, 2], "who": ["a", None]}),
            "step",
            Steps(),
            2,
            unit="who",
            contributions=1,
        )

"""The steps of a stream: numbers, or days, weeks or months from a date on. Public, and fixed before
the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Literal, get_args

from tallytree.errors import RequestError

if TYPE_CHECKING:
    from tallytree.model.arrays import IntArray

Every = Literal["day", "week", "month"]
_EPOCH = date(1970, 1, 1)
_LAST_DAY_OF_EVERY_MONTH = 28


@dataclass(frozen=True)
class Steps:
    """Where steps begin and end.

    Attributes
    ----------
    start
        The number of the first step, or the date on which it begins.
    every
        How long steps are, where ``start`` is a date; None where steps are numbers.

    Examples
    --------
    >>> weeks = steps_from("2025-01-06", "week")
    >>> weeks.until("2025-01-26"), weeks.until("2025-01-25"), weeks.name(1)
    (3, 2, datetime.date(2025, 1, 13))
    """

    start: int | date = 1
    every: Every | None = None

    def name(self, step: int) -> int | date:
        """What a step, numbered from 0, is called: its number, or its first day."""
        if isinstance(self.start, int):
            return self.start + step
        try:
            if self.every == "month":
                months = self.start.year * 12 + self.start.month - 1 + step
                return date(months // 12, months % 12 + 1, self.start.day)
            return self.start + timedelta(days=step * (7 if self.every == "week" else 1))
        except (ValueError, OverflowError):
            raise RequestError(
                f"Step {step + 1:,} of the stream lies after the year 9999."
            ) from None

    def cuts(self, n_steps: int) -> IntArray:
        """Where steps begin, and where the last one ends: in numbers, or in days since 1970."""
        import numpy as np  # options of streams need the names of steps, not these

        names = (self.name(step) for step in range(n_steps + 1))
        return np.array(
            [name if isinstance(name, int) else (name - _EPOCH).days for name in names],
            dtype=np.int64,
        )

    def holding(self, value: object) -> int:
        """The step, numbered from 0, in which a number or a date lies; negative before the first
        one.
        """
        if isinstance(self.start, int):
            return _whole(value) - self.start
        day = as_date(value)
        if self.every == "month":
            months = (day.year - self.start.year) * 12 + day.month - self.start.month
            return months - (day.day < self.start.day)
        return (day - self.start).days // (7 if self.every == "week" else 1)

    def until(self, last: object) -> int:
        """How many steps are over when the step, or the day, ``last`` is."""
        if isinstance(self.start, int):
            return self.holding(last) + 1
        return self.holding(as_date(last) + timedelta(days=1))


def steps_from(start: object, every: str | None) -> Steps:
    """The steps that the options ``start`` and ``every`` describe."""
    if every is None:
        return Steps(1 if start is None else _whole(start))
    for known in get_args(Every):
        if every == known:
            break
    else:
        raise RequestError(f"every is one of {', '.join(get_args(Every))}; got {every!r}.")
    if start is None:
        raise RequestError(
            "Steps of a day, week or month need start: the date on which the first one begins."
        )
    first = as_date(start)
    if known == "month" and first.day > _LAST_DAY_OF_EVERY_MONTH:
        raise RequestError(
            f"Months begin on a day that every month has, 1 to {_LAST_DAY_OF_EVERY_MONTH}; got "
            f"{first}."
        )
    return Steps(first, known)


def as_date(value: object) -> date:
    """A date, or one that is written as in 2025-01-31."""
    if type(value) is date:
        return value
    try:
        return date.fromisoformat(str(value).strip())
    except ValueError:
        raise RequestError(f"A date is written as in 2025-01-31; got {value!r}.") from None


def _whole(value: object) -> int:
    try:
        number = float(str(value))
        if isinstance(value, bool) or not number.is_integer() or abs(number) > 2**53:
            raise ValueError
    except ValueError:
        raise RequestError(
            f"The number of a step is a whole number; got {value!r}. For dates, add every."
        ) from None
    return int(number)

"""Values in steps: the public scale on which values are counted, exact whatever the step.

A value counts as a whole number of steps above the least one, so everything behind reading works
with that number where it would work with the size of a group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import RequestError, VerificationError
from tallytree.model.arrays import AnyArray, FloatArray, IntArray

MOST_STEPS = 10_000_000
"""Steps of a scale: between floats that differ by less a value has no certain place."""
_LARGEST = 2**53


@dataclass(frozen=True)
class ValueScale:
    """Values from ``first`` to ``last`` steps of ``step``; others count as the nearer of the two.

    Attributes
    ----------
    name
        The column of values.
    step
        A value is rounded down to a multiple of it.
    first, last
        The least and the largest value, in steps from 0.

    Examples
    --------
    >>> scale = value_scale("temperature", step="0.1", least="-0.2", largest="0.3")
    >>> scale.n_steps, scale.values(np.array([0, 1, 5])).tolist()
    (5, [-0.2, -0.1, 0.3])
    """

    name: str
    step: Fraction
    first: int
    last: int

    @property
    def n_steps(self) -> int:
        """Steps from the least value to the largest."""
        return self.last - self.first

    @property
    def whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.step.denominator == 1

    def values(self, steps: IntArray | FloatArray) -> AnyArray:
        """The values of some numbers of steps above the least one: of whole numbers of steps the
        floats nearest to the exact values, or whole numbers where all are.
        """
        # Both numbers are exact floats, so that their quotient is the float nearest to the value.
        found = (np.asarray(steps) + self.first) * self.step.numerator
        return found if self.whole else found / self.step.denominator

    def value(self, steps: float) -> float:
        """One of them, which may lie between two steps."""
        found: float = self.values(np.array([steps])).tolist()[0]
        return found

    def steps(self, values: AnyArray) -> IntArray:
        """The steps of values of the scale; refuses others."""
        found = np.rint(np.asarray(values, dtype=np.float64) / float(self.step)).astype(np.int64)
        steps: IntArray = found - self.first
        outside = (steps < 0) | (steps > self.n_steps)
        if np.any(outside) or not np.array_equal(self.values(steps), values):
            raise VerificationError("A table of the release has values that are not on its scale.")
        return steps

    @property
    def sentence(self) -> str:
        """What is done to a value before it counts."""
        down = "" if self.step == 1 else f" to a multiple of {_plain(self.step)}"
        return (
            f"{self.name} rounded down{down} and taken into the range from "
            f"{_plain(self.first * self.step)} to {_plain(self.last * self.step)}"
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-ready scale."""
        return {
            "column": self.name,
            "step": str(self.step),
            "least": str(self.first * self.step),
            "largest": str(self.last * self.step),
        }


def value_scale(name: str, *, step: Any, least: Any, largest: Any) -> ValueScale:
    """The scale that was asked for: bounds are multiples of the step."""
    numbers = {"step": _exact(step, "step"), "min": _exact(least, "min")}
    numbers["max"] = _exact(largest, "max")
    size = numbers["step"]
    if size <= 0:
        raise RequestError(f"step= is above 0, got {step!r}.")
    ends = [numbers[which] / size for which in ("min", "max")]
    for which, end in zip(("min", "max"), ends):
        if end.denominator != 1:
            raise RequestError(
                f"{which}= is a multiple of step= ({_plain(size)}), got {_plain(numbers[which])}."
            )
    first, last = (int(end) for end in ends)
    if first >= last:
        raise RequestError("max= is above min=, which is 0 where it is not given.")
    if last - first > MOST_STEPS:
        raise RequestError(
            f"There are {last - first:,} steps from min= to max=; at most {MOST_STEPS:,} are told "
            "apart. Take a larger step=."
        )
    if max(abs(first), abs(last), 1) * max(size.numerator, size.denominator) > _LARGEST:
        raise RequestError(
            "step=, min= and max= have more digits than 64-bit floating-point numbers hold."
        )
    return ValueScale(name, size, first, last)


def scale_from_json(facts: Mapping[str, Any]) -> ValueScale:
    """The scale that :meth:`ValueScale.to_json` wrote."""
    return value_scale(
        str(facts["column"]), step=facts["step"], least=facts["least"], largest=facts["largest"]
    )


def _exact(number: Any, name: str) -> Fraction:
    """A number as it is written: 0.1 is one tenth."""
    try:
        return Fraction(str(number))
    except (ValueError, ZeroDivisionError):
        raise RequestError(f"{name}= is a number, got {number!r}.") from None


def _plain(number: Fraction) -> str:
    """A number as people write it."""
    if number.denominator == 1:
        return f"{number.numerator:,}"
    return f"{float(number):,.15g}" if Fraction(str(float(number))) == number else str(number)

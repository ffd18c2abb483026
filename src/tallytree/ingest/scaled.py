"""A column of any numbers as steps of a public scale, exactly and inside the engine.

Between two steps lies the float nearest to their exact border, so that 0.3 is three steps of 0.1.
A step is a fraction p/q, and k p and q are floats without error: their quotient is that float, on
every engine. A first guess of k is at most one off, for it is below 10⁷; comparing the value with
the borders around it mends that.
"""

from __future__ import annotations

from typing import Any

import ibis

from tallytree.ingest.columns import is_nan, number
from tallytree.model.scale import ValueScale


def steps_of(table: Any, scale: ValueScale, source: str) -> Any:
    """Steps of each value above the least one; null where there is no number.

    What is no number is treated as what is missing, without a word: an error would tell that it is
    there.
    """
    raw, _ = number(table, scale.name, source)
    p, q = (float(part) for part in scale.step.as_integer_ratio())

    def border(steps: Any) -> Any:
        return steps * p / q

    low, high = (_constant(end * p / q) for end in (scale.first, scale.last))
    value = ibis.cases((raw < low, low), (raw > high, high), else_=raw)
    guess = (value * q / p).floor()
    steps = ibis.cases(
        (value < border(guess), guess - 1.0),
        (value >= border(guess + 1.0), guess + 1.0),
        else_=guess,
    )
    above = steps.cast("int64") - ibis.literal(scale.first, "int64")
    missing = raw.isnull() | is_nan(raw)
    return ibis.cases((missing, ibis.null("int64")), else_=above)


def _constant(number: float) -> Any:
    return ibis.literal(number, "float64")

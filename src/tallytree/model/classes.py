"""Classes of sizes as a public domain: groups are counted by class, and nothing is said about sizes
within one. A public bound on sizes makes one such class, of the bound and all sizes above it.

Everything behind reading works with the number of a class where it would work with a size. That
costs no more privacy than sizes do: numbers of classes never rise faster than sizes. See
:meth:`SizeClasses.number`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray, IntArray, read_only

_CLASS = re.compile(r"\s*(\d+)\s*(?:(\+)|(?:[-–]\s*(\d+)))?\s*")
OPEN = int(np.iinfo(np.int64).max)
"""The last size of a class without an upper end."""


@dataclass(frozen=True)
class SizeClasses:
    """Consecutive classes of sizes.

    Attributes
    ----------
    lows
        Smallest size of each class, strictly rising.
    last
        Largest size of the last class; None where it has no upper end.

    Examples
    --------
    >>> staff = classes_from("1-4, 5-9, 10, 11+")
    >>> staff.labels
    ('1-4', '5-9', '10', '11+')
    >>> staff.number(np.array([0, 1, 5, 10, 5000])).tolist()
    [0, 0, 1, 2, 3]
    """

    lows: tuple[int, ...]
    last: int | None = None

    def __post_init__(self) -> None:
        if (
            len(self.lows) < 2
            or self.lows[0] < 0
            or any(low >= high for low, high in pairwise(self.lows))
        ):
            raise RequestError(
                "Classes of sizes are at least two, from smaller to larger sizes, none below 0."
            )
        if self.last is not None and self.last < self.lows[-1]:
            raise RequestError(f"The last class of sizes ends at {self.last}, before it begins.")

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.lows)

    @property
    def last_number(self) -> int:
        """Number of the last class."""
        return self.n_classes - 1

    @cached_property
    def low_array(self) -> IntArray:
        """Smallest size of each class."""
        return read_only(np.array(self.lows, dtype=np.int64))

    @cached_property
    def highs(self) -> tuple[int, ...]:
        """Largest size of each class; ``OPEN`` for a last one without an upper end."""
        return (*(low - 1 for low in self.lows[1:]), OPEN if self.last is None else self.last)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes as people write them: ``1-4``, ``5``, ``1000+``."""
        return tuple(
            f"{low}+" if high == OPEN else str(low) if low == high else f"{low}-{high}"
            for low, high in zip(self.lows, self.highs)
        )

    def number(self, size: IntArray) -> IntArray:
        """Number of the class of each size, from 0; sizes outside are taken into the first or the
        last class.

        A size that grows by 1 raises the number by at most 1, since classes hold at least one size
        each; and the number is never larger than the size. So whatever is true of the change of
        sizes holds for numbers of classes, a group that does not exist counting as 0: the
        sensitivities of :mod:`tallytree.privacy.sensitivity` apply as they stand.
        """
        return np.maximum(np.searchsorted(self.low_array, size, side="right") - 1, 0).astype(
            np.int64
        )

    def lowest(self, number: IntArray) -> IntArray:
        """Smallest size of some classes."""
        return self.low_array[number]

    def names(self, number: IntArray) -> list[str]:
        """Names of some classes."""
        return [self.labels[one] for one in number.tolist()]

    def outside(self, size: IntArray) -> BoolArray:
        """Which sizes lie in no class."""
        return np.asarray((size < self.lows[0]) | (size > self.highs[-1]))

    def span(self, low: int, high: int | None) -> tuple[int, int]:
        """First and last number of the classes that hold exactly the sizes from ``low`` to
        ``high``, or all from ``low`` on.
        """
        first = self.lows.index(low) if low in self.lows else None
        last = (
            self.n_classes - 1
            if high is None
            else self.highs.index(high)
            if high in self.highs
            else None
        )
        if first is None or last is None or first > last:
            raise RequestError(
                f"Sizes were released in classes, which do not end at {_in_words(low, high)}: "
                f"{', '.join(self.labels)}."
            )
        return first, last

    def to_json(self) -> list[str]:
        """JSON-ready classes, as :func:`classes_from` takes them."""
        return list(self.labels)


@dataclass(frozen=True)
class SizesUpTo:
    """Sizes by themselves up to a public bound, which stands for itself and for all larger ones.

    Answers as :class:`SizeClasses` does; the number of a class is its smallest size.

    Examples
    --------
    >>> bounded = SizesUpTo(12)
    >>> bounded.names(bounded.number(np.array([3, 12, 500])))
    ['3', '12+', '12+']
    """

    last: int

    @property
    def last_number(self) -> int:
        """Number of the last class."""
        return self.last

    def number(self, size: IntArray) -> IntArray:
        """Number of the class of each size."""
        return np.minimum(size, self.last).astype(np.int64)

    def lowest(self, number: IntArray) -> IntArray:
        """Smallest size of some classes."""
        return number

    def names(self, number: IntArray) -> list[str]:
        """Names of some classes."""
        return [f"{one}+" if one == self.last else str(one) for one in number.tolist()]

    def span(self, low: int, high: int | None) -> tuple[int, int]:
        """First and last number of the classes that hold exactly the sizes from ``low`` to
        ``high``, or all from ``low`` on.
        """
        if low > self.last or (high is not None and high >= self.last):
            raise RequestError(
                f"Sizes of {self.last} and more were counted as one, {self.last}+, so nothing is "
                f"said about {_in_words(low, high)}. Ask for {self.last} or more, or below that."
            )
        return low, self.last if high is None else high


SizeNames = SizeClasses | SizesUpTo
"""What a size in a table stands for, where it is not one size."""


def _in_words(low: int, high: int | None) -> str:
    """Sizes that were asked for."""
    if high is None:
        return f"{low} or more"
    return str(low) if low == high else f"{low} to {high}"


def classes_from(classes: str | Sequence[str]) -> SizeClasses:
    """Classes written ``1-4,5-9,10+``: each begins where the one before it ends; the last may be
    open.
    """
    texts = classes.split(",") if isinstance(classes, str) else [str(one) for one in classes]
    spans = [class_span(text) for text in texts]
    for (_, high), (low, _) in pairwise(spans):
        if low != high + 1:
            raise RequestError(
                f"Classes of sizes follow one another without gaps: after the one that ends at "
                f"{'no size' if high == OPEN else high} comes one from {low}."
            )
    return SizeClasses(
        tuple(low for low, _ in spans), None if spans[-1][1] == OPEN else spans[-1][1]
    )


def class_span(text: str) -> tuple[int, int]:
    """First and last size of a class written ``5``, ``5-9`` or ``10+``."""
    match = _CLASS.fullmatch(text)
    if match is None:
        raise RequestError(f"A class of sizes is written 5, 5-9 or 10+; got {text!r}.")
    low = int(match[1])
    high = OPEN if match[2] else int(match[3]) if match[3] else low
    if high < low:
        raise RequestError(f"The class {text.strip()!r} ends before it begins.")
    return low, high

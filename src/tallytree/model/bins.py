"""The public bins of a histogram: numbers cut at edges, or named categories in a stated order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tallytree.errors import RequestError
from tallytree.model.arrays import FloatArray, IntArray, read_only

# Far more than any strategy takes; a number with hundreds of digits must be refused, not counted up
# to.
MOST_EVEN_BINS = 1 << 24


@dataclass(frozen=True, eq=False)
class Bins:
    """Consecutive bins of one column.

    Bin ``i`` holds the values from ``edges[i]`` up to, not including, ``edges[i + 1]``; the last
    bin holds its upper edge too, as in NumPy. Categories are bins of width 1 with a name each.

    Attributes
    ----------
    edges
        Strictly increasing, one more than bins.
    categories
        Names of the bins, or None for numbers.
    """

    edges: FloatArray
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.edges.ndim != 1 or len(self.edges) < 2:
            raise RequestError("A histogram needs at least one bin: two edges, or one category.")
        if not np.all(np.isfinite(self.edges)) or not np.all(np.diff(self.edges) > 0):
            raise RequestError("The edges of bins must be finite and strictly increasing.")
        if self.categories is not None and len(self.categories) != self.n_bins:
            raise RequestError(
                f"{self.n_bins} bins need as many names, got {len(self.categories)}."
            )
        read_only(self.edges)

    @property
    def spelled(self) -> str:
        """The edges, in all digits, and the names."""
        return repr((self.edges.tolist(), self.categories))

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.edges) - 1

    def span(self, low: object, high: object) -> tuple[int, int]:
        """First and one past last bin of a range.

        Numbers: from the edge ``low`` up to the edge ``high``. Categories: from the category
        ``low`` to the category ``high``, both included.
        """
        if self.categories is not None:
            first, last = self._place(low), self._place(high) + 1
        else:
            first, last = self._edge(low), self._edge(high)
        if first >= last:
            raise RequestError(
                f"A range runs from low to high, got {low!r} to {high!r}. Swap or widen them."
            )
        return first, last

    def spans(
        self, ranges: Sequence[tuple[object, object]] | FloatArray
    ) -> tuple[IntArray, IntArray]:
        """First and one past last bins of many ranges, each as :meth:`span` takes it."""
        if self.categories is None and len(ranges):
            pairs = np.asarray(ranges, dtype=object)
            if (
                pairs.ndim == 2
                and pairs.shape[1] == 2
                and all(_is_number(value) for value in pairs.ravel())
            ):
                lows, highs = pairs.astype(np.float64).T
                first, last = np.searchsorted(self.edges, lows), np.searchsorted(self.edges, highs)
                inside = (first < len(self.edges)) & (last < len(self.edges))
                first, last = np.where(inside, first, 0), np.where(inside, last, 0)
                if np.all(
                    inside
                    & (first < last)
                    & (self.edges[first] == lows)
                    & (self.edges[last] == highs)
                ):
                    return first.astype(np.int64), last.astype(np.int64)
        found = []
        for pair in ranges:
            if (
                not isinstance(pair, Sequence | np.ndarray)
                or isinstance(pair, str)
                or len(pair) != 2
            ):
                raise RequestError(f"A range is a pair of low and high, got {pair!r}.")
            found.append(self.span(pair[0], pair[1]))
        spans = np.array(found, dtype=np.int64).reshape(-1, 2)
        return spans[:, 0].copy(), spans[:, 1].copy()

    def _edge(self, value: object) -> int:
        if not _is_number(value):
            raise RequestError(f"The ends of a range of numbers are numbers, got {value!r}.")
        number = float(value)  # type: ignore[arg-type]
        if not self.edges[0] <= number <= self.edges[-1]:
            raise RequestError(
                f"{value!r} lies outside the bins, which run from {self.edges[0]:g} to "
                f"{self.edges[-1]:g}."
            )
        place = int(np.searchsorted(self.edges, number))
        if self.edges[place] != number:
            near = f"{self.edges[place - 1]:g} or {self.edges[place]:g}"
            raise RequestError(
                f"{value!r} is not an edge of a bin, so the range cannot be answered. Use {near}."
            )
        return place

    def _place(self, name: object) -> int:
        assert self.categories is not None
        try:
            return self.categories.index(str(name))
        except ValueError:
            shown = ", ".join(map(repr, self.categories[:5])) + (", …" if self.n_bins > 5 else "")
            raise RequestError(
                f"There is no category {name!r}. The categories are {shown}."
            ) from None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Bins)
            and np.array_equal(self.edges, other.edges)
            and self.categories == other.categories
        )

    def __hash__(self) -> int:
        return hash((self.edges.tobytes(), self.categories))

    def __repr__(self) -> str:
        if self.categories is not None:
            return f"Bins({self.n_bins:,} categories)"
        return f"Bins({self.n_bins:,} from {self.edges[0]:g} to {self.edges[-1]:g})"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(
        value, bool | np.bool_
    )


def bins_from_edges(edges: Sequence[float] | FloatArray) -> Bins:
    """Bins between given edges."""
    try:
        return Bins(np.array(edges, dtype=np.float64))
    except (TypeError, ValueError) as error:
        if isinstance(error, RequestError):
            raise
        raise RequestError("The edges of bins are a list of numbers.") from None


def numbered_bins(n_bins: int) -> Bins:
    """Bins 0, 1, 2 …: a range from ``a`` to ``b`` holds the bins a … b − 1."""
    if n_bins < 1:
        raise RequestError(f"A histogram needs at least one bin, got {n_bins}.")
    return Bins(np.arange(n_bins + 1, dtype=np.float64))


def equal_bins(n_bins: int, bounds: tuple[float, float]) -> Bins:
    """Bins of equal width between two public bounds."""
    low, high = _bounds(bounds)
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise RequestError(f"The number of bins is a whole number of at least 1, got {n_bins!r}.")
    return _even_bins(low, (high - low) / int(n_bins), int(n_bins))


def bins_of_width(width: float, bounds: tuple[float, float]) -> Bins:
    """Bins of a given width between two public bounds, which it must divide."""
    low, high = _bounds(bounds)
    step = _exact(width, "The width of bins")
    if step <= 0:
        raise RequestError(f"The width of bins must be greater than 0, got {width!r}.")
    n_bins = (high - low) / step
    if n_bins.denominator != 1:
        up_to = float(low + step * -(-n_bins.numerator // n_bins.denominator))
        raise RequestError(
            f"Bins of width {width:g} do not end at {float(high):g}. Use bounds up to {up_to:g}, "
            "or edges."
        )
    return _even_bins(low, step, int(n_bins))


def _even_bins(low: Fraction, step: Fraction, n_bins: int) -> Bins:
    if n_bins > MOST_EVEN_BINS:
        raise RequestError(
            f"A histogram has at most {MOST_EVEN_BINS:,} bins of one width. Choose wider ones."
        )
    return Bins(np.array([float(low + step * i) for i in range(n_bins + 1)]))


def bins_of_categories(categories: Sequence[object]) -> Bins:
    """One bin per category, in the given order."""
    if isinstance(categories, str):
        raise RequestError("Categories are a list of names, not one text.")
    names = tuple(str(category) for category in categories)
    if not names:
        raise RequestError("A histogram needs at least one category.")
    if len(set(names)) < len(names):
        raise RequestError("The categories of a histogram must be distinct.")
    return Bins(np.arange(len(names) + 1, dtype=np.float64), names)


def _bounds(bounds: tuple[float, float]) -> tuple[Fraction, Fraction]:
    if not isinstance(bounds, Sequence | np.ndarray) or len(bounds) != 2:
        raise RequestError(f"Bounds are a pair of numbers, low and high, got {bounds!r}.")
    low, high = (_exact(bound, "A bound") for bound in bounds)
    if low >= high:
        raise RequestError(
            f"The lower bound must be less than the upper one, got {bounds[0]!r} and {bounds[1]!r}."
        )
    return low, high


def _exact(value: object, name: str) -> Fraction:
    """A number as its shortest decimal: edges at 0.1, 0.2, 0.3 are then the numbers that a reader
    types.
    """
    if not _is_number(value) or not np.isfinite(float(value)):  # type: ignore[arg-type]
        raise RequestError(f"{name} must be a finite number, got {value!r}.")
    return Fraction(str(value))

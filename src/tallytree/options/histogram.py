"""Options of histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tallytree.options import text
from tallytree.options.base import Options, option
from tallytree.options.choices import (
    Allocation,
    Outside,
    Strategy,
    names,
)
from tallytree.options.groups import FinishOptions, NamedUnit, Releasing, SourceOptions
from tallytree.options.panels import EXPERTS, PLAN, PUBLIC, TABLE
from tallytree.privacy.budget import Exact

if TYPE_CHECKING:
    from tallytree.model.arrays import FloatArray, IntArray
else:
    from tallytree.options.late import Array as FloatArray
    from tallytree.options.late import Array as IntArray


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BinOptions(Options, panel=PUBLIC):
    """The public bins.

    Attributes
    ----------
    bins, edges, width, categories, bounds
        The public bins: their ``edges`` (a list given as ``bins`` is taken as edges); or ``bins``
        of equal size or bins of a ``width`` between ``bounds``; or ``categories`` in order. Never
        taken from the data: that would give it away.
    outside
        Values outside the bins: ``"clip"`` to the nearest bin, ``"drop"``, or ``"error"``, whose
        refusal tells that there are some to whoever sees it. What is none of the categories is left
        out under the first two.
    """

    edges: Sequence[float] | FloatArray | None = option(
        None, help="Edges of the bins, comma-separated: 0,18,65,120", text=text.numbers
    )
    bins: int | Sequence[float] | FloatArray | None = option(
        None,
        help="Number of equal bins between --bounds, or their edges.",
        text=text.whole_or_numbers,
    )
    width: float | None = option(None, help="Width of the bins between --bounds.")
    bounds: Sequence[float] | None = option(
        None, help="Public lower and upper bound: 0,120", metavar="LOW,HIGH", text=text.numbers
    )
    categories: Sequence[Any] | None = option(
        None, help="Categories in order, comma-separated.", text=text.comma_names
    )
    outside: Outside = option("clip", help=f"Values outside the bins: {names(Outside)}.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StrategyOptions(Options, panel=PLAN):
    """What to ask of the bins.

    Attributes
    ----------
    mechanism
        ``"auto"`` (least expected error for the workload; for ranges or prefixes of more than 64
        bins the number of rows is asked first, and ``"adaptive"`` taken where they are few),
        ``"flat"``, ``"hierarchical"``, ``"wavelet"``, ``"optimised"``, ``"eigen-select"``,
        ``"low-rank"``, or a matrix with one row per query; or ``"adaptive"``: boxes of bins, chosen
        by noisy answers, whose counts are smoothed.
    branching, budget
        For ``"hierarchical"``: children per block (the best one if not given), and how levels share
        the budget: ``"equal"``, ``"geometric"``, ``"optimal-blocks"``, ``"optimal"``, or one share
        per level, the coarsest first.
    workload
        What the strategy should be good at: ``"ranges"`` (all of them), ``"prefixes"``,
        ``"identity"``, or a list of (low, high). Every range can be asked of the result, whatever
        the workload.
    """

    mechanism: Strategy | FloatArray | IntArray | Sequence[Sequence[float]] = option(
        "auto", help=f"{names(Strategy)}."
    )
    branching: int | None = option(
        None, help="Children per block of a hierarchical strategy.", least=2, panel=EXPERTS
    )
    budget: Allocation | Sequence[Exact] = option(
        "equal",
        help=f"Over levels: {', '.join(names(Allocation).split(' or '))}, or shares 1/4,3/4",
        text=text.one_or_many,
        panel=EXPERTS,
    )
    workload: Any = option(
        "ranges", help="ranges, prefixes, identity, or ranges 0:18,65:120", text=text.workload
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class HistogramOptions(
    BinOptions, StrategyOptions, FinishOptions, NamedUnit, SourceOptions, Releasing, panel=TABLE
):
    """How to release a histogram; see :func:`tallytree.histogram`.

    Examples
    --------
    >>> options = tt.HistogramOptions(edges=[0, 18, 65, 120], epsilon=1)
    >>> len(tt.histogram([3, 17, 40, 77], options).counts)
    3

    Attributes
    ----------
    column, count
        Where the values are a table (anything that :func:`tallytree.read` takes): the column to
        count, and optionally the column that says how many entities a row stands for.
    """

    column: str | None = option(None, help="Column whose values are counted.", panel=TABLE)
    count: str | None = option(
        None, help="Column that says how many entities a row stands for.", panel=TABLE, rare=True
    )

"""Options of streams."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tallytree.model.steps import Every
from tallytree.options.base import Options, option
from tallytree.options.choices import StreamObjective, StreamStrategyName, names
from tallytree.options.groups import NamedUnit, Releasing, SourceOptions
from tallytree.options.panels import EXPERTS, OUTPUT, PLAN, PRIVACY, PUBLIC, TABLE


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StepOptions(Options, panel=TABLE):
    """What the steps of a stream are.

    Attributes
    ----------
    column, count
        Of a table: when a row came, as the number of its step or as a date or time; and optionally
        the column that says how many entities a row stands for.
    until
        The last step that is over, public: its number, or its last day. Later rows are not counted
        yet.
    start, every
        The number of the first step (1 by default). For dates: ``every`` is ``"day"``, ``"week"``
        or ``"month"``, and ``start`` the date on which the first one begins.
    """

    column: str | None = option(
        None, help="When a row came: the number of its step, or a date or time."
    )
    until: int | str | date | None = option(
        None,
        help="Last step that is over, public: its number, or its last day.",
        metavar="STEP",
        panel=PUBLIC,
    )
    start: int | str | date | None = option(
        None,
        help="First step: its number (1), or the date it begins on.",
        metavar="STEP",
        panel=PUBLIC,
    )
    every: Every | None = option(None, help=f"Steps are dates: {names(Every)}.", panel=PUBLIC)
    count: str | None = option(
        None, help="Column that says how many entities a row stands for.", rare=True
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CounterOptions(Options, panel=PLAN):
    """How a stream is counted.

    Attributes
    ----------
    horizon
        Largest number of steps, public; None where it is not known. The error grows with its
        logarithm only, so be generous.
    mechanism
        ``"scaled-root"``, ``"square-root"``, ``"tree"``, or ``"auto"``: the first under zCDP (the
        second with ``min_gap``), the last under pure differential privacy.
    objective
        Which error is made small: the ``"mean"`` over all steps up to the horizon, or the
        ``"largest"`` of them.
    min_gap
        Steps that lie at least between two entities of one unit: 7 where a person comes at most
        once a week and steps are days. Under zCDP less noise then hides all of them.
    branching, inference
        Of a tree: steps per block of the second level, the best by default; False for counts of
        blocks as they are. With 2 and False a tree is the mechanism of Chan, Shi and Song 2011.
    """

    horizon: int | None = option(
        None,
        help="Largest number of steps, public; left out where it is not known.",
        least=1,
        panel=PUBLIC,
    )
    mechanism: StreamStrategyName = option("auto", help=f"{names(StreamStrategyName)}.")
    objective: StreamObjective = option(
        "mean", help=f"Which error is made small: {names(StreamObjective)}."
    )
    min_gap: int | None = option(
        None,
        help="Steps that lie at least between two rows of one --unit.",
        least=1,
        panel=PRIVACY,
    )
    branching: int | None = option(
        None, help="Steps per block of the second level of a tree.", least=2, panel=EXPERTS
    )
    inference: bool = option(
        True,
        help="Of a tree: take counts of blocks as they are measured.",
        flag="no_inference",
        flips=True,
        panel=EXPERTS,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StreamOptions(StepOptions, CounterOptions, NamedUnit, SourceOptions, Releasing, panel=OUTPUT):
    """How to release a stream; see :func:`tallytree.stream`.

    Of the rows of a ``unit`` the first ``contributions`` in time count.

    Examples
    --------
    >>> options = tt.StreamOptions(horizon=365, epsilon=1)
    >>> tt.stream(options=options, counts=[31, 35, 62]).n_steps
    3

    Attributes
    ----------
    out
        The folder in which the stream lives. If it holds a stream already, that one goes on: the
        request must be the same, what was released stays as it is, and nothing is paid. Without it
        the release is made in memory and cannot go on.
    """

    out: str | Path | None = option(
        None,
        help="Folder of the stream; if it holds one already, that one goes on.",
        recorded=False,
    )

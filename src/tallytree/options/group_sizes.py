"""Options of releases of group sizes, and of looking ahead at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tallytree.options.base import option
from tallytree.options.choices import Mechanism, Merge, Norm, Split, Totals, View, names
from tallytree.options.groups import Output, Releasing
from tallytree.options.panels import EXPERTS, OUTPUT, PLAN, PUBLIC
from tallytree.options.text import one_entry, one_or_many, whole_or_word
from tallytree.privacy.budget import Exact


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReleaseOptions(Releasing, panel=EXPERTS):
    """How to release group sizes; see :func:`tallytree.release`.

    Examples
    --------
    >>> options = tt.ReleaseOptions(epsilon=1, mechanism="bottom-up")
    >>> tt.release(counts, options).region("US").n_groups
    4

    Attributes
    ----------
    mechanism
        ``"adaptive"`` (default), which measures blocks of sizes that follow from earlier answers
        and suits sizes of any kind; ``"size-bins"``, which counts groups in bins of sizes, whatever
        the quantities of entities; ``"auto"`` (default where entities have quantities), which takes
        whichever of the two is predicted to be nearer after a look that takes 2 % of the budget;
        ``"matching"`` (kuo2018, Algorithms 1 and 2; default where a
        view is named) or ``"bottom-up"``; or one of fioretto2021, which need dense tables of
        regions × sizes: ``"tree-dp"``, ``"tree-exact"``, ``"tree-relaxed"``, ``"tree-program"``,
        ``"cumulative-relaxed"``, ``"cumulative-dp"``, ``"cumulative-exact"``, ``"chain"``,
        ``"topdown"``.
    view
        What ``"matching"`` and ``"bottom-up"`` measure: ``"hybrid"`` (default), ``"cumulative"``,
        ``"sizes"`` or ``"naive"``; one name, or one per level, root first. Other mechanisms have
        their own.
    merge
        How the two estimates of a matched group are combined: ``"weighted"`` by variance, or
        ``"average"``.
    budget
        ``"equal"``, or one share per level, root first, adding up to 1. ``"auto"`` (default) lets
        ``"adaptive"`` plan the split from public numbers of groups and a first look at the root
        that takes 3 % of the budget; other mechanisms share equally. The manifest says what was
        chosen.
    max_size
        Public bound on the size of a group. Views that need one pay for an estimate with ``"auto"``
        (default); ``"adaptive"`` needs none. Where one is given the last size stands for all larger
        ones too and is called so, ``12+``: no table, page or answer says how many are larger. Views
        ``"sizes"`` and ``"hybrid"`` alone ask about every size, and have no use for a bound.
    min_size
        Public least size of a group: no smaller one is released. 1 by default where groups exist
        through their rows, so that none is empty; 0 where a public table of groups brings empty
        ones, where rows say a size, and where sizes are sums of quantities. It changes no noise:
        what is estimated below is raised to it.
    max_size_budget
        What a bound that is paid for costs: an amount of ε, or of ρ, such as kuo2018's 0.0001
        (footnote 6). By default a hundredth of the budget.
    norm
        1 or 2: which distance the isotonic fits minimise; each view has its own default.
    totals
        Which public numbers of groups the release keeps: of all ``"regions"``, or of the ``"root"``
        alone, as fioretto2021 has it. ``"tree-dp"``, ``"tree-program"``, ``"cumulative-dp"`` and
        ``"chain"`` know only the second.
    repair
        ``"tree-relaxed"`` only: round so that everything adds up; without it that mechanism is
        refused.
    time_limit
        Seconds that a solver may take; the manifest says whether it proved its result optimal.
    goal
        What a planned split is for: ``"balanced"`` (default), ``"leaves"``, ``"top"``,
        ``"no-level-behind"`` (every level gets the same), or targets such as ``"state: emd<=50"``,
        one or several, that are met as far as the budget goes.
    want
        Of data with attributes: the tables that a planned split is for, such as ``"county:tenure"``
        or ``"state"``, one or several. By default every level, without attributes and with all of
        them.
    people_share
        Of data with classes of entities: the part of the budget that counts them, a quarter by
        default.
    """

    mechanism: Mechanism | None = option(
        None,
        help=f"One of: {names(Mechanism)}. Default: adaptive, auto with quantities, matching if a "
        "view is named.",
        panel=PLAN,
        rare=True,
    )
    view: View | Sequence[View] | None = option(
        None,
        help="For matching: hybrid, cumulative, sizes or naive; one name, or one per level, "
        "comma-separated.",
        text=one_or_many,
    )
    merge: Merge = option("weighted", help=f"{names(Merge)}.")
    budget: Split | Sequence[Exact] = option(
        "auto",
        help="auto, equal, or one share per level, root first: 0.15,0.25,0.6",
        text=one_or_many,
        panel=PLAN,
        rare=True,
    )
    max_size: int | Literal["auto"] | None = option(
        None,
        help="Public bound on sizes: the last is the class of all larger ones, 12+; or auto.",
        text=whole_or_word,
        panel=PUBLIC,
        rare=True,
    )
    min_size: int | None = option(
        None,
        help="Public least size of a group; no smaller one is released.",
        least=0,
        panel=PUBLIC,
        rare=True,
    )
    max_size_budget: Exact | None = option(
        None,
        help="What a paid bound on sizes costs, as an amount of epsilon or rho such as 0.0001.",
    )
    norm: Norm | None = option(
        None,
        help="1 or 2: distance that the isotonic fits minimise.",
        text=whole_or_word,
        metavar="NUMBER",
    )
    totals: Totals | None = option(
        None, help="Public group totals to keep: regions or root; each mechanism has its default."
    )
    repair: bool = option(False, help="tree-relaxed only: round so that everything adds up.")
    time_limit: Exact | None = option(
        None, help="Seconds that a solver may take.", metavar="NUMBER"
    )
    goal: str | Sequence[str] = option(
        "balanced",
        help="What a planned split is for: balanced, leaves, top, no-level-behind, or targets such "
        'as "state: emd<=50".',
        text=one_or_many,
        panel=PLAN,
    )
    want: str | Sequence[str] = option(
        (),
        help="With --by: a table that a planned split is for, such as county:tenure, or state "
        "alone. Repeatable.",
        metavar="LEVEL[:ATTRIBUTES]",
        text=one_entry,
        repeats=True,
        panel=PLAN,
        rare=True,
    )
    people_share: Exact | None = option(
        None, help="With --people: part of the budget for counts of people, 1/4 when left out."
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GroupSizesOutput(Output, panel=OUTPUT):
    """Where a command writes group sizes, and whether with intervals.

    Attributes
    ----------
    intervals
        Add standard errors and intervals, from simulating the release this often; 0 leaves them
        out.
    dry_run, shape
        Only look: regions, what is public, doubts, predicted errors for sizes like these, time and
        memory. Nothing is paid or written, and no size is read.
    sure
        Release although public facts make the request doubtful.
    """

    intervals: int = option(
        0,
        help="Add standard errors and intervals, from simulating the release this often (40, say).",
        least=0,
    )
    dry_run: bool = option(
        False,
        help="Only look: regions, what is public, predicted errors, time and memory. Reads no "
        "sizes, pays nothing.",
        panel=PLAN,
    )
    shape: str = option(
        "households",
        help="With --dry-run: assumed sizes, households, geometric:MEAN, poisson:MEAN or "
        "zipf:EXPONENT.",
        panel=PLAN,
        rare=True,
    )
    sure: bool = option(False, help="Release although levels or groups look wrong.", rare=True)

"""Options of commands that look at releases, or ahead at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallytree.options.base import Options, option
from tallytree.options.choices import (
    MapMethod,
    Mechanism,
    Outside,
    PlannedUnit,
    Public,
    Split,
    View,
)
from tallytree.options.exporting import ShapesOptions
from tallytree.options.groups import Printing, SourceOptions
from tallytree.options.panels import EXPERTS, OUTPUT, PLAN, PRIVACY, PUBLIC, QUESTION, TABLE
from tallytree.options.reading import RegionOptions
from tallytree.options.text import comma_names, one_entry, one_or_many
from tallytree.privacy.budget import Exact


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class QueryOptions(Printing, panel=QUESTION):
    """What to ask a release.

    Attributes
    ----------
    region
        Path of the region, or several, which are added up; the root when left out.
    where
        Values of attributes of groups that are asked about; all groups when left out.
    by
        Of a table: attributes, for each of whose values, or combinations of them, there is an
        answer.
    between, share
        How many groups have a size from low to high; answers as shares of all groups.
    size, at_least, largest, quantile, mean, total
        Questions about group sizes: how many have a size, or at least a size; how large the k-th
        largest is; quantile; mean.
    people
        How many entities of each class there are; ``where`` may then name classes too.
    ranges
        Questions to a histogram or map.
    confidence
        Of intervals; 0.95 when left out.
    copies
        Of group sizes: simulated releases behind intervals; 0 leaves them out.
    """

    region: str | Sequence[str] = option(
        (),
        help="Path of the region, such as US/Georgia; the root when left out. Several are added up.",
        repeats=True,
    )
    where: Sequence[str] = option(
        (),
        help="Only groups, or rows of a table, with this value of an attribute. Repeatable.",
        metavar="ATTRIBUTE=VALUE",
        repeats=True,
    )
    size: int | None = option(None, help="How many groups have exactly this size?")
    at_least: int | None = option(None, help="How many groups have at least this size?")
    by: Sequence[str] = option(
        (),
        help="Of a table: an answer for every value of this attribute. Repeatable.",
        metavar="ATTRIBUTE",
        repeats=True,
    )
    between: tuple[int, int] | None = option(
        None,
        help="How many groups have a size from LOW to HIGH, both included?",
        metavar="LOW HIGH",
    )
    share: bool = option(
        False, help="Answer --size, --at-least and --between as shares of all groups."
    )
    largest: int | None = option(None, help="How large is the k-th largest group?", metavar="K")
    quantile: float | None = option(
        None, help="Which size do this fraction of the groups not exceed?"
    )
    mean: bool = option(False, help="What is the mean size?")
    total: bool = option(
        False, help="How many groups are there, and how many entities? Of a table: how many rows?"
    )
    people: bool = option(
        False, help="How many people of each class are there? --where may then name classes too."
    )
    ranges: Sequence[str] = option(
        (),
        help="Of a histogram: how many lie in this range? Of a map: in this box, "
        "LOW:HIGH,LOW:HIGH? Repeatable.",
        flag="range",
        metavar="LOW:HIGH",
        repeats=True,
    )
    confidence: float | None = option(None, help="Confidence of intervals; 0.95 when left out.")
    copies: int = option(
        0,
        help="Of group sizes: simulate the release this often for intervals; 0 leaves them out.",
        least=0,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CompareOptions(Printing, panel=OUTPUT):
    """How to compare two releases.

    Attributes
    ----------
    rate
        Share of clear changes that may be noise.
    copies
        How often a release without intervals is simulated for them.
    out
        File for all differences.
    page
        File for a page of them.
    """

    rate: float = option(
        0.05, help="Share of the changes called clear that may be noise.", panel=QUESTION
    )
    copies: int = option(
        40,
        help="How often a release without intervals is simulated for them.",
        least=2,
        panel=QUESTION,
    )
    out: str | None = option(None, help="Write all differences to this CSV file.", metavar="FILE")
    page: str | None = option(
        None, help="Write a page of the differences to this HTML file.", metavar="FILE"
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class EvaluateOptions(RegionOptions, SourceOptions, Printing, panel=TABLE):
    """How to compare a release with its data, where the request that released it is not at hand.

    Attributes
    ----------
    groups, public, by, size, count
        Of group sizes: how the rows are read, as for :class:`~tallytree.options.ReadOptions`.
    outside
        Of a histogram or map: values outside its bins or box.
    column, edges, directed, nodes
        Of a histogram: the column of values. Of degrees: what the rows are, as for
        :class:`~tallytree.options.DegreesOptions`.
    ranges, threshold
        Of a histogram or map: compare these instead of ranges and boxes of all sizes; θ of relative
        errors.
    """

    groups: str | None = option(None, help="Public table of groups, so that empty groups count.")
    public: Public | None = option(None, help="What was held fixed: groups, regions or cells.")
    by: str | Sequence[str] = option(
        (),
        help="Column with an attribute of groups, or tenure=owned,rented with its values. "
        "Repeatable.",
        metavar="COLUMN[=VALUES]",
        text=one_entry,
        repeats=True,
    )
    size: str | None = option(None, help="Column with the size: rows are groups already.")
    count: str | None = option(
        None, help="Column with the number of groups: rows are (leaf, size, how many)."
    )
    outside: Outside | None = option(
        None, help="Of a histogram or map: values outside it: error, clip or drop."
    )
    column: str | None = option(
        None, help="Of a histogram or degrees: column of values, or of groups."
    )
    edges: Sequence[str] | None = option(
        None, help="Of degrees: columns of the ends of edges.", metavar="FROM,TO", text=comma_names
    )
    directed: bool = option(False, help="Of degrees: count only the edges that leave a node.")
    nodes: str | None = option(None, help="Of degrees: public table of all nodes.")
    ranges: Sequence[str] = option(
        (),
        help="Compare this range, or box LOW:HIGH,LOW:HIGH. Repeatable.",
        flag="range",
        metavar="LOW:HIGH",
        repeats=True,
        panel=QUESTION,
    )
    threshold: float | None = option(
        None,
        help="Relative errors are over the true count, or this where it is smaller.",
        panel=QUESTION,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AssumedOptions(RegionOptions, panel=PUBLIC):
    """The data that a plan assumes.

    Attributes
    ----------
    like
        An earlier release or map: its regions, totals and sizes are assumed.
    by
        Columns of the public table of groups with attributes that sizes will be released by.
    classes
        Classes that sizes will be counted in.
    unit
        What will be protected.
    groups, group_totals, shape
        Or a public table of groups, or of regions and their numbers of groups, with assumed sizes.
    """

    like: str | None = option(
        None,
        help="An earlier release or map: its regions, totals and sizes are assumed.",
        metavar="DIR",
    )
    groups: str | None = option(
        None, help="Public table of groups, one row per group, with the group and level columns."
    )
    group_totals: str | None = option(
        None, help="Public table of regions and their number of groups, one row per region."
    )
    by: str | Sequence[str] = option(
        (),
        help="With --groups: a column with an attribute of groups. Repeatable.",
        text=one_entry,
        repeats=True,
    )
    classes: str | Sequence[str] | None = option(
        None,
        help="With --groups or --group-totals: classes that sizes will be counted in.",
        text=comma_names,
    )
    unit: PlannedUnit = option(
        "entity", help="What will be protected: entity or group.", panel=PRIVACY
    )
    shape: str = option(
        "households",
        help="Assumed sizes: households, geometric:MEAN, poisson:MEAN or zipf:EXPONENT.",
        panel=PLAN,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VariantOptions(Options, panel=PLAN):
    """The one way to release that a plan looks at; several are compared where none is named.

    Attributes
    ----------
    mechanism, view, budget
        As for :class:`~tallytree.options.ReleaseOptions`; of a map its mechanism alone.
    """

    mechanism: Mechanism | MapMethod | None = option(None, help="Only this mechanism.")
    view: View | Sequence[View] | None = option(
        None,
        help="Only this view, or one per level, comma-separated.",
        text=one_or_many,
        panel=EXPERTS,
    )
    budget: Split | Sequence[Exact] | None = option(
        None, help="Only this split over levels.", text=one_or_many
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PlanOptions(Printing, panel=PLAN):
    """What to predict.

    Attributes
    ----------
    epsilon, target
        Predict the errors at this privacy loss, or find the smallest one that meets a target:
        ``county: emd<=20``, or ``county: count of size 5 within 5 % in 90 % of regions``.
    runs
        Simulated releases per prediction.
    chart
        Draw error against ε, per level, into this SVG file.
    """

    epsilon: Exact | None = option(
        None,
        help="Predict the errors at this privacy loss.",
        panel=PRIVACY,
        needed="unless with --target",
    )
    target: str | None = option(
        None,
        help='Find the smallest ε: "county: emd<=20", "county: count of size 5 within 5 % in 90 % '
        'of regions".',
    )
    runs: int = option(5, help="Simulated releases per prediction.", least=1)
    chart: str | None = option(
        None,
        help="Draw error against ε, per level, into this SVG file.",
        metavar="FILE",
        panel=OUTPUT,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PageOptions(ShapesOptions, panel=OUTPUT):
    """What a page calls things, and what it says beside the numbers.

    Attributes
    ----------
    title
        Of the page.
    group_name
        What a group is called, one and many: ``household/households``.
    level_names
        What regions of a level are called, one and many: ``fips=county/counties``; after the column
        where left out.
    source_note
        Where the data come from.
    notes
        Sentences for readers.
    """

    title: str | None = option(None, help="Title of the page.")
    group_name: str | None = option(
        None, help="What a group is called, one and many: household/households."
    )
    level_names: Sequence[str] = option(
        (),
        help="What regions of a level are called: fips=county/counties. Repeatable.",
        flag="level_name",
        repeats=True,
        metavar="LEVEL=ONE/MANY",
    )
    source_note: str | None = option(
        None, help="Where the data come from, for the foot of the page and its citation."
    )
    notes: Sequence[str] = option(
        (), help="A sentence for readers. Repeatable.", repeats=True, metavar="TEXT"
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ReportOptions(PageOptions, panel=OUTPUT):
    """Where a report goes, and whether it shows true errors.

    Attributes
    ----------
    out
        File to write.
    truth
        For the owner: the request that names the confidential data and how they are read.
    """

    out: str | None = option(None, help="File to write; DIR/report.html when left out.")
    truth: str | None = option(
        None,
        help="For the owner: the request of the release, whose data show true errors. NOT PRIVATE.",
        metavar="CONFIG.toml",
    )

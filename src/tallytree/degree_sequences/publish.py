"""Releasing an unattributed histogram: sorted counts, such as the degree sequence of a graph
(hay2010 §3).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tallytree.degree_sequences.estimate import check_method, publishable_degrees
from tallytree.degree_sequences.measure import ConfidentialSizes, measure_sorted_counts
from tallytree.degree_sequences.release import (
    DegreeSequence,
    PlannedQuery,
    PublicSizes,
    degrees_manifest,
    facts_of_degrees,
    load_degrees,
    sorted_table,
)
from tallytree.errors import InputError, RequestError
from tallytree.ingest.binning import check_counts
from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.grids import WHERE_NEEDS_TABLE
from tallytree.ingest.read import read
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts, ConfidentialDegrees
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.unit import ENTITY, Unit
from tallytree.options.choices import Public
from tallytree.options.degrees import DegreesOptions
from tallytree.options.groups import Saving, rows_to_read
from tallytree.options.spelled import spelled
from tallytree.privacy.accounting import noise_from_json
from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import (
    edge_degrees_sensitivity,
    edge_nodes_sensitivity,
    group_totals_sensitivity,
    sizes_sensitivity,
)
from tallytree.privacy.stated_budget import refuse_many_changes
from tallytree.releases.keeping import Keeping, Target, paid_noise, released
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest

FIXED_GROUPS = "how many groups there are"
FIXED_NODES = "how many nodes there are"
PRIVATE = "how many there are is confidential; as many counts are released as a noisy number says"
# The part of the budget that a noisy number of groups or nodes costs, as for group sizes.
FOR_NUMBER = Fraction(1, 20)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DegreesKeywords(DegreesOptions, Saving):
    """The keywords of :func:`degrees`: its options, and where the release goes."""


@spelled(DegreesKeywords)
def degrees(
    source: Any,
    options: DegreesOptions,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    noisy: bool = True,
) -> DegreeSequence:
    """Release the sorted counts of groups, or the degrees of a graph, with a differential privacy
    guarantee.

    How many groups or nodes there are counts as public unless ``public="none"``; which of them has
    which count is not released at all.

    Parameters
    ----------
    source
        Counts of the groups, in any order; exact counts from :func:`tallytree.read`; or a table
        (anything that ``read`` takes) together with ``column``, ``edges`` or ``size``.
    options
        What the rows are and how to release; may be spelled as keywords, ``degrees(source,
        epsilon=1, …)``.
    out, overwrite, noisy
        As for :func:`tallytree.release`.

    Examples
    --------
    >>> released = degrees([2, 0, 10, 2], epsilon=1, insecure_seed=1)
    >>> len(released.degrees), bool((released.degrees >= 0).all())
    (4, True)
    """

    def make(keeping: Keeping) -> DegreeSequence:
        return make_degrees(source, options, keeping)

    return released(options, Target(out, overwrite, noisy), make, load_degrees)


def make_degrees(source: Any, options: DegreesOptions, keeping: Keeping) -> DegreeSequence:
    """Read, pay, measure and estimate."""
    budget = options.loss()
    private = options.public == "none"
    sizes = confidential_sizes(_read(source, options), options.contributions, private=private)
    refuse_many_changes(
        budget, [sizes.sensitivity] if sizes.number is None else [sizes.number, sizes.sensitivity]
    )
    queries = planned_queries(sizes, budget)
    promised = {"name": options.mechanism, "graphical": options.graphical}
    manifest = degrees_manifest(
        sizes.public, budget, queries, mechanism=promised, secure=options.insecure_seed is None
    )
    noise, of_number = queries[-1].noise, queries[0].noise if sizes.number is not None else None
    tell = sizes.altered if options.tell_owner else None
    with paid_noise(keeping, manifest, options.insecure_seed, read=sizes, tell=tell) as paid:
        noisy = measure_sorted_counts(sizes, noise, paid.stream, of_number)
        paid.measured(paid.manifest, {"noisy.parquet": sorted_table(noisy)})
    return degrees_from_noisy(noisy, noise, paid.manifest)


def planned_queries(sizes: ConfidentialSizes, budget: Budget) -> list[PlannedQuery]:
    """What is measured at which cost: the number of groups where it is confidential, then the
    sorted counts.
    """
    if sizes.number is None:
        return [
            PlannedQuery(
                sizes.query, sizes.sensitivity, noise_for(budget, sizes.sensitivity), budget.total
            )
        ]
    asked = (
        (
            "group totals"
            if sizes.query == "sizes" and sizes.public.unit.entity != "edge"
            else "nodes",
            sizes.number,
            FOR_NUMBER,
        ),
        (sizes.query, sizes.sensitivity, 1 - FOR_NUMBER),
    )
    parts = [Budget(budget.definition, budget.total * share) for _, _, share in asked]
    return [
        PlannedQuery(query, bound, noise_for(part, bound), part.total)
        for (query, bound, _), part in zip(asked, parts)
    ]


def _read(source: Any, options: DegreesOptions) -> Any:
    """Exact counts of a table whose rows the options describe; any other source as it is."""
    rows = rows_to_read(options.where, options)
    place: dict[str, Any] = {**asdict(options.place()), "where": rows}
    held: Public = "regions" if options.public == "none" else "groups"
    if options.edges is not None:
        return read_degrees(
            source, *options.edges, directed=options.directed, nodes=options.nodes, **place
        )
    if options.column is not None:
        bound: dict[str, Any] = {"unit": options.unit, "contributions": options.contributions}
        bound = {} if options.unit == ENTITY else bound
        return read(source, group=options.column, public=held, **place, **bound)
    if options.size is not None:
        return read(source, size=options.size, public=held, **place)
    if rows is not None:
        raise RequestError(WHERE_NEEDS_TABLE)
    return source


def true_degrees(source: Any, options: DegreesOptions | None) -> IntArray:
    """The exact sorted degrees, for the owner who compares a release with them: confidential."""
    private = options is not None and options.public == "none"
    sizes = confidential_sizes(
        source if options is None else _read(source, options), 1, private=private
    )
    return np.repeat(sizes.counts.size, sizes.counts.count)


def degrees_from_noisy(noisy: IntArray, noise: Noise, manifest: Manifest) -> DegreeSequence:
    """The sequence that follows from raw measurements: post-processing only."""
    promised = manifest["mechanism"]
    counts = publishable_degrees(
        noisy, check_method(promised["name"]), graphical=promised["graphical"]
    )
    return DegreeSequence(counts, noise, manifest, noisy)


def estimate_degrees(folder: Folder) -> DegreeSequence:
    """A sequence estimated again from the raw measurements of a folder."""
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    noisy = np.array(folder.table("noisy.parquet")["value"].to_numpy(), dtype=np.int64)
    return degrees_from_noisy(
        noisy, noise_from_json(facts_of_degrees(folder.manifest["privacy"])), folder.manifest
    )


def confidential_sizes(
    source: Any, contributions: int, *, private: bool = False
) -> ConfidentialSizes:
    """Sorted counts of any source, with their sensitivity and what is protected; ``private`` where
    their number is.
    """
    if isinstance(source, ConfidentialDegrees):
        bound = (sizes_sensitivity if source.directed else edge_degrees_sensitivity)(
            contributions=contributions
        )
        query: Literal["sizes", "edge degrees"] = "sizes" if source.directed else "edge degrees"
        # Edges listed again count once, so that one edge may have several rows.
        unit = Unit("edge", "", contributions, one_row=False)
        if private:
            number = edge_nodes_sensitivity(contributions=contributions)
            public = PublicSizes(unit, None, None, PRIVATE, part=source.part)
            return ConfidentialSizes(source.counts, query, bound, public, number)
        n_nodes = int(source.counts.count.sum())
        public = PublicSizes(unit, FIXED_NODES, n_nodes, source.nodes_note, part=source.part)
        return ConfidentialSizes(source.counts, query, bound, public)
    if isinstance(source, ConfidentialCounts):
        if source.public.classes is not None:
            raise RequestError("Degrees are sizes themselves; read the counts without classes=.")
        if source.public.unit.group:
            raise RequestError(
                "Degrees protect entities, and a group of any size would change them by its size. "
                "Read the counts without "
                "unit='group', or release them with tallytree.release."
            )
        unit = source.public.unit
        if unit.column and contributions not in (1, unit.contributions):
            raise RequestError(
                f"The counts were read with at most {unit.contributions} rows per {unit.column}; "
                "leave contributions out."
            )
        unit = unit if unit.column else replace(unit, contributions=contributions)
        bound = sizes_sensitivity(
            max_quantity=source.public.max_quantity, contributions=unit.contributions
        )
        sizes = source.counts_on_levels.region(0)
        public = PublicSizes(
            unit,
            FIXED_GROUPS,
            int(sizes.count.sum()),
            source.public.groups_note,
            source.public.max_quantity,
            source.public.part,
            source.public.alone,
        )
        if source.public.groups_public:
            return ConfidentialSizes(sizes, "sizes", bound, public, altered=source.altered)
        number = group_totals_sensitivity(contributions=unit.contributions)
        public = replace(public, fixed=None, n_groups=None, note=PRIVATE, alone="")
        return ConfidentialSizes(sizes, "sizes", bound, public, number, source.altered)
    counts = check_counts(source)
    if counts.ndim != 1:
        raise InputError(f"Counts of groups have one dimension, got {counts.ndim}.")
    runs = counts_from_runs(np.zeros_like(counts), counts, np.ones_like(counts), 1)
    bound = sizes_sensitivity(contributions=contributions)
    unit = Unit(ENTITY, "", contributions)
    public = PublicSizes(unit, FIXED_GROUPS, len(counts), "one count per group was given")
    return ConfidentialSizes(runs, "sizes", bound, public)

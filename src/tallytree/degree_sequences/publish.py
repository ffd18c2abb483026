"""Releasing an unattributed histogram: sorted counts, such as the degree sequence of a graph
(hay2010 §3).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.degree_sequences.estimate import check_method, publishable_degrees
from tallytree.degree_sequences.measure import (
    ConfidentialSizes,
    confidential_sizes,
    measure_sorted_counts,
)
from tallytree.degree_sequences.release import (
    DegreeSequence,
    PlannedQuery,
    degrees_manifest,
    facts_of_degrees,
    load_degrees,
    sorted_table,
)
from tallytree.errors import RequestError
from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.grids import WHERE_NEEDS_TABLE
from tallytree.ingest.read import read
from tallytree.model.arrays import IntArray
from tallytree.model.unit import ENTITY
from tallytree.options.choices import Public
from tallytree.options.degrees import DegreesOptions
from tallytree.options.groups import Saving, rows_to_read
from tallytree.options.spelled import spelled
from tallytree.privacy.accounting import noise_from_json
from tallytree.privacy.budget import Budget, noise_for, refuse_many_changes
from tallytree.privacy.noise import Noise
from tallytree.releases.keeping import Keeping, Target, paid_noise, released
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest

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
    sizes = confidential_sizes(read_source(source, options), options.contributions, private=private)
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


def read_source(source: Any, options: DegreesOptions) -> Any:
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

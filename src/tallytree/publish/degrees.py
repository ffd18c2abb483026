"""Releasing an unattributed histogram: sorted counts, such as the degree sequence of a graph (hay2010 §3)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.estimate.unattributed import publishable_degrees
from tallytree.ingest.binning import check_counts
from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.read import read
from tallytree.measure.sorted_counts import ConfidentialSizes, measure_sorted_counts
from tallytree.model.confidential import ENTITY, ConfidentialCounts, ConfidentialDegrees
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.options.degrees import DegreesOptions
from tallytree.options.spelled import spelled
from tallytree.privacy.budget import noise_for
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import edge_degrees_sensitivity, sizes_sensitivity
from tallytree.publish.payment import pay, payment_from
from tallytree.release.degrees import DegreeSequence, degrees_manifest


@spelled(DegreesOptions)
def degrees(source: Any, options: DegreesOptions) -> DegreeSequence:
    """Release the sorted counts of groups, or the degrees of a graph, with a differential privacy guarantee.

    How many groups or nodes there are counts as public; which of them has which count is not released at all.

    Parameters
    ----------
    source
        Counts of the groups, in any order; exact counts from :func:`tallytree.read`; or a table (anything that ``read``
        takes) together with ``column``, ``edges`` or ``size``.
    options
        What the rows are and how to release; may be spelled as keywords, ``degrees(source, epsilon=1, …)``.

    Examples
    --------
    >>> released = degrees([2, 0, 10, 2], epsilon=1, insecure_seed=1)
    >>> len(released.degrees), bool((released.degrees >= 0).all())
    (4, True)
    """
    budget, insecure_seed, graphical = options.loss(), options.insecure_seed, options.graphical
    where: dict[str, Any] = {"table": options.table, "sql": options.sql}
    if options.edges is not None:
        source = read_degrees(source, *options.edges, directed=options.directed, nodes=options.nodes, **where)
    elif options.column is not None:
        bound: dict[str, Any] = {"unit": options.unit, "contributions": options.contributions}
        source = read(source, group=options.column, **where, **({} if options.unit == ENTITY else bound))
    elif options.size is not None:
        source = read(source, size=options.size, **where)
    sizes = confidential_sizes(source, options.contributions)
    noise = noise_for(budget, sizes.sensitivity)
    promised = {"name": options.method, "graphical": graphical}
    n_groups = int(sizes.counts.count.sum())
    manifest = degrees_manifest(sizes, budget, noise, method=promised, n_groups=n_groups, secure=insecure_seed is None)
    manifest = pay(payment_from(options), manifest)
    stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
    noisy = measure_sorted_counts(sizes, noise, stream)
    stream.forget()
    return DegreeSequence(publishable_degrees(noisy, options.method, graphical=graphical), noise, manifest, noisy)


def confidential_sizes(source: Any, contributions: int) -> ConfidentialSizes:
    """Sorted counts of any source, with their sensitivity and what is protected."""
    own: dict[str, Any] = {"contributions": contributions}
    if isinstance(source, ConfidentialDegrees):
        bound = (sizes_sensitivity if source.directed else edge_degrees_sensitivity)(**own)
        query: Literal["sizes", "edge degrees"] = "sizes" if source.directed else "edge degrees"
        own |= _unit("edge", contributions)
        return ConfidentialSizes(source.counts, query, bound, note=source.nodes_note, **own)
    if isinstance(source, ConfidentialCounts):
        if not source.groups_public:
            raise RequestError("Degrees need a public number of groups; read the counts without groups_private.")
        if source.unit and contributions not in (1, source.contributions):
            raise RequestError(
                f"The counts were read with at most {source.contributions} rows per {source.unit}; leave contributions out."
            )
        own = {"contributions": max(contributions, source.contributions), "max_quantity": source.max_quantity}
        bound = sizes_sensitivity(**own)
        own |= _unit(source.entity, own["contributions"], source.unit)
        return ConfidentialSizes(source.counts_on_levels.region(0), "sizes", bound, note=source.groups_note, **own)
    counts = check_counts(source)
    if counts.ndim != 1:
        raise InputError(f"Counts of groups have one dimension, got {counts.ndim}.")
    runs = counts_from_runs(np.zeros_like(counts), counts, np.ones_like(counts), 1)
    bound = sizes_sensitivity(**own)
    own |= _unit("entity", contributions)
    return ConfidentialSizes(runs, "sizes", bound, note="one count per group was given", **own)


def _unit(entity: str, contributions: int, column: str = "") -> dict[str, str]:
    if column:
        words = f"all rows of one {column} (of which at most {contributions} are counted)"
        return {"unit": words, "unit_column": column}
    if contributions == 1:
        return {"unit": f"one {entity}"}
    return {"unit": f"all rows of one unit, at most {contributions} ({entity})", "unit_column": "unit"}

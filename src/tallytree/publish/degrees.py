"""Releasing an unattributed histogram: sorted counts, such as the degree sequence of a graph (hay2010 §3)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.estimate.unattributed import check_method, publishable_degrees
from tallytree.ingest.binning import check_counts
from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.grids import WHERE_NEEDS_TABLE
from tallytree.ingest.read import read
from tallytree.measure.sorted_counts import ConfidentialSizes, measure_sorted_counts
from tallytree.model.confidential import ENTITY, ConfidentialCounts, ConfidentialDegrees
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.part import Part
from tallytree.privacy.budget import Definition, noise_for
from tallytree.privacy.randomness import KeyStream
from tallytree.privacy.sensitivity import edge_degrees_sensitivity, sizes_sensitivity
from tallytree.privacy.stated_budget import stated_budget
from tallytree.publish.payment import Payment, pay, payment_from
from tallytree.release.degrees import DegreeSequence, degrees_manifest

UNIT_NEEDS_COLUMN = "unit= names the protected unit of rows, so it goes with column=; edges are protected one by one."


def degrees(
    source: Any,
    *,
    epsilon: object = None,
    rho: object = None,
    definition: Definition = "pure",
    column: str | None = None,
    edges: tuple[str, str] | None = None,
    directed: bool = False,
    nodes: Any = None,
    table: str | None = None,
    sql: str | None = None,
    method: str = "isotonic",
    graphical: bool = False,
    where: str | tuple[str, str] | Part | None = None,
    unit: str = ENTITY,
    contributions: int = 1,
    insecure_seed: int | None = None,
    ledger: str | Payment | None = None,
    dataset: str | None = None,
) -> DegreeSequence:
    """Release the sorted counts of groups, or the degrees of a graph, with a differential privacy guarantee.

    How many groups or nodes there are counts as public; which of them has which count is not released at all.

    Parameters
    ----------
    source
        Counts of the groups, in any order; exact counts from :func:`tallytree.read`; or a table (anything that ``read``
        takes) together with ``column`` or ``edges``.
    epsilon, rho, definition
        The privacy loss: ``epsilon`` for ``definition="pure"``, ``rho`` for ``"zcdp"``. Taken exactly: 0.1 is one
        tenth.
    column
        Column that names the group of each row; one row is protected.
    edges, directed, nodes
        Columns that name the two ends of each edge; one edge is protected, which changes two degrees. With ``directed``
        the degree of a node is the number of edges that leave it, and one edge changes one degree. ``nodes`` is a
        public table of all nodes.
    table, sql
        Which table of a database, or which query on it.
    where
        ``"COLUMN=VALUE"``: of a table, only the rows whose column has exactly this label; see :func:`tallytree.read`.
    method
        ``"isotonic"`` (hay2010's S̄), ``"sorted"`` (S̃_r) or ``"noisy"`` (S̃, which may be negative).
    graphical
        Publish the nearest sequence that is the degrees of some simple graph, in L1 distance from the estimate.
    unit, contributions
        ``unit``: with ``column``, the column that names the protected unit, of whose rows at most ``contributions`` are then
        counted. Without it, how many rows or edges one protected unit has at most, which is taken on trust.
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    ledger, dataset
        Budget account that pays before any noise is drawn; see :func:`tallytree.release`.

    Examples
    --------
    >>> released = degrees([2, 0, 10, 2], epsilon=1, insecure_seed=1)
    >>> len(released.degrees), bool((released.degrees >= 0).all())
    (4, True)
    """
    budget, way = stated_budget(epsilon, rho, definition), check_method(method)
    if isinstance(contributions, bool) or not isinstance(contributions, int) or contributions < 1:
        raise RequestError(f"contributions is a whole number of at least 1, got {contributions!r}.")
    if graphical and way == "noisy":
        raise RequestError("A graphical sequence needs method 'isotonic' or 'sorted'.")
    if unit != ENTITY and column is None:
        raise RequestError(UNIT_NEEDS_COLUMN)
    if column is not None and edges is not None:
        raise RequestError("Give either column= or edges=, not both.")
    if edges is not None:
        if isinstance(edges, str) or len(edges) != 2:
            raise RequestError("edges= names two columns, the two ends of an edge.")
        source = read_degrees(source, *edges, directed=directed, nodes=nodes, table=table, sql=sql, where=where)
    elif column is not None:
        bound = {} if unit == ENTITY else {"unit": unit, "contributions": contributions}
        source = read(source, group=column, table=table, sql=sql, where=where, **bound)  # type: ignore[arg-type]
    elif where is not None:
        raise RequestError(WHERE_NEEDS_TABLE)
    sizes = confidential_sizes(source, contributions)
    noise = noise_for(budget, sizes.sensitivity)
    promised = {"name": way, "graphical": bool(graphical)}
    n_groups = int(sizes.counts.count.sum())
    manifest = degrees_manifest(sizes, budget, noise, method=promised, n_groups=n_groups, secure=insecure_seed is None)
    manifest = pay(payment_from(ledger, dataset), manifest)
    stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
    noisy = measure_sorted_counts(sizes, noise, stream)
    stream.forget()
    return DegreeSequence(publishable_degrees(noisy, way, graphical=graphical), noise, manifest, noisy)


def confidential_sizes(source: Any, contributions: int) -> ConfidentialSizes:
    """Sorted counts of any source, with their sensitivity and what is protected."""
    own: dict[str, Any] = {"contributions": contributions}
    if isinstance(source, ConfidentialDegrees):
        bound = (sizes_sensitivity if source.directed else edge_degrees_sensitivity)(**own)
        query: Literal["sizes", "edge degrees"] = "sizes" if source.directed else "edge degrees"
        own |= _unit("edge", contributions)
        # Edges listed again count once, so that one edge may have several rows.
        own |= {"unit_name": "edge", "one_row": False, "part": source.part}
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
        own |= {"unit_name": source.unit or source.entity, "one_row": not source.unit, "part": source.part}
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

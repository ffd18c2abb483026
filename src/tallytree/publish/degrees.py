"""Releasing an unattributed histogram: sorted counts, such as the degree sequence of a graph (hay2010 §3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tallytree.errors import InputError, RequestError
from tallytree.estimate.unattributed import check_method, publishable_degrees
from tallytree.ingest.binning import check_counts
from tallytree.ingest.degrees import read_degrees
from tallytree.ingest.grids import WHERE_NEEDS_TABLE
from tallytree.ingest.read import read
from tallytree.measure.sorted_counts import ConfidentialSizes, measure_sorted_counts
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import ConfidentialCounts, ConfidentialDegrees
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.part import Part
from tallytree.model.unit import ENTITY, Unit
from tallytree.privacy.accounting import noise_from_json
from tallytree.privacy.budget import Definition, noise_for
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import edge_degrees_sensitivity, sizes_sensitivity
from tallytree.privacy.stated_budget import stated_budget
from tallytree.publish.keeping import paid_noise
from tallytree.publish.payment import Payment, payment_from
from tallytree.release.degrees import DegreeSequence, degrees_manifest, sorted_table
from tallytree.release.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest

FIXED_GROUPS = "how many groups there are"
FIXED_NODES = "how many nodes there are"
GROUPS_CHOICE = """How many groups there are is published as it is and not protected, so say that it is public:
  public="groups" (--public groups): the groups in the data;
  or count them yourself, one count per group of a public list, empty ones included: degrees(counts, …)."""
NODES_CHOICE = """How many nodes there are is published as it is and not protected, so say what is public:
  public="nodes" (--public nodes): the nodes that have edges in the data;
  or nodes= (--nodes): a public table of all nodes, which brings in those without edges."""
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
    public: Literal["groups", "nodes"] | None = None,
    table: str | None = None,
    sql: str | None = None,
    where: str | tuple[str, str] | Part | None = None,
    method: str = "isotonic",
    graphical: bool = False,
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
    public
        How many groups or nodes there are is published as it is. Where it is read off the data, say so: ``"groups"`` with
        ``column``, ``"nodes"`` with ``edges`` and no table ``nodes``.
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
    if graphical and way == "noisy":
        raise RequestError("A graphical sequence needs method 'isotonic' or 'sorted'.")
    if unit != ENTITY and column is None:
        raise RequestError(UNIT_NEEDS_COLUMN)
    if column is not None and edges is not None:
        raise RequestError("Give either column= or edges=, not both.")
    if edges is not None:
        if isinstance(edges, str) or len(edges) != 2:
            raise RequestError("edges= names two columns, the two ends of an edge.")
        if (nodes is None) != (public == "nodes"):
            raise RequestError(NODES_CHOICE)
        source = read_degrees(source, *edges, directed=directed, nodes=nodes, table=table, sql=sql, where=where)
    elif column is not None:
        if public != "groups":
            raise RequestError(GROUPS_CHOICE)
        bound = {} if unit == ENTITY else {"unit": unit, "contributions": contributions}
        source = read(source, group=column, table=table, sql=sql, where=where, public="groups", **bound)  # type: ignore[arg-type]
    elif where is not None:
        raise RequestError(WHERE_NEEDS_TABLE)
    elif public is not None:
        raise RequestError("public= goes with column= or edges=; counts that were given are one per public group.")
    sizes = confidential_sizes(source, contributions)
    noise = noise_for(budget, sizes.sensitivity)
    promised = {"name": way, "graphical": bool(graphical)}
    manifest = degrees_manifest(sizes, budget, noise, mechanism=promised, secure=insecure_seed is None)
    with paid_noise(payment_from(ledger, dataset), manifest, insecure_seed) as paid:
        noisy = measure_sorted_counts(sizes, noise, paid.stream)
        paid.measured(paid.manifest, {"noisy.parquet": sorted_table(noisy)})
    return degrees_from_noisy(noisy, noise, paid.manifest)


def degrees_from_noisy(noisy: IntArray, noise: Noise, manifest: Manifest) -> DegreeSequence:
    """The sequence that follows from raw measurements: post-processing only."""
    promised = manifest["mechanism"]
    counts = publishable_degrees(noisy, check_method(promised["name"]), graphical=promised["graphical"])
    return DegreeSequence(counts, noise, manifest, noisy)


def estimate_degrees(folder: Folder) -> DegreeSequence:
    """A sequence estimated again from the raw measurements of a folder."""
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    noisy = np.array(folder.table("noisy.parquet")["value"].to_numpy(), dtype=np.int64)
    return degrees_from_noisy(noisy, noise_from_json(folder.manifest["privacy"]), folder.manifest)


def confidential_sizes(source: Any, contributions: int) -> ConfidentialSizes:
    """Sorted counts of any source, with their sensitivity and what is protected."""
    if isinstance(source, ConfidentialDegrees):
        bound = (sizes_sensitivity if source.directed else edge_degrees_sensitivity)(contributions=contributions)
        query: Literal["sizes", "edge degrees"] = "sizes" if source.directed else "edge degrees"
        # Edges listed again count once, so that one edge may have several rows.
        unit = Unit("edge", "", contributions, one_row=False)
        return ConfidentialSizes(source.counts, query, bound, unit, FIXED_NODES, source.nodes_note, part=source.part)
    if isinstance(source, ConfidentialCounts):
        if not source.groups_public:
            raise RequestError("Degrees need a public number of groups; read the counts without groups_private.")
        unit = source.unit
        if unit.column and contributions not in (1, unit.contributions):
            raise RequestError(
                f"The counts were read with at most {unit.contributions} rows per {unit.column}; leave contributions out."
            )
        unit = unit if unit.column else replace(unit, contributions=contributions)
        bound = sizes_sensitivity(max_quantity=source.max_quantity, contributions=unit.contributions)
        table = source.counts_on_levels.region(0)
        return ConfidentialSizes(
            table, "sizes", bound, unit, FIXED_GROUPS, source.groups_note, source.max_quantity, source.part
        )
    counts = check_counts(source)
    if counts.ndim != 1:
        raise InputError(f"Counts of groups have one dimension, got {counts.ndim}.")
    runs = counts_from_runs(np.zeros_like(counts), counts, np.ones_like(counts), 1)
    bound = sizes_sensitivity(contributions=contributions)
    unit = Unit(ENTITY, "", contributions)
    return ConfidentialSizes(runs, "sizes", bound, unit, FIXED_GROUPS, "one count per group was given")

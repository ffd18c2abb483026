"""Options of sorted counts, such as the degree sequence of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallytree.errors import RequestError
from tallytree.model.place import ANYWHERE
from tallytree.model.unit import ENTITY
from tallytree.options.base import option
from tallytree.options.choices import DegreeMethod, PublicDegrees, names
from tallytree.options.groups import Releasing, SourceOptions, UnitOptions
from tallytree.options.panels import PLAN, PUBLIC, TABLE
from tallytree.options.text import comma_names

GROUPS_CHOICE = """How many groups there are is published as it is and not protected, so say that it is public:
  public="groups" (--public groups): the groups in the data;
  public="none" (--public none): a twentieth of the budget is spent on a noisy number;
  or count them yourself, one count per group of a public list, empty ones included: degrees(counts, …)."""
NODES_CHOICE = """How many nodes there are is published as it is and not protected, so say what is public:
  public="nodes" (--public nodes): the nodes that have edges in the data;
  public="none" (--public none): a twentieth of the budget is spent on a noisy number;
  or nodes= (--nodes): a public table of all nodes, which brings in those without edges."""
UNIT_NEEDS_COLUMN = "unit= names the protected unit of rows, so it goes with column=; edges are protected one by one."


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DegreesOptions(UnitOptions, SourceOptions, Releasing, panel=TABLE):
    """How to release sorted counts; see :func:`tallytree.degrees`.

    Examples
    --------
    >>> len(tt.degrees([2, 0, 10, 2], tt.DegreesOptions(epsilon=1)).degrees)
    4

    Attributes
    ----------
    column
        Rows are entities: the column that names the group of each row; one row is protected.
    edges, directed, nodes
        Columns that name the two ends of each edge; one edge is protected, which changes two
        degrees. With ``directed`` the degree of a node is the number of edges that leave it, and
        one edge changes one degree. ``nodes`` is a public table of all nodes.
    public
        How many groups or nodes there are is published as it is. Where it is read off the data, say
        so: ``"groups"`` with ``column`` or ``size``, ``"nodes"`` with ``edges`` and no table
        ``nodes``. With ``"none"`` it is confidential, and a twentieth of the budget is spent on a
        noisy number, of which the largest counts are released.
    size
        Rows are groups: the column of their counts.
    mechanism
        ``"isotonic"`` (hay2010's S̄), ``"sorted"`` (S̃_r) or ``"noisy"`` (S̃, which may be
        negative).
    graphical
        Publish the nearest sequence that is the degrees of some simple graph, in L1 distance from
        the estimate.
    """

    edges: Sequence[str] | None = option(
        None, help="Rows are edges: columns of their ends.", metavar="FROM,TO", text=comma_names
    )
    directed: bool = option(False, help="Count only the edges that leave a node.")
    nodes: Any = option(
        None, help="Public table of all nodes, so that lonely ones count.", panel=PUBLIC
    )
    public: PublicDegrees | None = option(
        None,
        help="What is held fixed: groups (with --column or --size), nodes (with --edges), none.",
        panel=PUBLIC,
        needed="unless with --nodes",
    )
    column: str | None = option(
        None,
        help="Rows are entities: column of the group they belong to.",
        needed="unless with --edges or --size",
    )
    size: str | None = option(None, help="Rows are groups: column of their counts.")
    mechanism: DegreeMethod = option("isotonic", help=f"{names(DegreeMethod)}.", panel=PLAN)
    graphical: bool = option(False, help="Publish degrees that some graph has.", panel=PLAN)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.graphical and self.mechanism == "noisy":
            raise RequestError("A graphical sequence needs mechanism 'isotonic' or 'sorted'.")
        if self.unit != ENTITY and self.column is None:
            raise RequestError(UNIT_NEEDS_COLUMN)
        given = [name for name in ("column", "edges", "size") if getattr(self, name) is not None]
        if len(given) > 1:
            raise RequestError(f"Give either {'= or '.join(given)}=, not both.")
        if self.edges is None and (self.directed or self.nodes is not None):
            raise RequestError(
                "directed= and nodes= go with edges=, the columns of the two ends of an edge."
            )
        if not given and self.place() != ANYWHERE:
            raise RequestError(
                "table=, sql= and encoding= go with column=, edges= or size=, which say what the "
                "rows are."
            )
        if self.edges is not None and len(self.edges) != 2:
            raise RequestError("edges= names two columns, the two ends of an edge.")
        if self.edges is not None and (self.nodes is None) != (self.public in ("nodes", "none")):
            raise RequestError(NODES_CHOICE)
        if self.edges is None and given and self.public not in ("groups", "none"):
            raise RequestError(GROUPS_CHOICE)
        if not given and self.public is not None:
            raise RequestError(
                "public= goes with column=, edges= or size= (--column, --edges, --size); counts "
                "that were given are one per "
                "public group."
            )

"""Reading edge lists into degrees. The engine, and with it Ibis, is loaded when the first table is
read.
"""

from __future__ import annotations

from typing import Any

from tallytree.errors import RequestError
from tallytree.model.confidential import ConfidentialDegrees
from tallytree.model.part import Part, part_from
from tallytree.model.place import Place


def read_degrees(
    source: Any,
    src: str,
    dst: str,
    *,
    directed: bool = False,
    nodes: Any = None,
    where: str | tuple[str, str] | Part | None = None,
    **place: str | None,
) -> ConfidentialDegrees:
    """Count the nodes of each degree in a graph given by its edges, inside the engine that holds
    the table.

    Parameters
    ----------
    source, place
        As for :func:`tallytree.ingest.read`, ``place`` being its ``table``, ``sql`` and
        ``encoding``; one row per edge.
    src, dst
        Columns that name the two nodes of an edge.
    directed
        The degree of a node is the number of its outgoing edges; otherwise of all its edges,
        whichever end it is.
    nodes
        Public table of all nodes, in its column ``src`` or else its first; brings in nodes without
        any edge. If not given, the nodes that have edges are assumed public.
    where
        ``"COLUMN=VALUE"``: read only the edges whose column has exactly this label.

    Notes
    ----- The graph is simple: edges listed again, also the other way round where they have no
     direction, count once, and edges from a node to itself do not count. A protected edge changes
     two degrees by 1 each, or one if edges are directed.

    Examples
    --------
    >>> import pyarrow as pa
    >>> read_degrees(pa.table({"from": [1, 1, 2], "to": [2, 3, 1]}), "from", "to")
    ConfidentialDegrees(values hidden)
    """
    if src == dst:
        raise RequestError(f"The two nodes of an edge are in two columns; got {src!r} for both.")
    from tallytree.ingest.degree_queries import EdgeList, count_degrees  # loads Ibis and DuckDB

    return count_degrees(
        EdgeList(source, src, dst, nodes, Place(**place), part_from(where)), directed=directed
    )

"""Options of maps, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import tallytree.options.text as text
from tallytree.errors import RequestError
from tallytree.options.base import Options, option
from tallytree.options.choices import MapMethod, Outside, names
from tallytree.options.groups import FinishOptions, NamedUnit, Output, Releasing, SourceOptions
from tallytree.options.panels import EXPERTS, OUTPUT, PLAN, PUBLIC, TABLE
from tallytree.privacy.budget import Exact, exact

if TYPE_CHECKING:
    from tallytree.model.arrays import FloatArray
    from tallytree.model.bins import Bins
else:
    from tallytree.options.late import Array as FloatArray
    from tallytree.options.late import Bins

TREES = ("quadtree", "quad-opt", "kd-tree", "kd-hybrid")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MethodOptions(Options, panel=EXPERTS):
    """A method for maps and its parameters; None where the method's own rule decides.

    Attributes
    ----------
    mechanism
        ``"auto"``, ``"flat"``, ``"hierarchical"``, ``"uniform-grid"``, ``"adaptive-grid"``,
        ``"quadtree"``, ``"quad-opt"``, ``"kd-tree"``, ``"kd-hybrid"``, ``"adaptive-tree"``,
        ``"adaptive"``, ``"dawa"``, ``"privtree"`` or ``"ahp"``; for one column ``"noisy-first"``,
        ``"structure-first"``, ``"noisy-merge"`` or ``"structure-merge"``.
    n_points
        The number of points where it is public; otherwise methods that need it spend a small share
        on a noisy one.
    alpha
        ``adaptive-grid``: share of the budget for the coarse grid.
    cells
        ``uniform-grid``: cells per dimension. ``adaptive-grid``: cells per dimension of the coarse
        grid.
    depth
        Trees: number of levels below the root.
    branching
        ``hierarchical``: children per dimension.
    prune
        Nodes with an estimate below this become leaves: their count is then spread evenly over all
        of their area.
    """

    mechanism: MapMethod = option(
        "auto", help=f"{names(MapMethod)}; the last four are for one column.", panel=PLAN
    )
    n_points: int | None = option(
        None, help="Number of points, where that is public.", least=0, panel=PUBLIC
    )
    alpha: Exact | None = option(None, help="Share of the coarse level of an adaptive grid.")
    cells: int | None = option(
        None, help="Cells per column of a uniform or of the coarse grid.", least=1
    )
    depth: int | None = option(None, help="Levels of a quadtree or kd-tree.", least=1)
    branching: int | None = option(
        None, help="Children per column of the hierarchical method.", least=2
    )
    prune: float | None = option(None, help="Boxes with a lower count become leaves.", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        share = self.coarse_share
        if share is not None and not share < 1:
            raise RequestError(f"alpha lies between 0 and 1, both excluded; got {float(share):g}.")
        self._require("alpha", ("adaptive-grid",))
        self._require("cells", ("uniform-grid", "adaptive-grid"))
        self._require("depth", TREES)
        self._require("branching", ("hierarchical",))

    @property
    def coarse_share(self) -> Fraction | None:
        """``alpha`` as the fraction that it is meant to be."""
        return None if self.alpha is None else exact(self.alpha, "alpha")

    def _require(self, name: str, methods: tuple[str, ...]) -> None:
        if getattr(self, name) is not None and self.mechanism not in methods:
            raise RequestError(
                f"{name} goes with {' and '.join(methods)}, not with {self.mechanism}."
            )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GridOptions(NamedUnit, SourceOptions, panel=TABLE):
    """How points are counted on the fine public grid.

    Attributes
    ----------
    columns, count
        One or more columns of numbers (names of the dimensions where points are arrays); for a
        table also the column that says how many entities a row stands for. A file of points has
        ``longitude`` and ``latitude``, or ``x`` and ``y`` where its coordinates lie in a plane;
        they need not be named.
    box
        One pair (low, high) per column. It must be public: that of the data would give its
        outermost points away.
    edges
        Instead of a box that is cut evenly: for every column the edges of its cells, in rising
        order, or, with ready counts, the names of its categories. They must be public too.
    crs
        Coordinate system of the columns, such as ``"EPSG:27700"``; GeoJSON, GeoParquet and
        shapefiles say theirs.
    outside
        Points outside the box: ``"clip"`` to its border, ``"drop"``, or ``"error"``, whose refusal
        tells that there are some to whoever sees it.
    resolution
        Cells per column of the fine public grid that points are counted on; no box is smaller than
        a cell.
    """

    columns: Sequence[str] | None = option(
        None,
        help="One or more columns of numbers, comma-separated: x,y",
        text=text.comma_names,
        needed="unless a file of points is read",
    )
    box: Sequence[Sequence[float]] | None = option(
        None,
        help="Public range of each column: -74.1:-73.7,40.5:41",
        metavar="LOW:HIGH,LOW:HIGH",
        text=text.box,
        needed="unless with --edges",
        panel=PUBLIC,
    )
    edges: Sequence[Bins | Sequence[float] | Sequence[str] | FloatArray] | None = option(
        None,
        help="Instead of a box, the edges of the cells of each column: 0,6,24;0,18,65,120",
        text=text.lists,
        panel=PUBLIC,
    )
    crs: str | None = option(
        None,
        help="Coordinate system of the columns, such as EPSG:27700; files of points say theirs.",
    )
    outside: Outside = option(
        "clip", help=f"Points outside the box: {names(Outside)}.", panel=PUBLIC
    )
    resolution: int | Sequence[int] | None = option(
        None,
        help="Cells per column of the grid that points are counted on: 1024, or 1024,512",
        text=text.cells,
        panel=PLAN,
    )
    count: str | None = option(
        None, help="Column that says how many entities a row stands for.", rare=True
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MapOptions(GridOptions, MethodOptions, FinishOptions, Releasing, panel=EXPERTS):
    """How to release a map; see :func:`tallytree.spatial`.

    Examples
    --------
    >>> options = tt.MapOptions(box=[(0, 1), (0, 1)], resolution=16, epsilon=1)
    >>> tt.spatial([(0.2, 0.3), (0.8, 0.9)], options).columns
    ('x', 'y')
    """


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MapOutput(Output, panel=OUTPUT):
    """Where a command writes a map, and its picture.

    Attributes
    ----------
    picture
        File for a picture of the map (PNG).
    """

    picture: str | None = option(None, help="Save a picture of the map (PNG).", metavar="FILE")

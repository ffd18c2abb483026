"""What a user may ask of a method for maps, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from tallytree.errors import RequestError

Method = Literal[
    "auto",
    "flat",
    "hierarchical",
    "uniform-grid",
    "adaptive-grid",
    "quadtree",
    "quad-opt",
    "kd-tree",
    "kd-hybrid",
    "adaptive-tree",
    "noisy-first",
    "structure-first",
]
LINES = ("noisy-first", "structure-first")
TREES = ("quadtree", "quad-opt", "kd-tree", "kd-hybrid")
# Methods whose counts are made nonnegative by how sparse they are; the others stay as near to least squares as can be.
SPARSE = ("adaptive-tree",)
ADAPTIVE_GRID_ALPHA = Fraction(1, 2)


@dataclass(frozen=True)
class MethodOptions:
    """A method and its parameters; None where the method's own rule decides.

    Attributes
    ----------
    method
        Name of the method.
    n_points
        The number of points where it is public; otherwise methods that need it spend a small share on a noisy one.
    alpha
        ``adaptive-grid``: share of the budget for the coarse grid.
    cells
        ``uniform-grid``: cells per dimension. ``adaptive-grid``: cells per dimension of the coarse grid.
    depth
        Trees: number of levels below the root.
    branching
        ``hierarchical``: children per dimension.
    prune
        Nodes with an estimate below this become leaves: their count is then spread evenly over all of their area.
    """

    method: Method = "auto"
    n_points: int | None = None
    alpha: Fraction | None = None
    cells: int | None = None
    depth: int | None = None
    branching: int | None = None
    prune: float | None = None

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise RequestError(f"There is no method {self.method!r}; choose one of {', '.join(get_args(Method))}.")
        if self.alpha is not None and not 0 < self.alpha < 1:
            raise RequestError(f"alpha lies between 0 and 1, both excluded; got {float(self.alpha):g}.")
        self._require("alpha", ("adaptive-grid",))
        self._require("cells", ("uniform-grid", "adaptive-grid"))
        self._require("depth", TREES)
        self._require("branching", ("hierarchical",))
        for name, least in (("n_points", 0), ("cells", 1), ("depth", 1), ("branching", 2)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise RequestError(f"{name} is a whole number of at least {least}, got {value!r}.")
        if self.prune is not None and not 0 <= self.prune < float("inf"):
            raise RequestError(f"prune is a number of at least 0, got {self.prune!r}.")

    def _require(self, name: str, methods: tuple[str, ...]) -> None:
        if getattr(self, name) is not None and self.method not in methods:
            raise RequestError(f"{name} goes with {' and '.join(methods)}, not with {self.method}.")

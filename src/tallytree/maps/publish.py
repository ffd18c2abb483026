"""Releasing a map: points or a grid in, boxes with noisy counts, estimates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallytree.boxes.publish import map_rule, refuse_unproved, release_map
from tallytree.boxes.release import SpatialRelease, load_map
from tallytree.ingest.grids import read_grid
from tallytree.options.groups import Saving, rows_to_read
from tallytree.options.maps import MapOptions
from tallytree.options.spelled import spelled_alone
from tallytree.releases.keeping import Keeping, Target, released


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MapKeywords(MapOptions, Saving):
    """The keywords of :func:`spatial`: its options, data in another form, and where the release
    goes.
    """

    counts: Any = None


@spelled_alone(MapKeywords)
def spatial(
    points: Any,
    options: MapOptions,
    *,
    counts: Any = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    noisy: bool = True,
) -> SpatialRelease:
    """Release a map of points that answers how many lie in any box, with a differential privacy
    guarantee.

    Parameters
    ----------
    points
        Points as an array with one row each, as one array per column, or, with ``columns``, as a
        table of any form that :func:`tallytree.read` takes; or a :class:`ConfidentialGrid`.
    options
        What to count and how; may be spelled as keywords, ``spatial(points, epsilon=1, …)``.
    counts
        A ready grid of counts instead of points.
    out, overwrite, noisy
        As for :func:`tallytree.release`.

    Examples
    --------
    >>> points = [(0.2, 0.3), (0.25, 0.3), (0.8, 0.9)]
    >>> city = tt.spatial(points, box=[(0, 1), (0, 1)], resolution=16, epsilon=1)
    >>> answer = city.range([(0, 0.5), (0, 0.5)])
    >>> answer.low <= answer.estimate <= answer.high
    True
    """

    def make(keeping: Keeping) -> SpatialRelease:
        return make_map(points, options, keeping, counts=counts)

    return released(options, Target(out, overwrite, noisy), make, load_map)


def make_map(
    points: Any, options: MapOptions, keeping: Keeping, *, counts: Any = None
) -> SpatialRelease:
    """Read, pay, measure and estimate."""
    budget = options.loss()
    part = rows_to_read(options.where, options)
    grid = read_grid(points, counts, options, part=part)
    refuse_unproved(grid, budget, options)
    return release_map(
        grid,
        budget,
        options,
        nonnegative=map_rule(options.nonnegative),
        integers=options.integers,
        insecure_seed=options.insecure_seed,
        keeping=keeping,
        tell=grid.altered if options.tell_owner else None,
    )

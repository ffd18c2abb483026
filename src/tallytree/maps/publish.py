"""Releasing a map: points or a grid in, boxes with noisy counts, estimates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallytree.boxes.draft import Measurement, combine_measurements
from tallytree.boxes.estimates import MapRule, estimate_map
from tallytree.boxes.manifest import planned_manifest, with_measurements
from tallytree.boxes.measure import NoisyMap, measure_map
from tallytree.boxes.methods import refuse_unfit
from tallytree.boxes.release import SpatialRelease, load_map, noise_variances
from tallytree.boxes.tables import (
    axes_of_folder,
    axes_tables,
    layout_table,
    measurements_from_table,
    noisy_table,
    tree_from_table,
)
from tallytree.errors import RequestError
from tallytree.ingest.grids import read_grid
from tallytree.model.arrays import BoolArray
from tallytree.model.bins import Bins
from tallytree.model.box_tree import BoxTree
from tallytree.model.confidential import Altered
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.options.groups import Saving, rows_to_read
from tallytree.options.maps import MapOptions, MethodOptions
from tallytree.options.spelled import spelled_alone
from tallytree.papers.rivals.clusters import clustered_cells
from tallytree.privacy.budget import Budget
from tallytree.releases.keeping import (
    NOTHING_KEPT,
    Keeping,
    PaidNoise,
    Target,
    paid_noise,
    released,
)
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.finishing import check_nonnegative

# Methods that choose boundaries by the exponential mechanism or by noisy comparisons, whose loss is
# not that of Gaussian noise.
CHOOSING = ("kd-tree", "kd-hybrid", "structure-first", "structure-merge", "dawa", "privtree")
# A cell is asked in at most as many steps as a tree is deep, far below a thousand; a unit of k
# entities changes k answers each.
MOST_CONTRIBUTIONS_WITH_DELTA = 1000


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


def refuse_unproved(grid: ConfidentialGrid, budget: Budget, options: MethodOptions) -> None:
    """Refuse (ε, δ) for methods whose loss is not that of Gaussian noise alone, and for units of
    very many entities.
    """
    if budget.asked is not None and (
        options.mechanism in CHOOSING or grid.unit.contributions > MOST_CONTRIBUTIONS_WITH_DELTA
    ):
        raise RequestError(
            "epsilon with delta needs Gaussian noise alone and at most "
            f"{MOST_CONTRIBUTIONS_WITH_DELTA} contributions; "
            f"{', '.join(CHOOSING)} choose boundaries by other means. State rho, or epsilon alone."
        )


def map_rule(asked: str | bool) -> MapRule:
    """How a map avoids negative counts, by the words of all kinds: True is its own way."""
    rule = check_nonnegative(asked)
    return rule if rule in ("least-squares", "subtree") else rule != "no"


def release_map(
    grid: ConfidentialGrid,
    budget: Budget,
    options: MethodOptions,
    *,
    nonnegative: MapRule = True,
    integers: bool = True,
    insecure_seed: int | None = None,
    keeping: Keeping = NOTHING_KEPT,
    tell: Altered | None = None,
    described: Callable[[Manifest], Manifest] = lambda manifest: manifest,
) -> SpatialRelease:
    """Pay for a map, measure it, estimate its boxes and put the release together.

    The whole budget is paid before the first question is asked; which questions follow is only
    known from the answers. ``described`` has the last word about the manifest, where boxes are
    behind a release of another kind.
    """
    refuse_unfit(options.mechanism, len(grid.shape))
    published = {"nonnegative": nonnegative, "integers": bool(integers)}
    manifest = described(
        planned_manifest(grid, budget, options, published=published, secure=insecure_seed is None)
    )
    with paid_noise(keeping, manifest, insecure_seed, read=grid, tell=tell) as paid:
        noisy = measure_map(grid, budget, options, paid.stream)
        manifest = keep_measured(paid, noisy, paid.manifest, grid)
    return map_from_noisy(noisy.tree, noisy.leaves, noisy.measurements, manifest, grid.axes)


def keep_measured(
    paid: PaidNoise, noisy: NoisyMap, manifest: Manifest, grid: ConfidentialGrid
) -> Manifest:
    """Say that all boxes are measured; returns the manifest with every step that was paid for."""
    manifest = with_measurements(manifest, noisy)
    layout = layout_table(noisy.tree, noisy.leaves, grid.columns)
    tables = {
        "noisy.parquet": noisy_table(noisy.measurements),
        "boxes.parquet": layout,
        **axes_tables(grid.axes),
    }
    paid.measured(manifest, tables)
    return manifest


def map_from_noisy(
    tree: BoxTree,
    leaves: BoolArray,
    measurements: tuple[Measurement, ...],
    manifest: Manifest,
    axes: tuple[Bins, ...] | None = None,
) -> SpatialRelease:
    """The map that follows from raw measurements: post-processing only."""
    values, variances = combine_measurements(tree.n_nodes, list(measurements))
    prune, ways = manifest["mechanism"]["prune"], dict(manifest["published"])
    if ways.pop("clustered", False):
        ways["clustered"] = clustered_cells(tree, measurements, nonnegative=ways["nonnegative"])
    estimates = estimate_map(tree, values, variances, leaves=leaves, prune=prune, **ways)
    return SpatialRelease(estimates, manifest, measurements, axes)


def estimate_again(folder: Folder) -> SpatialRelease:
    """A map estimated again from the raw measurements of a folder."""
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    manifest = folder.manifest
    boxes = folder.table("boxes.parquet" if folder.has("boxes.parquet") else "counts.parquet")
    tree, leaves = tree_from_table(boxes, manifest["columns"], tuple(manifest["resolution"]))
    noisy = measurements_from_table(folder.table("noisy.parquet"), noise_variances(manifest))
    return map_from_noisy(tree, leaves, noisy, manifest, axes_of_folder(folder))

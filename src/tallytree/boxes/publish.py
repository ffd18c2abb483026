"""What a map and a histogram of boxes share of being released: payment, answers kept, estimates."""

from __future__ import annotations

from collections.abc import Callable

from tallytree.boxes.draft import Measurement, combine_measurements
from tallytree.boxes.estimates import MapRule, estimate_map
from tallytree.boxes.limits import MOST_CONTRIBUTIONS_WITH_DELTA
from tallytree.boxes.manifest import planned_manifest, with_measurements
from tallytree.boxes.measure import NoisyMap, measure_map
from tallytree.boxes.methods import NAMES, method_named, refuse_unfit
from tallytree.boxes.release import SpatialRelease, noise_variances
from tallytree.boxes.tables import (
    axes_of_folder,
    axes_tables,
    layout_table,
    measurements_from_table,
    noisy_table,
    tree_from_table,
)
from tallytree.errors import RequestError
from tallytree.model.arrays import BoolArray
from tallytree.model.bins import Bins
from tallytree.model.box_tree import BoxTree
from tallytree.model.confidential import Altered
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.options.maps import MethodOptions
from tallytree.privacy.budget import Budget
from tallytree.releases.keeping import NOTHING_KEPT, Keeping, PaidNoise, paid_noise
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.finishing import check_nonnegative


def refuse_unproved(grid: ConfidentialGrid, budget: Budget, options: MethodOptions) -> None:
    """Refuse (ε, δ) for methods whose loss is not that of Gaussian noise alone, and for units of
    very many entities.
    """
    chooses = options.mechanism != "auto" and method_named(options.mechanism).chooses
    many = grid.public.unit.contributions > MOST_CONTRIBUTIONS_WITH_DELTA
    if budget.asked is not None and (chooses or many):
        choosing = ", ".join(name for name in NAMES if method_named(name).chooses)
        raise RequestError(
            "epsilon with delta needs Gaussian noise alone and at most "
            f"{MOST_CONTRIBUTIONS_WITH_DELTA} contributions; "
            f"{choosing} choose boundaries by other means. State rho, or epsilon alone."
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
    refuse_unfit(options.mechanism, len(grid.public.shape))
    published = {"nonnegative": nonnegative, "integers": bool(integers)}
    manifest = described(
        planned_manifest(
            grid.public, budget, options, published=published, secure=insecure_seed is None
        )
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
    layout = layout_table(noisy.tree, noisy.leaves, grid.public.columns)
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
    clusters = method_named(manifest["mechanism"]["name"]).clusters
    if ways.pop("clustered", False) and clusters is not None:
        ways["clustered"] = clusters.cells(tree, measurements, nonnegative=ways["nonnegative"])
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

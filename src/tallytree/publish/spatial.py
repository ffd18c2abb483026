"""Releasing a map: points or a grid in, boxes with noisy counts, estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallytree.ingest.grids import read_grid
from tallytree.measure.spatial import measure_map
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.options.maps import MapOptions, MethodOptions
from tallytree.options.spelled import spelled_alone
from tallytree.privacy.budget import Budget
from tallytree.privacy.randomness import KeyStream
from tallytree.publish.payment import Payment, pay, payment_from
from tallytree.release.spatial import SpatialRelease
from tallytree.release.spatial_manifest import planned_manifest, with_measurements
from tallytree.spatial.draft import combine_measurements
from tallytree.spatial.estimates import estimate_map


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MapKeywords(MapOptions):
    """The keywords of :func:`spatial`: its options, and data in another form."""

    counts: Any = None


@spelled_alone(MapKeywords)
def spatial(points: Any, options: MapOptions, *, counts: Any = None) -> SpatialRelease:
    """Release a map of points that answers how many lie in any box, with a differential privacy guarantee.

    Parameters
    ----------
    points
        Points as an array with one row each, as one array per column, or, with ``columns``, as a table of any form that
        :func:`tallytree.read` takes; or a :class:`ConfidentialGrid`.
    options
        What to count and how; may be spelled as keywords, ``spatial(points, epsilon=1, …)``.
    counts
        A ready grid of counts instead of points.
    """
    budget = options.loss()
    grid = read_grid(points, counts, options, one_column=options.one_column)
    return release_map(
        grid,
        budget,
        options,
        nonnegative=options.nonnegative,
        integers=options.integers,
        insecure_seed=options.insecure_seed,
        payment=payment_from(options),
    )


def release_map(
    grid: ConfidentialGrid,
    budget: Budget,
    options: MethodOptions,
    *,
    nonnegative: bool = True,
    integers: bool = True,
    insecure_seed: int | None = None,
    payment: Payment | None = None,
) -> SpatialRelease:
    """Pay for a map, measure it, estimate its boxes and put the release together.

    The whole budget is paid before the first question is asked; which questions follow is only known from the answers.
    """
    published = {"nonnegative": bool(nonnegative), "integers": bool(integers)}
    manifest = planned_manifest(grid, budget, options, published=published, secure=insecure_seed is None)
    manifest = pay(payment, manifest)
    stream = KeyStream.from_system() if insecure_seed is None else KeyStream.from_insecure_seed(insecure_seed)
    noisy = measure_map(grid, budget, options, stream)
    stream.forget()
    values, variances = combine_measurements(noisy.tree.n_nodes, list(noisy.measurements))
    manifest = with_measurements(manifest, noisy)
    estimates = estimate_map(
        noisy.tree, values, variances, leaves=noisy.leaves, prune=options.prune, **manifest["published"]
    )
    return SpatialRelease(estimates, manifest, noisy.measurements)

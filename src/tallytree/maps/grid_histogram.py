"""The former name of maps of ready counts."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

from tallytree.boxes.grids import flat_or_hierarchical
from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.ingest.binning import check_counts
from tallytree.maps.publish import spatial
from tallytree.options.groups import FinishOptions, Releasing
from tallytree.options.maps import GridHistogramOptions, MapOptions
from tallytree.options.spelled import spelled


@spelled(GridHistogramOptions)
def grid_histogram(counts: Any, options: GridHistogramOptions) -> SpatialRelease:
    """Release counts per cell of a grid. This is ``tallytree.spatial(counts=…, mechanism=…)``,
    which replaces it.

    Parameters
    ----------
    counts
        Exact counts, one dimension per axis.
    options
        What to ask and what to publish; may be spelled as keywords.
    """
    warnings.warn(
        "grid_histogram is now tallytree.spatial(counts=…, edges=…, mechanism='flat' or "
        "'hierarchical').",
        FutureWarning,
        stacklevel=3,
    )
    if options.branching is not None and options.strategy != "hierarchical":
        raise RequestError("branching goes with strategy 'hierarchical'.")
    table = check_counts(counts)
    shared = {
        field.name: getattr(options, field.name)
        for part in (FinishOptions, Releasing)
        for field in fields(part)
    }
    asked = MapOptions(
        mechanism=flat_or_hierarchical(table.shape)
        if options.strategy == "auto"
        else options.strategy,
        branching=options.branching,
        edges=options.axes,
        contributions=options.contributions,
        entity=options.entity,
        **shared,
    )
    return spatial(None, asked, counts=table)

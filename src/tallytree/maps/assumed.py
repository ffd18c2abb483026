"""Assumed points of a map, for planning before anything confidential is read."""

from __future__ import annotations

import numpy as np

from tallytree.boxes.release import SpatialRelease
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid
from tallytree.privacy.guarantee import guarantee_from_json


def points_like(earlier: SpatialRelease) -> ConfidentialGrid:
    """An earlier map taken as the assumed data: as many points in every box, placed at random
    inside it.
    """
    density = np.maximum(earlier.surface.density, 0.0)
    counts = np.random.default_rng(1).poisson(density).astype(np.int64)  # always the same
    unit = guarantee_from_json(earlier.manifest["privacy"]).unit
    public = PublicGrid(earlier.box, earlier.columns, counts.shape, "for planning", unit)
    return ConfidentialGrid(counts, public, earlier.axes)

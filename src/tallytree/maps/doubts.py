"""What the box of a map and the released boxes show to be doubtful; confidential points take no part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallytree.boxes.release import SpatialRelease

# Of boxes that touch the border: at least this share of all points, on less than that share of the
# area, is no accident.
_MOST_AT_BORDER, _LARGEST_BORDER = 0.9, 0.5
# A total that noise alone could make is not judged.
_CLEAR = 5.0


def axes_in_words(columns: Sequence[str], box: Sequence[Sequence[float]]) -> str:
    """Each column with its range, so that a box in another order than the columns is seen."""
    return "; ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in zip(columns, box))


def points_at_border(made: SpatialRelease) -> str:
    """What to say where nearly all released points lie along the border of the box, to which points
    outside are moved: the box is probably not where the points are. Empty where they do not.
    """
    tree, leaves = made.estimates.tree, made.estimates.leaves
    total = made.total()
    if "border" not in made.manifest["public"].get("outside", "") or (
        not total.estimate > _CLEAR * total.std_error
    ):
        return ""
    low, high = tree.low[leaves], tree.high[leaves]
    touches = ((low == 0) | (high == np.array(tree.shape))).any(axis=1)
    area = (high - low).prod(axis=1, dtype=np.float64)
    count = np.asarray(made.estimates.published, dtype=np.float64)[leaves]
    if area[touches].sum() >= _LARGEST_BORDER * area.sum():
        return ""
    if count[touches].sum() < _MOST_AT_BORDER * count.sum():
        return ""
    return (
        "Nearly all points were released along the border of the box, where points outside are "
        f"counted ({axes_in_words(made.columns, made.box)}). Does the box name its ranges in the "
        "order of the columns?"
    )

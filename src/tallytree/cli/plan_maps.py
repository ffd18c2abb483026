"""Expected errors of maps, for ``tallytree plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tallytree.cli.app import print_json, print_table, progress_bar, say
from tallytree.errors import RequestError
from tallytree.options.asking import VariantOptions
from tallytree.options.maps import MethodOptions
from tallytree.privacy.budget import Exact

if TYPE_CHECKING:
    from tallytree.boxes.release import SpatialRelease


def plan_map(
    earlier: SpatialRelease, *, epsilon: Exact, asked: VariantOptions, runs: int, json: bool
) -> None:
    """Show predicted errors of an earlier map's points, by mechanism."""
    from tallytree.maps.accuracy import LINE_METHODS, METHODS, compare_maps, flat_density
    from tallytree.maps.assumed import points_like
    from tallytree.releases.metrics import HEAD
    from tallytree.releases.query_evaluation import error_rows

    if asked.view is not None or asked.budget is not None:
        raise RequestError("A map has a --mechanism; --view and --budget go with group sizes.")
    known = LINE_METHODS if len(earlier.shape) == 1 else METHODS
    with progress_bar() as progress:
        mechanisms = (
            known
            if asked.mechanism is None
            else (MethodOptions(mechanism=cast(Any, asked.mechanism)).mechanism,)
        )
        assumed = points_like(earlier)
        predictions = compare_maps(
            assumed, mechanisms, epsilon=epsilon, runs=runs, progress=progress
        )
    density = flat_density(assumed, epsilon)
    if json:
        print_json(
            {
                "predictions": [prediction.to_json() for prediction in predictions],
                "density": density.to_json(),
            }
        )
        return
    say(
        "No confidential data were read: the mechanisms ran on points spread at random in the "
        "boxes of the earlier map."
    )
    say(str(density))
    rows = [[one.name, *row] for one in predictions for row in error_rows(one.classes)]
    print_table("Predicted errors of boxes", ["mechanism", *HEAD], rows)

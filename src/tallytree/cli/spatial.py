"""``tallytree spatial``: a map that answers any box."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.options.maps import MapOptions, MapOutput

if TYPE_CHECKING:
    from tallytree.boxes.release import SpatialRelease


@command(app, needs=("out",))
def spatial(source: SourceOrConfig, where: MapOutput, how: MapOptions) -> None:
    """Release a map of points that answers how many lie in any box.

    Example: tallytree spatial trips.parquet --columns lon,lat --box=-74.1:-73.7,40.5:41
        --epsilon 1.0 --out trips
    Example: tallytree spatial trips.geojson --box=-74.1:-73.7,40.5:41 --epsilon 1.0 --out trips
    """
    from tallytree.boxes.release import load_map
    from tallytree.maps.doubts import axes_in_words, points_at_border
    from tallytree.maps.publish import make_map

    if how.box is not None:
        columns = how.columns or [f"column {place + 1}" for place in range(len(how.box))]
        say(f"The box: {axes_in_words(columns, how.box)}")
    made, found = publish(how, where, lambda keeping: make_map(source, how, keeping), load_map)
    if where.picture is not None:
        made.picture(where.picture)
    facts = summary(made)
    if where.json:
        print_json({"out": where.out, "already_released": found, **facts})
    else:
        say(f"Released a map of {facts['boxes']:,} boxes ({facts['mechanism']}) to {where.out}")
        say(facts["statement"])
        say(facts["note"])
        doubt = points_at_border(made)
        if doubt:
            say(f"Note: {doubt}")
        if made.density is not None and made.density.far_too_fine:
            say(str(made.density))


def summary(made: SpatialRelease) -> dict[str, Any]:
    """What a map is, for people and programs. Nothing in it was not released."""
    return {
        "mechanism": made.mechanism,
        "boxes": int(made.estimates.leaves.sum()),
        "private": made.private,
        "statement": made.manifest["privacy"]["statement"],
        "note": made.note,
        "total": asdict(made.total()),
        "density": None if made.density is None else made.density.to_json(),
    }

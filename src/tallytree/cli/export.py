"""``tallytree export`` and ``microdata``: a release for other programs, as tables and as synthetic
rows.
"""

from __future__ import annotations

from tallytree.cli.app import app, say
from tallytree.cli.commands import command
from tallytree.cli.sources import Folder
from tallytree.options.exporting import ExportOptions, MicrodataOptions


@command(app, needs=("out",))
def export(folder: Folder, how: ExportOptions) -> None:
    """Write a release for other programs: CSV, Excel, Parquet, JSON-stat, SDMX, Frictionless,
    GeoJSON, GeoParquet.

    Example: tallytree export out --out counts.xlsx
    Example: tallytree export out --format geojson --shapes counties.json --out counties.geojson
    """
    from tallytree.kinds.verbs import export as export_release

    target = export_release(folder, how)
    say(f"Wrote {target}. Standard errors and flags go along where the release has them.")


@command(app, needs=("out",))
def microdata(folder: Folder, how: MicrodataOptions) -> None:
    """Write synthetic groups and entities whose tables are exactly those of a release.

    Example: tallytree microdata out --out synthetic
    """
    from tallytree.kinds.verbs import microdata as write_microdata

    target = write_microdata(folder, how)
    say(
        f"Wrote {target}: synthetic rows, none of a real group or entity, that tabulate to the "
        "release."
    )

"""From a sheet to a file or folder of the format that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tallytree.errors import RequestError
from tallytree.options.choices import ExportFormat, names
from tallytree.options.exporting import ExportOptions
from tallytree.releases.export.excel import write_excel
from tallytree.releases.export.files import writing
from tallytree.releases.export.frictionless import write_frictionless
from tallytree.releases.export.geographic import Features, write_geojson, write_geoparquet
from tallytree.releases.export.json_stat import write_json_stat
from tallytree.releases.export.sdmx import write_sdmx
from tallytree.releases.export.sheet import Sheet
from tallytree.releases.export.tabular import write_csv, write_parquet

FILES: dict[ExportFormat, Callable[[Sheet, Path], None]] = {
    "csv": write_csv,
    "xlsx": write_excel,
    "json-stat": write_json_stat,
}
FOLDERS: dict[ExportFormat, Callable[[Sheet, Path], None]] = {
    "parquet": write_parquet,
    "sdmx-csv": write_sdmx,
    "frictionless": write_frictionless,
}
WITH_SHAPES: dict[ExportFormat, Callable[[Features, Path], None]] = {
    "geojson": write_geojson,
    "geoparquet": write_geoparquet,
}
# Formats that hold several tables; of the others each table makes a file or folder of its own.
ALL_IN_ONE: tuple[ExportFormat, ...] = ("xlsx", "frictionless")
ENDINGS: dict[str, ExportFormat] = {".csv": "csv", ".xlsx": "xlsx", ".geojson": "geojson"}


def write_export(
    sheet: Sheet, options: ExportOptions, features: Callable[[Sheet], Features]
) -> Path:
    """Write a sheet; formats with shapes ask for them."""
    if options.out is None:
        raise RequestError("Say where the export goes (out=, --out), outside the release folder.")
    target = Path(options.out)
    chosen = options.format or ENDINGS.get(target.suffix.lower())
    if chosen is None:
        raise RequestError(
            f"The ending of {target} does not tell the format. Say --format: {names(ExportFormat)}."
        )
    if options.shapes is not None and chosen not in WITH_SHAPES:
        raise RequestError(
            f"Outlines (--shapes) go with geojson and geoparquet; {chosen} holds no shapes."
        )
    found = features(sheet) if chosen in WITH_SHAPES else None
    if found is not None:
        with writing(target, folder=False, overwrite=options.overwrite) as place:
            WITH_SHAPES[chosen](found, place)
        return target
    alone = () if chosen in ALL_IN_ONE else sheet.beside
    with ExitStack() as stack:  # nothing is moved to its place before everything is written
        for table, where in [(sheet, target), *((each, beside(target, each)) for each in alone)]:
            place = stack.enter_context(
                writing(where, folder=chosen in FOLDERS, overwrite=options.overwrite)
            )
            {**FILES, **FOLDERS}[chosen](table, place)
    return target


def beside(target: Path, sheet: Sheet) -> Path:
    """Where a further table of a release goes, in formats that hold one table each.

    Examples
    --------
    >>> import pyarrow as pa
    >>> people = Sheet("people", "", (), pa.table({}), ())
    >>> beside(Path("out/counts.csv"), people).name
    'counts-people.csv'
    """
    return target.with_name(f"{target.stem}-{sheet.name}{target.suffix}")

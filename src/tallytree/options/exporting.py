"""Options of exports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tallytree.options.base import Options, option
from tallytree.options.choices import ExportFormat, names
from tallytree.options.panels import OUTPUT


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ShapesOptions(Options, panel=OUTPUT):
    """Outlines of regions.

    Attributes
    ----------
    shapes
        File of outlines, GeoJSON or TopoJSON.
    shapes_id
        Property that holds the labels of the regions; the ``id`` of each shape where left out.
    shapes_layer
        Of TopoJSON with several layers: the one to take; the one with the outlines of most regions
        where left out.
    shapes_level
        Level that the outlines are of; the one where most labels are found where left out.
    """

    shapes: str | None = option(
        None, help="Outlines of the regions: a GeoJSON or TopoJSON file.", metavar="FILE"
    )
    shapes_id: str | None = option(
        None,
        help="Property of the outlines that holds the regions' labels; their id when left out.",
    )
    shapes_layer: str | None = option(
        None,
        help="Layer of a TopoJSON file; the one with the outlines of most regions when left out.",
    )
    shapes_level: str | None = option(
        None,
        help="Level that the outlines are of; the one where most labels are found when left out.",
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MicrodataOptions(Options, panel=OUTPUT):
    """Where synthetic files go; see :func:`tallytree.microdata`.

    Attributes
    ----------
    out
        Folder to write.
    overwrite
        Replace what is there.
    """

    out: str | Path | None = option(None, help="Folder to write, outside the release folder.")
    overwrite: bool = option(False, help="Replace what is there.")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ExportOptions(ShapesOptions, panel=OUTPUT):
    """How to export a release; see :func:`tallytree.export`.

    Attributes
    ----------
    out
        File to write, or folder: ``parquet``, ``sdmx-csv`` and ``frictionless`` make several files.
    format
        The format; known from the ending of ``out`` where left out (``.csv``, ``.xlsx``,
        ``.geojson``).
    overwrite
        Replace what is there.
    """

    out: str | None = option(None, help="File or folder to write, outside the release folder.")
    format: ExportFormat | None = option(
        None,
        help=f"{names(ExportFormat)}; known from the ending of --out for csv, xlsx and geojson.",
        alias="--to",
    )
    overwrite: bool = option(False, help="Replace what is there.")

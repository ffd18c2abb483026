"""A Frictionless data package: CSV files with a description that programs read. Format:
https://specs.frictionlessdata.io
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tallytree.releases.export.files import write_table
from tallytree.releases.export.sheet import Sheet


def write_frictionless(sheet: Sheet, folder: Path) -> None:
    """``datapackage.json`` beside the rows of every table and, where there are any, the regions
    that they name.
    """
    has_regions = sheet.regions is not None
    resources = [_rows(folder, table, has_regions=has_regions) for table in (sheet, *sheet.beside)]
    if sheet.regions is not None:
        file = folder / "regions.csv"
        write_table(file, sheet.regions)
        fields = [_field(field, "", field.name == "region") for field in sheet.regions.schema]
        resources.append(
            _resource(
                file, "Regions", {"fields": fields, "primaryKey": ["region"], "missingValues": [""]}
            )
        )
    package = {
        "profile": "tabular-data-package",
        "name": "tallytree-release",
        "title": sheet.title,
        "description": "\n\n".join(sheet.about),
        "resources": resources,
    }
    text = json.dumps(package, ensure_ascii=False, indent=2) + "\n"
    (folder / "datapackage.json").write_text(text, encoding="utf-8")


def _rows(folder: Path, sheet: Sheet, *, has_regions: bool) -> dict[str, Any]:
    """Write the rows of one table, and say what they are."""
    file = folder / f"{sheet.name}.csv"
    write_table(file, sheet.table)
    schema: dict[str, Any] = {
        "fields": [
            _field(sheet.table.schema.field(column.name), column.title, column.role == "key")
            for column in sheet.columns
        ],
        "primaryKey": sheet.names("key"),
        "missingValues": [""],
    }
    if has_regions:
        schema["foreignKeys"] = [
            {"fields": "region", "reference": {"resource": "regions", "fields": "region"}}
        ]
    return _resource(file, sheet.title, schema)


def _resource(file: Path, title: str, schema: dict[str, Any]) -> dict[str, Any]:
    content = file.read_bytes()
    return {
        "profile": "tabular-data-resource",
        "name": file.stem,
        "title": title,
        "path": file.name,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "bytes": len(content),
        "hash": f"sha256:{hashlib.sha256(content).hexdigest()}",
        "schema": schema,
    }


def _field(field: pa.Field, title: str, needed: bool) -> dict[str, Any]:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    name = "string"
    if pa.types.is_integer(kind):
        name = "integer"
    elif pa.types.is_floating(kind):
        name = "number"
    facts: dict[str, Any] = {"name": field.name, "type": name}
    return (
        facts
        | ({"description": title} if title else {})
        | ({"constraints": {"required": True}} if needed else {})
    )

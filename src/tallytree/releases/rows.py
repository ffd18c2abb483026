"""Which rows of its source a release is made of, as its manifest says."""

from __future__ import annotations

from tallytree.model.part import Part
from tallytree.storage.folder import Manifest


def kept_rows(part: Part | None) -> Manifest:
    """The filter that the data were read with, as manifests name it; nothing where all rows were
    read.
    """
    return {} if part is None else {"where": part.to_json()}


def part_of(manifest: Manifest) -> Part | None:
    """The rows of its source that a release was made from; None for all of them."""
    where = manifest.get("where")
    return None if where is None else Part(str(where["column"]), str(where["value"]))

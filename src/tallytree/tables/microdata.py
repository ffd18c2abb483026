"""Synthetic rows whose tables are exactly those of a release: post-processing, and nobody's data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.model.attributes import names_beside
from tallytree.releases.export.files import writing
from tallytree.releases.export.placed import labels_by_level
from tallytree.releases.region_tables import NAME, attribute_columns, path_array
from tallytree.tables.release import TableRelease

ROWS_FILE, FACTS_FILE = "synthetic_rows.parquet", "microdata.json"
SYNTHETIC = (
    "Synthetic: made from a differentially private release so that its tables come out. No row is "
    "a real one."
)
ROWS_PER_PIECE = 1 << 20


def write_microdata(release: TableRelease, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write one row per counted row into a folder of its own, some at a time, and return it."""
    with writing(out, folder=True, overwrite=overwrite) as place:
        n_rows = _write_rows(release, place / ROWS_FILE)
        facts = {
            "synthetic": True,
            "note": SYNTHETIC,
            "rows": {ROWS_FILE: n_rows},
            "privacy": release.manifest["privacy"]["statement"],
            "private": release.manifest["privacy"]["private"],
        }
        text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
        (place / FACTS_FILE).write_text(text, encoding="utf-8")
    return Path(out)


def _write_rows(release: TableRelease, file: Path) -> int:
    """Leaf by leaf, cell by cell, as many rows as were counted."""
    tree, lattice, leaves = release.hierarchy, release.lattice, release.levels[-1]
    first = int(tree.level_starts[-2])
    paths = path_array(tree).slice(first).cast(pa.string())
    labels = [column.slice(first).dictionary_decode() for column in labels_by_level(tree).values()][
        1:
    ]
    taken = ("region", *release.attributes.names)
    levels = names_beside(tree.level_names[1:], taken)
    names = ["region", *levels, *release.attributes.names]
    says = {"tallytree": json.dumps({"synthetic": True, "note": SYNTHETIC})}
    schema = pa.schema([(name, NAME) for name in names]).with_metadata(says)
    slots = lattice.slots(lattice.finest.margin)
    upto = np.cumsum(leaves.n)
    total = int(upto[-1]) if len(upto) else 0
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, total, ROWS_PER_PIECE):
            row = np.arange(start, min(start + ROWS_PER_PIECE, total))
            leaf, cell = np.divmod(
                leaves.cell[np.searchsorted(upto, row, side="right")], lattice.attributes.n_cells
            )
            place = pa.array(leaf)
            columns = [
                *(column.take(place).dictionary_encode() for column in (paths, *labels)),
                *attribute_columns(lattice, slots[cell]),
            ]
            writer.write_batch(
                pa.record_batch([column.cast(NAME) for column in columns], schema=schema)
            )
    return total

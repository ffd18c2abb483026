"""A degree sequence as a flat table whose columns say what they are."""

from __future__ import annotations

from tallytree.degree_sequences.release import DegreeSequence
from tallytree.releases.export.sheet import (
    Codes,
    Column,
    Sheet,
    about_release,
)


def degrees_sheet(sequence: DegreeSequence) -> Sheet:
    """Degree and how many nodes have it."""
    made = sequence.table()
    columns = (
        Column("degree", "key", "degree of a node"),
        Column("count", "value", "nodes of that degree"),
    )
    degrees = made["degree"].to_pylist()
    codes = {"degree": Codes(degrees, [str(degree) for degree in degrees])}
    about = (*about_release(sequence), "Degrees without a row have a count of 0.")
    return Sheet("counts", "Degree sequence", about, made, columns, codes, True)

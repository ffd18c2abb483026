"""Tables and figures of kuo2018, theirs beside ours.

The paper's partially synthetic housing data and its race data by block are not public in full:
ours run on county housing with a synthetic tail (or on the built-in generator), on the authors' own
taxi file and on their national Hawaiian histogram. The paper's figure stands beside ours where data
and setting are the same; where the data are other ones it is a remark. Its race data of whites are
not at hand at all: these cells have no figure of ours. Figures are plots without printed numbers.
"""

from __future__ import annotations

from pathlib import Path

from tallytree.papers.cells import Cell
from tallytree.papers.kuo2018 import figures, tables
from tallytree.papers.kuo2018.runs import EPSILONS_PER_LEVEL, MAX_SIZE, Scale, data_sets
from tallytree.releases.progress import Progress, silent

FULL = Scale(runs=10, max_size=MAX_SIZE, households=117_000_000, epsilons=EPSILONS_PER_LEVEL)
QUICK = Scale(runs=2, max_size=10_000, households=1_000_000, epsilons=(0.1, 1.0))
CUTS = (
    "2 runs instead of 10, K = 10,000 instead of 100,000 for housing below the root, no ε = 0.5 "
    "per level"
)
STEPS = (
    tables.error_measure_table,
    tables.omniscient_table,
    tables.naive_table,
    tables.bottom_up_table,
    tables.problem_1_table,
    figures.places_figure,
    figures.merging_figure,
    figures.two_level_figure,
    figures.three_level_figure,
    figures.alone_figure,
)


def reproduce(
    *, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> list[Cell]:
    """All cells of the paper's evaluation, from real data where ``data`` is given."""
    scale = QUICK if quick else FULL
    sets = data_sets(data, scale)
    cells: list[Cell] = []
    for done, step in enumerate(STEPS):
        progress(done, len(STEPS), step.__name__.replace("_", " "))
        cells += step(sets, scale)
    return cells

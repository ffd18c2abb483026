"""Tables and figures of qardaji2013, theirs beside ours; see the two modules for what agrees and
what does not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tallytree.papers.cells import Cell
from tallytree.papers.qardaji2013 import figure_3, figures, tables, theory
from tallytree.releases.progress import Progress, silent

CUTS = (
    "low-rank up to 128 bins instead of 512 and optimised up to 256 instead of 2,048 in Table 3, "
    "Figure 2 for two sizes instead of four, 3 runs instead of 20 in Figure 3"
)
SEEDS = "insecure seeds in Figure 3, others for every set of data and run; all else is exact"


def reproduce(
    *, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> list[Cell]:
    """All cells; ``quick`` leaves out the slowest matrix mechanisms and the largest figures."""
    steps: list[tuple[str, Callable[[], list[Cell]]]] = [
        ("table 1", tables.table_1),
        ("table 2", tables.table_2),
        ("very many bins", tables.large_n),
        ("table 3", lambda: tables.table_3(quick=quick)),
        ("section 3.3", theory.theory_cells),
        ("when flat is best", tables.when_flat_is_best),
        ("figure 2", lambda: figures.figure_2(quick=quick)),
        ("figure 3", lambda: figure_3.figure_3(data, quick=quick)),
        ("figure 4", lambda: figures.figure_4(quick=quick)),
    ]
    cells: list[Cell] = []
    for done, (name, step) in enumerate(steps):
        progress(done, len(steps), name)
        cells += step()
    return cells

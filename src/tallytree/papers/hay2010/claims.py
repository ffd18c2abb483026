"""What §5 of hay2010 says in words, each claim beside the figures here that bear on it.

The paper's data are not public, so a claim about data can fail here and hold there; the remark says
which. Claims about noise alone are decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tallytree.papers.cells import Cell, verdict
from tallytree.papers.hay2010.ranges import EXPECTED, HEIGHTS

TABLE = "§5 in words"
Figures = dict[tuple[str, str, str], Cell]


def claims(cells: Sequence[Cell]) -> list[Cell]:
    """One row or more per claim, from the cells of Figures 5 and 6."""
    return [*_of_figure_5(cells), *_of_plain_sums(cells), *_of_inference(cells)]


def _of_figure_5(cells: Sequence[Cell]) -> list[Cell]:
    gains = [cell for cell in cells if cell.table == "Figure 5 in ratios"]
    gains = [cell for cell in gains if not cell.row.endswith("cut off at 0")]
    least = min(gains, key=_value)
    short = [f"{c.row} at {c.column}: {_value(c):.1f}" for c in gains if _value(c) < 10]
    found = [
        Cell(
            TABLE,
            "§5.1: S̄ has an error at least an order of magnitude below S̃",
            "least gain over all data and ε",
            10.0,
            _value(least),
            "error of S̃ over that of S̄",
            least.spread,
            verdict(not short, "; ".join(short) or "on every set of data here, at every ε"),
        )
    ]
    at = {(c.table, c.row, c.column): c for c in cells if c.table.startswith("Figure 5, ")}
    ratios = {
        key: _ratio(cell, at[key[0], "S̃_r", key[2]]) for key, cell in at.items() if key[1] == "S̄"
    }
    worst = max(ratios, key=ratios.__getitem__)
    found.append(
        Cell(
            TABLE,
            "§5.1: S̄ gains beyond sorting and rounding, comparable at worst at large ε",
            "largest over all data and ε",
            None,
            ratios[worst][0],
            "error of S̄ over that of S̃_r",
            ratios[worst][1],
            verdict(
                ratios[worst][0] < 1.25,
                f"the largest is that of {worst[0].removeprefix('Figure 5, ')} at {worst[2]}; "
                "comparable is taken as at most a quarter above",
            ),
        )
    )
    by_set: dict[str, list[float]] = {}
    for cell in gains:
        by_set.setdefault(cell.row, []).append(_value(cell))
    rising = [name for name, values in by_set.items() if values == sorted(values)]
    others = ", ".join(name for name in by_set if name not in rising)
    found.append(
        Cell(
            TABLE,
            "§5.1: the gain of S̄ grows as ε falls",
            "share of the sets of data",
            1.0,
            len(rising) / len(by_set),
            "share",
            remark=verdict(not others, f"not on {others}" if others else "on all"),
        )
    )
    return found


def _of_plain_sums(cells: Sequence[Cell]) -> list[Cell]:
    at = _at(cells, EXPECTED)
    found = []
    for height in HEIGHTS:
        row = f"height {height}"
        ratios = {_size(c): _value(c) for (_, name, _), c in at.items() if name == row}
        crossing = min(size for size, ratio in ratios.items() if ratio > 1)
        largest = max(ratios)
        found += [
            Cell(
                TABLE,
                "§5.2: beyond ranges of about 2,000 the error of L̃ is above that of H̃",
                f"{row}: first power of two above",
                2000.0,
                float(crossing),
                "bins",
                remark=verdict(
                    2000 < crossing <= 4096, f"at {crossing // 2:,} L̃ is better still; exact"
                ),
            ),
            Cell(
                TABLE,
                "§5.2: at the largest ranges the error of L̃ is 4 to 8 times that of H̃",
                f"{row}: size {largest:,}",
                4.0,
                ratios[largest],
                "error of L̃ over that of H̃",
                remark=verdict(4 <= ratios[largest] <= 8, "exact"),
            ),
            Cell(
                TABLE,
                "§5.2: at single bins L̃ is more accurate than H̃",
                row,
                None,
                ratios[1],
                "error of L̃ over that of H̃",
                remark=verdict(ratios[1] < 1, "1/ℓ², exact"),
            ),
        ]
    slopes = [_slope(cells, table, "L̃") for table in _tables_of_6(cells)]
    steepest = max(slopes, key=lambda slope: abs(slope - 1))
    cut = max(_slope(cells, table, "L̃ (bins cut off at 0)") for table in _tables_of_6(cells))
    found.append(
        Cell(
            TABLE,
            "§5.2: the error of L̃ grows linearly with the size of the range",
            "power of the size, farthest from 1",
            1.0,
            steepest,
            "exponent",
            remark=verdict(
                abs(steepest - 1) < 0.1,
                f"for plain sums; with bins cut off at 0 one by one the power is up to {cut:.2f}",
            ),
        )
    )
    return found


def _of_inference(cells: Sequence[Cell]) -> list[Cell]:
    tables, found = _tables_of_6(cells), []
    ratios = [
        (*_ratio(*pair), pair[0])
        for table in tables
        for pair in _pairs(cells, table, "H̄ (zeroed subtrees)", "H̃")
    ]
    worst, spread, where = max(ratios, key=lambda found: found[0])
    found.append(
        Cell(
            TABLE,
            "§5.2: the error of H̄ is below that of H̃ at all sizes, ε and data",
            "largest over all",
            1.0,
            worst,
            "error of H̄ over that of H̃",
            spread,
            verdict(worst < 1, f"largest in {where.table}, {where.column}"),
        )
    )
    for other in ("H̃", "L̃"):
        by_set: dict[str, list[float]] = {}
        for table in tables:
            pairs = _pairs(cells, table, "H̄ (zeroed subtrees)", other)
            mean = float(np.exp(np.mean([np.log(_ratio(*pair)[0]) for pair in pairs])))
            by_set.setdefault(table.split(", epsilon")[0], []).append(mean)
        falling = [name for name, values in by_set.items() if values == sorted(values)[::-1]]
        shown = "; ".join(
            f"{name.removeprefix('Figure 6, ')}: {', '.join(f'{v:.3f}' for v in values)}"
            for name, values in by_set.items()
        )
        found.append(
            Cell(
                TABLE,
                f"§5.2: at smaller ε H̄ is more accurate relative to {other}",
                "share of the sets of data",
                1.0,
                len(falling) / len(by_set),
                "share",
                remark=verdict(
                    len(falling) == len(by_set), f"geometric means over sizes, ε falling: {shown}"
                ),
            )
        )
    found += [_bins_of_inference(cells, tables), *_gain_of_larger_ranges(cells, tables)]
    return found


def _bins_of_inference(cells: Sequence[Cell], tables: Sequence[str]) -> Cell:
    ratios = {
        table: _ratio(*pair)
        for table in tables
        for pair in _pairs(cells, table, "H̄ (zeroed subtrees)", "L̃")
        if _size(pair[0]) == 1
    }
    best = min(ratios, key=ratios.__getitem__)
    return Cell(
        TABLE,
        "§5.2: H̄ can be better than L̃ even at single bins",
        "least over all data and ε",
        1.0,
        ratios[best][0],
        "error of H̄ over that of L̃",
        ratios[best][1],
        verdict(ratios[best][0] < 1, f"least in {best}; the sparser the data, the less"),
    )


def _gain_of_larger_ranges(cells: Sequence[Cell], tables: Sequence[str]) -> list[Cell]:
    """§1: "reduce error for larger ranges by 45-98%"; larger is where L̃ is worse than H̃."""
    at = _at(cells, *tables)
    ratios = {
        (table, cell.column): _ratio(cell, plain)
        for table in tables
        for cell, plain in _pairs(cells, table, "H̄ (zeroed subtrees)", "L̃")
        if _value(plain) > _value(at[table, "H̃", cell.column])
    }
    found = []
    ends: tuple[tuple[str, float, Callable[..., tuple[str, str]]], ...] = (
        ("least", 0.45, max),
        ("largest", 0.98, min),
    )
    for end, paper, pick in ends if ratios else ():
        place = pick(ratios, key=ratios.__getitem__)
        gain, spread = 1 - ratios[place][0], ratios[place][1]
        found.append(
            Cell(
                TABLE,
                "§1: inference reduces the error of larger ranges by 45 to 98 %",
                f"{end} where L̃ is worse than H̃",
                paper,
                gain,
                "1 − error of H̄ over that of L̃",
                spread,
                verdict(gain >= 0.45, f"{end} in {place[0]}, {place[1]}"),
            )
        )
    return found


def _value(cell: Cell) -> float:
    assert cell.ours is not None
    return cell.ours


def _size(cell: Cell) -> int:
    return int(cell.column.split(" = ")[1])


def _at(cells: Sequence[Cell], *tables: str) -> Figures:
    return {(c.table, c.row, c.column): c for c in cells if c.table in tables}


def _tables_of_6(cells: Sequence[Cell]) -> list[str]:
    return sorted(
        {c.table for c in cells if "epsilon" in c.table and c.table.startswith("Figure 6")},
        key=[c.table for c in cells].index,
    )


def _pairs(cells: Sequence[Cell], table: str, row: str, other: str) -> list[tuple[Cell, Cell]]:
    at = _at(cells, table)
    return [
        (cell, at[table, other, column]) for (_, name, column), cell in at.items() if name == row
    ]


def _ratio(above: Cell, below: Cell) -> tuple[float, float]:
    """The ratio of two means, and one standard deviation of it as if their runs were independent;
    they share their noise in part, so that it is less.
    """
    ratio = _value(above) / _value(below)
    one, other = ((cell.spread or 0.0) / _value(cell) for cell in (above, below))
    return ratio, ratio * math.hypot(one, other)


def _slope(cells: Sequence[Cell], table: str, row: str) -> float:
    """The power of the size with which an error grows: slope of a line through the logarithms."""
    line = [cell for cell in _at(cells, table).values() if cell.row == row]
    sizes, errors = [_size(cell) for cell in line], [_value(cell) for cell in line]
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])

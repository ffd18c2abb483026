"""The trade-off between privacy and accuracy as a picture: error against ε, one panel per level,
both axes logarithmic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from tallytree.model.notebook import plain

Points = Sequence[tuple[float, float]]

_COLOURS = ("#1f6f8b", "#c8553d", "#2e7d4f", "#8a5fbf", "#b8860b", "#5c6675")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _GAP = 300, 250, 58, 40, 34, 24
_INK, _LINE = "#5c6675", "#dcd8cf"


def trade_off_svg(
    panels: Mapping[str, Mapping[str, Points]], *, title: str, error: str, columns: int = 3
) -> str:
    """An SVG picture: for each level (panel), per way to release, points (ε, error).

    Errors of 0 have no place on a logarithmic axis and are left out.

    Examples
    --------
    >>> svg = trade_off_svg({"county": {"default": [(0.5, 40.0), (1.0, 20.0)]}}, title="Trade-off", error="EMD")
    >>> svg.count("<polyline"), svg.count("<circle")
    (1, 2)
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    n_columns = min(columns, max(len(panels), 1))
    n_rows = math.ceil(len(panels) / n_columns)
    width = n_columns * (_WIDTH + _GAP) + _GAP
    legend = 44 + 20 * math.ceil(len(names) / n_columns)
    height = legend + n_rows * (_HEIGHT + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" '
        'font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        _text(_GAP, 24, title, size=15, colour="#1b2330", weight=600),
    ]
    for number, name in enumerate(names):
        x, y = _GAP + (number % n_columns) * (_WIDTH + _GAP), 46 + 20 * (number // n_columns)
        parts.append(f'<rect x="{x}" y="{y - 9}" width="14" height="4" fill="{_colour(number)}"/>')
        parts.append(_text(x + 20, y - 2, name, colour="#1b2330"))
    for number, (level, lines) in enumerate(panels.items()):
        x, y = (
            _GAP + (number % n_columns) * (_WIDTH + _GAP),
            legend + (number // n_columns) * (_HEIGHT + _GAP),
        )
        parts.append(f'<g transform="translate({x},{y})">{_panel(level, lines, names, error)}</g>')
    return "".join([*parts, "</svg>"]) + "\n"


def _panel(level: str, lines: Mapping[str, Points], names: Sequence[str], error: str) -> str:
    drawn = {name: [(x, y) for x, y in points if x > 0 and y > 0] for name, points in lines.items()}
    points = [point for line in drawn.values() for point in line]
    parts = [_text(_LEFT, 14, f"{level}: {error}", colour="#1b2330", weight=600)]
    if not points:
        return "".join([*parts, _text(_LEFT, 60, "no error at any of these ε")])
    low_x, high_x = _ends([x for x, _ in points])
    low_y, high_y = _ends([y for _, y in points])

    def across(value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * math.log(value / low_x) / math.log(high_x / low_x)

    def up(value: float) -> float:
        return (
            _HEIGHT
            - _BOTTOM
            - (_HEIGHT - _BOTTOM - _TOP) * math.log(value / low_y) / math.log(high_y / low_y)
        )

    for tick in _ticks(low_y, high_y):
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" '
            f'stroke="{_LINE}"/>'
        )
        parts.append(_text(_LEFT - 6, up(tick) + 4, plain(tick), anchor="end"))
    for tick in _ticks(low_x, high_x):
        parts.append(_text(across(tick), _HEIGHT - _BOTTOM + 16, f"{tick:g}", anchor="middle"))
    parts.append(_text(_WIDTH, _HEIGHT - 8, "ε", anchor="end"))
    for name, line in drawn.items():
        colour = _colour(names.index(name))
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for x, y in line:
            label = escape(f"{name}: ε = {x:g}, {error} {plain(y)}")
            parts.append(
                f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" '
                f'fill="{colour}"><title>{label}</title></circle>'
            )
    return "".join(parts)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The range of a logarithmic axis, a little wider than the values."""
    return min(values) / 1.15, max(values) * 1.15


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers 1, 2, 5 × a power of ten within a range; powers of ten alone where there are
    many.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 300 else (1,)
    ticks = [step * 10.0**power for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    size: int = 12,
    colour: str = _INK,
    weight: int = 400,
) -> str:
    style = f'text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{colour}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'

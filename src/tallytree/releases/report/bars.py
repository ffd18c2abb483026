"""Counts as a picture for notebooks: a bar each, thin lines for intervals. The page of a report
draws its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tallytree.model.notebook import plain

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 280, 64, 44, 40
MOST_BARS = 120
_MAIN, _INK, _SOFT, _LINE = "#1f6f8b", "#1b2330", "#5c6675", "#dcd8cf"


@dataclass(frozen=True)
class Bars:
    """What is drawn.

    Attributes
    ----------
    title, axis
        Above the picture, and below its bars.
    names, counts
        One per bar.
    low, high
        Ends of intervals; empty where there are none.
    """

    title: str
    axis: str
    names: Sequence[str]
    counts: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()


def bars_svg(bars: Bars) -> str:
    """An SVG picture of the first :data:`MOST_BARS` bars.

    Examples
    --------
    >>> svg = bars_svg(Bars("Homes of US", "size", ["1", "2"], [3, 5], [2, 4], [4, 6]))
    >>> svg.count("<rect"), svg.count("<title>1: 3, 2 to 4</title>")
    (3, 1)
    """
    names, counts = list(bars.names[:MOST_BARS]), list(bars.counts[:MOST_BARS])
    ends = list(zip(bars.low, bars.high))[:MOST_BARS]
    top = max([1e-9, *counts, *(high for _, high in ends)])
    step = (WIDTH - LEFT - 12) / max(len(names), 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" role="img" '
        f'aria-label="{escape(bars.title)}" font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 22, bars.title, colour=_INK, size=15),
    ]
    for tick in ticks(top):
        y = _height(tick, top)
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y:.1f}" y2="{y:.1f}" stroke="{_LINE}"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, plain(tick), anchor="end"))
    every = max(1, -(-max(9 * max(map(len, names), default=1), 24) // max(int(step), 1)))
    for place, (name, count) in enumerate(zip(names, counts)):
        x, y = LEFT + place * step, _height(count, top)
        said = f", {plain(ends[place][0])} to {plain(ends[place][1])}" if ends else ""
        title = f"<title>{escape(f'{name}: {plain(count)}{said}')}</title>"
        size = f'width="{step * 0.8:.1f}" height="{_height(0, top) - y:.1f}"'
        parts.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{y:.1f}" {size} fill="{_MAIN}">{title}</rect>'
        )
        if ends:
            low, high = (_height(max(0.0, end), top) for end in ends[place])
            middle = f"{x + step / 2:.1f}"
            parts.append(
                f'<line x1="{middle}" x2="{middle}" y1="{low:.1f}" y2="{high:.1f}" '
                f'stroke="{_INK}"/>'
            )
        if place % every == 0:
            parts.append(_text(x + step / 2, HEIGHT - BOTTOM + 16, name, anchor="middle"))
    left_out = len(bars.names) - len(names)
    more = f", {left_out:,} more not drawn" if left_out > 0 else ""
    parts.append(_text(WIDTH - 12, HEIGHT - 8, bars.axis + more, anchor="end"))
    return "".join([*parts, "</svg>"]) + "\n"


def ticks(top: float) -> list[float]:
    """Round numbers from 0 up to a height, at most seven."""
    power = 10.0 ** (len(f"{top / 5:.0f}") - 1) if top >= 5 else 1.0
    step = next(
        multiple * power for multiple in (1, 2, 2.5, 5, 10, 20) if multiple * power >= top / 6
    )
    return [step * place for place in range(int(top / step) + 1)]


def _height(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * max(0.0, value) / top


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", colour: str = _SOFT, size: int = 12
) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">{escape(text)}</text>'

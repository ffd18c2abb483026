"""How objects show themselves in a notebook: a caption, a short table, a note. Everything is
escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path

from tallytree.errors import StorageError

MOST_ROWS = 20


def html_table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    n_rows: int | None = None,
    note: str = "",
) -> str:
    """A small HTML table; of many rows the first, and how many more there are (``n_rows`` is their
    number in all).

    Examples
    --------
    >>> html_table("a < b", ["size"], [[1_000]])
    '<div><p>a &lt; b</p><table><thead><tr><th>size</th></tr></thead><tbody><tr><td>1,000</td></tr></tbody></table></div>'
    """
    shown = list(islice(rows, MOST_ROWS))
    left_out = (len(shown) if n_rows is None else n_rows) - len(shown)
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(plain(cell))}</td>" for cell in row) + "</tr>"
        for row in shown
    )
    more = f"<p>… and {left_out:,} more rows</p>" if left_out > 0 else ""
    last = f"<p>{escape(note)}</p>" if note else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{escape(caption)}</p>{table}{more}{last}</div>"


def plain(value: object) -> str:
    """A value as people write it: thousands apart, four digits of a fraction.

    Examples
    --------
    >>> plain(1234567), plain(0.123456), plain(12345.678), plain("text"), plain(True)
    ('1,234,567', '0.1235', '12,346', 'text', 'True')
    """
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Picture:
    """A picture that a notebook shows by itself.

    Attributes
    ----------
    content
        An SVG text, or the bytes of a PNG file.
    """

    content: str | bytes = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file."""
        return write_shown(path, self.content)

    def _repr_svg_(self) -> str | None:
        return self.content if isinstance(self.content, str) else None

    def _repr_png_(self) -> bytes | None:
        return self.content if isinstance(self.content, bytes) else None


@dataclass(frozen=True)
class Page:
    """A whole HTML page that a notebook shows in a frame of its own.

    Attributes
    ----------
    html
        The page, which needs no other file.
    height
        Of the frame, in pixels.
    """

    html: str = field(repr=False)
    height: int = 720

    def save(self, path: str | Path) -> Path:
        """Write the page to a file."""
        return write_shown(path, self.html)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="{self.height}" style="border:0"></iframe>'


def write_shown(path: str | Path, content: str | bytes) -> Path:
    """Write what was shown to a file."""
    file = Path(path)
    try:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise StorageError(f"Cannot write {file}: {error.strerror}.") from None
    return file

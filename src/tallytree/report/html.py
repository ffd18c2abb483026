"""One self-contained HTML file: style, script and data inside, nothing fetched."""

from __future__ import annotations

import base64
import gzip
import html
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tallytree.errors import RequestError, StorageError
from tallytree.release.any_release import load
from tallytree.release.degrees import DegreeSequence
from tallytree.release.evaluation import Evaluation
from tallytree.release.histogram import RangeHistogram
from tallytree.release.release import Release
from tallytree.release.spatial import SpatialRelease
from tallytree.report.maps import map_payload
from tallytree.report.payload import degrees_payload, group_sizes_payload, histogram_payload

# A page stays under 15 MB, so that it opens anywhere; base64 makes three bytes four.
MOST_BYTES = 11_000_000


def write_report(folder: str | Path, out: str | Path | None = None, *, evaluation: Evaluation | None = None) -> Path:
    """Write the report of a release folder, ``report.html`` inside it unless told otherwise.

    With ``evaluation`` the page shows true errors and is marked confidential; it must then go somewhere else than into the
    release folder, which is meant to be published.
    """
    if evaluation is not None and out is None:
        raise RequestError("A confidential report does not belong into the release folder. Name another file (--out).")
    target = Path(folder) / "report.html" if out is None else Path(out)
    text = report_html(load(folder), evaluation)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error.strerror}.") from None
    return target


def report_html(release: Any, evaluation: Evaluation | None = None) -> str:
    """The page of a release as text."""
    if isinstance(release, Release):
        return _group_sizes_page(release, evaluation)
    if evaluation is not None:
        raise RequestError("Only releases of group sizes can be compared with the truth in a report.")
    if isinstance(release, RangeHistogram):
        return _page(*_packed(histogram_payload(release)))
    if isinstance(release, DegreeSequence):
        return _page(*_packed(degrees_payload(release)))
    if isinstance(release, SpatialRelease):
        return _page(*_packed(map_payload(release)), kind="map")
    raise RequestError(f"There is no report for a {type(release).__name__} yet.")


def _group_sizes_page(release: Release, evaluation: Evaluation | None) -> str:
    """As many levels as fit, from the root down."""
    for n_levels in range(release.hierarchy.n_levels, 0, -1):
        title, data = _packed(group_sizes_payload(release, evaluation, n_levels=n_levels))
        if len(data) <= MOST_BYTES or n_levels == 1:
            break
    return _page(title, data)


def _packed(payload: dict[str, Any]) -> tuple[str, bytes]:
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return payload["title"], gzip.compress(text.encode(), mtime=0)


def _page(title: str, data: bytes, *, kind: str = "page") -> str:
    parts = {
        "__TITLE__": html.escape(title),
        "__STYLE__": _part("page.css") + (_part("map.css") if kind == "map" else ""),
        "__SCRIPT__": _part("charts.js") + _part(f"{kind}.js"),
        "__DATA__": base64.b64encode(data).decode(),
    }
    page = _part(f"{kind}.html")
    for name, text in parts.items():
        page = page.replace(name, text)
    return page


def _part(name: str) -> str:
    return (files("tallytree.report") / name).read_text(encoding="utf-8")

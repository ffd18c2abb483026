"""One self-contained HTML file: style, script and data inside, nothing fetched."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import Any, TypeVar

from tallytree.boxes.release import SpatialRelease
from tallytree.degree_sequences.release import DegreeSequence
from tallytree.errors import RequestError
from tallytree.group_sizes.compare import Comparison
from tallytree.group_sizes.evaluate import Evaluation
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.report import (
    degrees_payload,
    group_sizes_payload,
    histogram_payload,
    stream_payload,
)
from tallytree.maps.report import map_payload
from tallytree.options.asking import PageOptions
from tallytree.ranges.release import RangeHistogram
from tallytree.releases.report.changes import changes_payload
from tallytree.streams.release import StreamRelease

P = TypeVar("P")

# A page stays under 15 MB, so that it opens anywhere; base64 makes three bytes four.
MOST_BYTES = 11_000_000

# The page runs its own script and style, by their hashes, and fetches nothing: whatever a label or
# a title may smuggle in does not run. The icon is an empty one of the page's own.
POLICY = "default-src 'none'; script-src {script}; style-src {style}; img-src data:; base-uri 'none'; form-action 'none'"


def group_sizes_page(
    release: Release, evaluation: Evaluation | None = None, look: PageOptions | None = None
) -> str:
    """The page of a release of group sizes: as many levels as fit, from the root down."""
    for n_levels in range(release.hierarchy.n_levels, 0, -1):
        title, data = _packed(group_sizes_payload(release, evaluation, look, n_levels=n_levels))
        if len(data) <= MOST_BYTES:
            break
    return _page(title, data)


def histogram_page(
    histogram: RangeHistogram, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a range histogram."""
    return _page(
        *_packed(
            histogram_payload(
                _without(evaluation, histogram), _plain(look, "group_name", "level_names", "shapes")
            )
        )
    )


def degrees_page(
    sequence: DegreeSequence, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a degree sequence."""
    return _page(
        *_packed(
            degrees_payload(_without(evaluation, sequence), _plain(look, "level_names", "shapes"))
        )
    )


def stream_page(
    release: StreamRelease, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a stream: its steps, one after the other."""
    return _page(
        *_packed(
            stream_payload(
                _without(evaluation, release), _plain(look, "group_name", "level_names", "shapes")
            )
        )
    )


def map_page(
    release: SpatialRelease, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a map."""
    return _page(
        *_packed(
            map_payload(_without(evaluation, release), _plain(look, "group_name", "level_names"))
        ),
        kind="map",
    )


def changes_page(found: Comparison, first: str, second: str) -> str:
    """The page of a comparison of what is called ``first`` and ``second``."""
    return _page(*_packed(changes_payload(found, first, second)), kind="changes")


def _without(evaluation: object, release: P) -> P:
    if evaluation is not None:
        raise RequestError(
            "Only releases of group sizes can be compared with the truth in a report."
        )
    return release


REASONS = {
    "group_name": "--group-name goes with groups and nodes; what is counted here is named when it "
    "is released (--entity).",
    "level_names": "--level-name goes with levels of regions; this release has none.",
    "shapes": "--shapes goes with regions and maps; this release has no places.",
}


def _plain(look: PageOptions | None, *without: str) -> PageOptions:
    """The names of a page that has neither groups nor places; refuses names for them."""
    look = look or PageOptions()
    for name in without:
        if getattr(look, name):
            raise RequestError(REASONS[name])
    return look


def _packed(payload: dict[str, Any]) -> tuple[str, bytes]:
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return payload["title"], gzip.compress(text.encode(), mtime=0)


def _page(title: str, data: bytes, *, kind: str = "page") -> str:
    style = _part("page.css") + (_part("map.css") if kind == "map" else "")
    script = (
        _part("charts.js")
        + (_part("places.js") + _part("values.js") if kind == "page" else "")
        + _part(f"{kind}.js")
    )
    parts = {
        "KIND": kind,
        "POLICY": POLICY.format(style=_hash_of(style), script=_hash_of(script)),
        "BODY": _part(f"{kind}.html").replace("__ABOUT__", _part("about.html")),
        "TITLE": html.escape(title),
        "STYLE": style,
        "SCRIPT": script,
        "DATA": base64.b64encode(data).decode(),
    }
    # In one pass: what is put in, such as a title with __DATA__ in it, is never looked at again.
    return re.sub(f"__({'|'.join(parts)})__", lambda found: parts[found[1]], _part("frame.html"))


def _hash_of(text: str) -> str:
    """How a policy names the one style or script that it lets work."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _part(name: str) -> str:
    return (files("tallytree.releases.report") / name).read_text(encoding="utf-8")

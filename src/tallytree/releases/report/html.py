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

from tallytree.errors import RequestError
from tallytree.options.asking import PageOptions

REASONS = {
    "group_name": "--group-name goes with groups and nodes; what is counted here is named when it "
    "is released (--entity).",
    "level_names": "--level-name goes with levels of regions; this release has none.",
    "shapes": "--shapes goes with regions and maps; this release has no places.",
}

P = TypeVar("P")

# A page stays under 15 MB, so that it opens anywhere; base64 makes three bytes four.
MOST_BYTES = 11_000_000

# The page runs its own script and style, by their hashes, and fetches nothing: whatever a label or
# a title may smuggle in does not run. The icon is an empty one of the page's own.
POLICY = "default-src 'none'; script-src {script}; style-src {style}; img-src data:; base-uri 'none'; form-action 'none'"


def without_evaluation(evaluation: object, release: P) -> P:
    """The release; refuses to show true errors on a page that has no place for them."""
    if evaluation is not None:
        raise RequestError(
            "Only releases of group sizes can be compared with the truth in a report."
        )
    return release


def plain_look(look: PageOptions | None, *without: str) -> PageOptions:
    """The names of a page that has neither groups nor places; refuses names for them."""
    look = look or PageOptions()
    for name in without:
        if getattr(look, name):
            raise RequestError(REASONS[name])
    return look


def page(payload: dict[str, Any], *, kind: str = "page") -> str:
    """The page of these facts as text."""
    return framed(*packed(payload), kind=kind)


def packed(payload: dict[str, Any]) -> tuple[str, bytes]:
    """The title of a page, and its facts as it holds them."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return payload["title"], gzip.compress(text.encode(), mtime=0)


def framed(title: str, data: bytes, *, kind: str = "page") -> str:
    """A page of packed facts."""
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

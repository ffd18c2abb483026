"""Showing a release of any kind: its page, a picture, and the card of its deployment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tallytree.errors import RequestError
from tallytree.kinds.verbs import kind_of, load
from tallytree.model.notebook import Page, Picture, write_shown
from tallytree.options.asking import PageOptions
from tallytree.options.card import CardOptions
from tallytree.options.spelled import spelled
from tallytree.releases.card import card_json, card_markdown, card_yaml
from tallytree.releases.opening import open_folder, reading
from tallytree.releases.published import Published
from tallytree.releases.registry import RECORD, missing_flags
from tallytree.storage.folder import (
    CARD,
    CARD_TEXT,
    CARD_YAML,
    MANIFEST,
    lasting_digest,
    page_with_digest,
    sha256_of,
)
from tallytree.storage.sealing import sealed


def write_report(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    evaluation: Any = None,
    look: PageOptions | None = None,
) -> Path:
    """Write the report of a release folder, ``report.html`` inside it unless told otherwise.

    With ``evaluation`` the page shows true errors and is marked confidential; it must then go
    somewhere else than into the release folder, which is meant to be published. Other pages end
    with their own digest, which :func:`verify` compares.
    """
    if evaluation is not None and (
        out is None or Path(folder).resolve() in Path(out).resolve().parents
    ):
        raise RequestError(
            "A confidential report does not belong into the release folder. Name another file "
            "(--out)."
        )
    target = Path(folder) / "report.html" if out is None else Path(out)
    made = load(folder)
    with reading(folder):
        text = report_html(made, evaluation, look)
    digest = sha256_of(Path(folder) / MANIFEST)
    return write_shown(target, text if evaluation is not None else page_with_digest(text, digest))


def report_html(release: Published, evaluation: Any = None, look: PageOptions | None = None) -> str:
    """The page of a release as text; ``look`` names things and brings outlines."""
    return kind_of(release).page(release, evaluation, look)


def report(release: Published, path: str | Path | None = None, **look: Any) -> Page:
    """The page of a release, which a notebook shows; also written to a file where one is named.

    Parameters
    ----------
    look
        What things are called, as for the command ``report``: ``title``, ``group_name``,
        ``source_note``, ``notes`` …
    """
    digest = "" if path is None else _manifest_beside(release, Path(path))
    page = Page(page_with_digest(report_html(release, None, PageOptions(**look)), digest))
    if path is not None:
        page.save(path)
    return page


def _manifest_beside(release: Published, page: Path) -> str:
    """The checksum of the manifest in the folder of a page, where it is that of the release; else
    nothing.
    """
    if not (page.parent / MANIFEST).is_file():
        return ""
    beside, manifest = load(page.parent), json.loads(json.dumps(release.saved_manifest()))
    same = beside.saved_manifest() == manifest and beside.table().equals(release.table())
    return sha256_of(page.parent / MANIFEST) if same else ""


def plot(release: Published, path: str | Path | None = None, **what: Any) -> Picture:
    """A picture of a release, which a notebook shows; also written to a file where one is named.

    Parameters
    ----------
    what
        Of group sizes: ``region``, the root by default, and ``where`` for values of attributes.
    """
    picture: Picture = kind_of(release).verb("plot")(release, **what)
    if path is not None:
        picture.save(path)
    return picture


@spelled(CardOptions)
def card(folder: str | Path, options: CardOptions) -> tuple[Path, ...]:
    """Write the card of a deployment into a release folder, and return where: ``card.json`` and
    ``card.md``.

    With ``yaml`` also ``card.yaml``, the record that the registry of deployments takes. It is
    refused with the names of what the registry requires and nobody said.

    Parameters
    ----------
    folder
        Of a release on disk.
    options
        What the manifest does not know: who publishes what for whom.

    Examples
    --------
    >>> [file.name for file in tt.card("out", name="Households by size")]
    ['card.json', 'card.md']
    """
    place, opened = Path(folder), open_folder(folder)
    with reading(folder):
        facts = card_json(opened.manifest, options, lasting_digest((place / MANIFEST).read_bytes()))
    texts = {CARD: sealed(facts), CARD_TEXT: page_with_digest(card_markdown(facts))}
    if options.yaml:
        missing = missing_flags({name: facts[name] for name in RECORD if name in facts})
        if missing:
            raise RequestError(
                f"The registry requires what no manifest knows. Add {', '.join(missing)}."
            )
        texts[CARD_YAML] = card_yaml(facts)
    else:
        (place / CARD_YAML).unlink(missing_ok=True)  # an earlier record would say otherwise
    return tuple(write_shown(place / name, text) for name, text in texts.items())

"""Options of the card of a deployment: what its manifest does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from tallytree.errors import RequestError
from tallytree.options.base import Options, option
from tallytree.options.choices import Sector
from tallytree.options.panels import OUTPUT


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CardOptions(Options, panel=OUTPUT):
    """Who publishes what for whom; see :func:`tallytree.card`.

    Attributes
    ----------
    name, description
        Of the data product.
    curator
        Who holds the data and publishes the release, one or several.
    intended_use
        What the numbers are for, and for whom.
    region, sector
        Where the people in the data live, and who publishes: ``"USA"``, ``"Government"``. Sectors
        are those of the registry.
    published
        Date of publication, ``2026-11-16``.
    data
        What was collected from whom: a row, its columns, how many years.
    justification
        Why differential privacy, and why this loss.
    sources
        Where readers find more, such as addresses of papers, one or several.
    authors
        Who wrote the card, one or several.
    yaml
        Also write ``card.yaml``, which the registry takes. What it requires must then be said.
    """

    name: str | None = option(None, help="Name of the data product.")
    description: str | None = option(None, help="What is published.")
    curator: Sequence[str] = option(
        (), help="Who holds the data and publishes. Repeatable.", repeats=True, metavar="TEXT"
    )
    intended_use: str | None = option(None, help="What the numbers are for, and for whom.")
    region: str | None = option(None, help="Where the people in the data live.")
    sector: Sector | None = option(None, help="Who publishes.")
    published: str | None = option(
        None, help="Date of publication, such as 2026-11-16.", metavar="DATE"
    )
    data: str | None = option(None, help="What was collected, and from whom.")
    justification: str | None = option(None, help="Why differential privacy, and why this loss.")
    sources: Sequence[str] = option(
        (), help="Where readers find more. Repeatable.", repeats=True, metavar="TEXT"
    )
    authors: Sequence[str] = option(
        (), help="Who wrote the card. Repeatable.", repeats=True, metavar="TEXT"
    )
    yaml: bool = option(
        False, help="Also write card.yaml, which the registry takes, and print it.", recorded=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.published and not _is_day(self.published):
            raise RequestError(
                "published (--published) is a day written as YYYY-MM-DD, such as 2026-11-16; got "
                f"{self.published!r}."
            )
        if any("\n" in source for source in self.sources):
            raise RequestError(
                "Each of the sources (--sources) is one line; give the option once for each."
            )


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

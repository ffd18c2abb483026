"""What the user declares public: the facts that neighbouring data have in common, always said and
never guessed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallytree.errors import RequestError

CHOICE = """Say what is public, since it is published as it is and not protected:
  public="groups" (--public groups): the regions in the data and the number of groups in each of them;
  public="regions" (--public regions): the regions in the data alone; the numbers of groups are confidential and paid for;
  public="cells" (--public cells): with by= (--by), also the number of groups of each combination of values per region;
  groups=, group_totals= or hierarchy= (--groups, --group-totals, --hierarchy): public tables that say it instead."""


@dataclass(frozen=True)
class Declared:
    """Whether the number of groups per region is public, and in words where the two facts come
    from.
    """

    groups_public: bool
    groups_note: str
    regions_note: str


def declared(
    public: str | None,
    *,
    groups: Any = None,
    group_totals: Any = None,
    hierarchy: Any = None,
) -> Declared:
    """What is public, from the user's words and the tables beside the data; one error explains the
    choice.
    """
    if public not in (None, "groups", "regions", "cells"):
        raise RequestError(f"public is {public!r}. {CHOICE}")
    tables = [
        name
        for name, table in (("groups", groups), ("group_totals", group_totals))
        if table is not None
    ]
    if len(tables) == 2:
        raise RequestError(
            "groups= and group_totals= both say how many groups there are; give one of them."
        )
    if tables and public == "regions":
        raise RequestError(
            f'{tables[0]}= is a public table of groups, so public="regions" contradicts it; leave '
            "one of them out."
        )
    if not tables and hierarchy is None and public is None:
        raise RequestError(CHOICE)
    return Declared(
        bool(tables) or public in ("groups", "cells"),
        _groups_note(tables[0] if tables else None, public),
        _regions_note(tables[0] if tables else None, hierarchy is not None),
    )


def _groups_note(table: str | None, public: str | None) -> str:
    if table == "groups":
        return "the number of groups per region is public: a public table of groups was given"
    if table == "group_totals":
        return "the number of groups per region is public: a public table of group totals was given"
    if public == "cells":
        return (
            "the number of groups per region and combination of attribute values was read off the "
            "data and declared public "
            '(public="cells")'
        )
    if public == "groups":
        return 'the number of groups per region was read off the data and declared public (public="groups")'
    return "the number of groups per region is confidential; the release spends budget on it"


def _regions_note(table: str | None, hierarchy: bool) -> str:
    if hierarchy:
        return "the regions are those of a public hierarchy table"
    if table is not None:
        return f"the regions are those of the public table of {'groups' if table == 'groups' else 'group totals'}"
    return "the regions were read off the data and declared public"

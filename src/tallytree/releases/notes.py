"""What the notes of a manifest are about: what was taken as public, what stays confidential, how
rows were counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from tallytree.storage.folder import Manifest

# Entries of the block ``public`` that say what is done to rows, and nothing about the data.
_COUNTING = ("outside", "rows")
# How notes begin that say that something is not public.
_CONFIDENTIAL = ("not public", "how many there are is confidential")


@dataclass(frozen=True)
class Notes:
    """The texts of a manifest's block ``public`` by what they are about, each with its name there.

    Attributes
    ----------
    public
        What was taken as known to everybody, and is not protected.
    confidential
        What one might take for public, and is not.
    counting
        What was done to rows that lie outside, or came too early or too late.
    """

    public: dict[str, str]
    confidential: dict[str, str]
    counting: dict[str, str]


def notes_of(manifest: Manifest) -> Notes:
    """The notes of a manifest, told apart.

    Examples
    --------
    >>> notes_of({"public": {"hierarchy": "a public table", "group_totals": "not public; estimated"}}).confidential
    {'group_totals': 'not public; estimated'}
    """
    found = Notes({}, {}, {})
    for name, text in manifest.get("public", {}).items():
        if isinstance(text, str):
            confidential = text.startswith(_CONFIDENTIAL)
            kept = (
                found.confidential
                if confidential
                else found.counting
                if name in _COUNTING
                else found.public
            )
            kept[name] = text
    return found

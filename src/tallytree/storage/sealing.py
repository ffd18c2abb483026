"""Facts written as JSON with their own checksum at the end."""

from __future__ import annotations

import hashlib
import json
from typing import Any

OWN_CHECKSUM = "sha256"


def sealed(facts: dict[str, Any]) -> str:
    """Facts as they are written, with their own checksum at the end."""
    return rendered({**facts, OWN_CHECKSUM: own_checksum(facts)})


def own_checksum(facts: dict[str, Any]) -> str:
    """SHA-256 of facts as they are written, without the line of the checksum itself. Finds damage,
    not forgery.
    """
    rest = {name: value for name, value in facts.items() if name != OWN_CHECKSUM}
    return hashlib.sha256(rendered(rest).encode()).hexdigest()


def rendered(facts: dict[str, Any]) -> str:
    """Facts as JSON that people can read, always in the same way."""
    return json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def is_whole(facts: dict[str, Any], text: str) -> bool:
    """Whether a text is that of facts as :func:`sealed` writes them."""
    try:
        return facts.get(OWN_CHECKSUM) == own_checksum(facts) and rendered(facts) == text
    except (ValueError, RecursionError):
        return False

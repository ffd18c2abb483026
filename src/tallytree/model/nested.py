"""JSON and TOML that somebody else wrote: what is nested too deeply is a ``ValueError``, like all
else that is wrong.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

MOST_DOTS = 50
"""Dots of one name in TOML; each makes a table in a table, and the time to read them grows with their square."""
MOST_BYTES = 1 << 20
"""Bytes of a TOML file; a request has some hundred."""

_QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'")


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Examples
    --------
    >>> parse_json("[" * 100_000)
    Traceback (most recent call last):
    ValueError: nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError:
        pass
    raise ValueError(
        "nested too deeply"
    )  # out here, so that thousands of frames are not kept as its context


def parse_toml(content: bytes) -> dict[str, Any]:
    """The table of a TOML file; ``tomllib.TOMLDecodeError``, which is a ``ValueError``, says where
    it is none.
    """
    if len(content) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES:,} bytes")
    text = content.decode("utf-8")
    if any(_has_many_dots(line) for line in text.splitlines()):
        raise ValueError(f"a name with more than {MOST_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        pass
    raise ValueError("nested too deeply")


def _has_many_dots(line: str) -> bool:
    """Whether some name of a line may have too many parts; dots within quotes and of several
    numbers are none.
    """
    if line.count(".") <= MOST_DOTS:
        return False
    # Where a text goes on over lines, quotes do not tell what is within.
    bare = line if '"""' in line or "'''" in line else _QUOTED.sub("", line)
    return any(part.count(".") > MOST_DOTS for part in re.split("[,={}]", bare))

"""Whether names of columns are names: in a file without a line of names they are the values of its
first row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from itertools import islice

_LOOKED_AT_ROWS = 1000
_LOOKED_AT = 1 << 18
# One word that begins with a letter. Two words may be a name of a column, or of a person.
_NAME = re.compile(r"[^\W\d][\w.()/%#&:$-]*")


def may_be_values(names: Sequence[str]) -> bool:
    """Whether some of the names look like numbers, dates, people, addresses, results …, or occur
    twice; 0, 1, 2 … do not.

    Examples
    --------
    >>> may_be_values(["household", "state", "age"]), may_be_values(["0", "1", "2"])
    (False, False)
    >>> may_be_values(["4711", "Ohio", "f"]), may_be_values(["a17", "HIV+"])
    (True, True)
    """
    if list(names) == [str(place) for place in range(len(names))]:
        return False
    return len(set(names)) < len(names) or any(name and not _NAME.fullmatch(name) for name in names)


def recur_below(names: Sequence[str], text: str, separator: str) -> bool:
    """Whether a name is a value of its own column, in the text of a CSV file: names are not, values
    of a first row are.
    """
    try:
        rows = list(
            islice(
                csv.reader(text[:_LOOKED_AT].splitlines(), delimiter=separator), 1, _LOOKED_AT_ROWS
            )
        )
    except csv.Error:
        return False
    return any(name and name == value for row in rows for name, value in zip(names, row))

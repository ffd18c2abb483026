"""A quicker start of commands that read releases and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

READERS = ("query", "verify", "card")


def reads_releases_only(words: Sequence[str]) -> bool:
    """Whether the command that these words name meets no table but those of a release."""
    return bool(words) and (
        words[0] in READERS or (words[0] == "report" and "--truth" not in " ".join(words))
    )


def leave_pandas_out() -> None:
    """Have Arrow look for pandas now, and find none.

    With its first array Arrow loads pandas, where that is installed, to know the types of its
    tables: a quarter of the time of a short command, and 30 MB. Whoever asks Arrow for a pandas
    table afterwards still gets one.
    """
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        import pyarrow as pa

        pa.array([])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """Finds every module but pandas, which it says is not there."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ImportError("pandas is left out of this look")

"""Telling the owner of the data, who asks, what was done to values outside public bounds. This goes
to no one else.
"""

from __future__ import annotations

import sys
from contextlib import suppress

from tallytree.model.confidential import Altered


def tell_owner(altered: Altered) -> None:
    """Print how many values were changed or left out, to standard error and nowhere else.

    The numbers are exact and no noise hides them, so they never reach a file, a message of an error
    or an exit status: a console that cannot be written to is passed over.
    """
    changed = [f"{number:,} {what}" for what, number in altered.numbers if number]
    told = "; ".join(changed) or "no value lay outside the bounds"
    with suppress(OSError, ValueError):
        print(
            f"CONFIDENTIAL, for the owner alone, not covered by the guarantee: {told}.",
            file=sys.stderr,
            flush=True,
        )

"""Making a release once, paid for and saved: shared by the commands that release."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tallytree.cli.app import say
from tallytree.kinds.verbs import load
from tallytree.options.groups import Output, Paying
from tallytree.publish.keeping import publish_to
from tallytree.publish.payment import payment_from
from tallytree.released.published import Published

T = TypeVar("T", bound=Published)


def publish(options: Paying, where: Output, make: Callable[[], T], *, intervals: int = 0) -> tuple[T, bool]:
    """Make a release in a folder; or load the one that was made under the same idempotency key.

    The second value says whether it was made before.
    """
    out = str(where.out)
    kept = {"overwrite": where.overwrite, "noisy": not where.no_noisy}
    fresh = publish_to(out, make, payment=payment_from(options), intervals=intervals, **kept)
    if fresh is not None:
        if options.ledger is None and fresh.private:
            say(
                "No ledger was named: the losses of all releases from the same data add up, and nobody keeps the sum here."
            )
        return fresh, False
    say("This release was made before, under the same idempotency key. Nothing was charged.")
    return load(out), True

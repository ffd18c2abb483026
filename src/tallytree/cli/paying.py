"""Making a release once, paid for and saved: shared by the commands that release."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tallytree.cli.app import say
from tallytree.options.groups import Output, Paying

if TYPE_CHECKING:
    from tallytree.releases.keeping import Keeping
    from tallytree.releases.published import Published
    from tallytree.storage.folder import Folder

T = TypeVar("T", bound="Published")


def publish(
    options: Paying,
    where: Output,
    make: Callable[[Keeping], T],
    load: Callable[[Folder], T],
    *,
    intervals: int = 0,
) -> tuple[T, bool]:
    """Make a release in a folder; or load the one that was made under the same idempotency key.

    The second value says whether it was made before.
    """
    from tallytree.ledger.payment import payment_from
    from tallytree.releases.keeping import Target, release_to

    target = Target(where.out, where.overwrite, not where.no_noisy, intervals)
    made, found = release_to(target, make, load, payment_from(options))
    if found:
        say("This release was made before, under the same idempotency key. Nothing was charged.")
    elif options.ledger is None and made.private:
        say(
            "No ledger was named: the losses of all releases from the same data add up, and nobody "
            "keeps the sum here."
        )
    return made, found

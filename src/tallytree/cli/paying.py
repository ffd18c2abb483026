"""Making a release once, paid for and saved: shared by the commands that release."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from tallytree.cli.app import say
from tallytree.errors import RequestError
from tallytree.options.groups import Loss, Output, Releasing

if TYPE_CHECKING:
    from tallytree.releases.keeping import Keeping
    from tallytree.releases.published import Published
    from tallytree.storage.folder import Folder

T = TypeVar("T", bound="Published")


def say_if_weak(how: Loss) -> None:
    """Say what a loss above ε = 10 means, before it is paid for."""
    from tallytree.privacy.guarantee import weak_promise

    with suppress(RequestError):  # the release refuses what is no loss, in its turn
        weak = weak_promise(how.loss())
        if weak:
            say(f"Note: {weak}")


def sleep_to_multiple(seconds: float, span: int) -> None:
    """Sleep until a multiple of a span, after so many seconds."""
    time.sleep(-seconds % span)


def publish(
    options: Releasing,
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

    say_if_weak(options)
    started = time.monotonic()
    target = Target(where.out, where.overwrite, not where.no_noisy, intervals)
    made, found = release_to(target, make, load, payment_from(options))
    if found:
        say("This release was made before, under the same idempotency key. Nothing was charged.")
    elif options.ledger is None and made.private:
        say(
            "No ledger was named: the losses of all releases from the same data add up, and nobody "
            "keeps the sum here."
        )
    if where.pad_time is not None:
        sleep_to_multiple(time.monotonic() - started, where.pad_time)
    return made, found

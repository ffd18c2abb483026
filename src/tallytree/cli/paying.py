"""Making a release once, paid for and saved: shared by the commands that release."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from tallytree.cli.app import say
from tallytree.options.groups import Output, Paying
from tallytree.publish.payment import payment_from, publish_once
from tallytree.release.checks import Verification


class Published(Protocol):
    """What every kind of release can do."""

    def verify(self) -> Verification:
        """Check what was promised."""

    def save(self, path: str, *, overwrite: bool, noisy: bool) -> object:
        """Write it as a folder."""


T = TypeVar("T", bound=Published)


def publish(options: Paying, where: Output, make: Callable[[], T], load: Callable[[str], T]) -> tuple[T, bool]:
    """Make a release, verify it and save it; or load the one that was made under the same idempotency key.

    The second value says whether it was made before.
    """

    out = str(where.out)

    def make_and_save() -> T:
        made = make()
        made.verify().raise_if_failed()
        made.save(out, overwrite=where.overwrite, noisy=not where.no_noisy)
        return made

    fresh = publish_once(payment_from(options), out, make_and_save, overwrite=where.overwrite)
    if fresh is not None:
        return fresh, False
    say("This release was made before, under the same idempotency key. Nothing was charged.")
    return load(out), True

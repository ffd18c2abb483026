"""Every error that tallytree raises on purpose.

All inherit :class:`TallytreeError`, so that one ``except`` catches them, and the builtin that fits,
so that code written without tallytree in mind does too. A message says what was given, what is
accepted and what to do; it never shows a confidential value.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal


class TallytreeError(Exception):
    """Base of all errors raised on purpose."""


class InputError(TallytreeError, ValueError):
    """The data cannot be used as given: a missing column, a group in two regions, a fractional size
    ….
    """


class RequestError(TallytreeError, ValueError):
    """The request cannot be carried out as stated: an unknown mechanism, a budget of zero, shares
    that do not add up ….
    """


class StorageError(TallytreeError, OSError):
    """A file or folder cannot be read or written, or is already there."""


class NothingRecordedError(StorageError):
    """A ledger cannot be used, and nothing was written to it."""


class VerificationError(TallytreeError):
    """A release does not hold what it promises; ``failures`` lists each check that failed."""

    def __init__(self, message: str, failures: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class BudgetError(TallytreeError):
    """The ledger refused to reserve the budget; carries what was asked for and what is left."""

    def __init__(
        self, message: str, requested: Fraction | None = None, remaining: Fraction | None = None
    ) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining


class DuplicateReleaseError(BudgetError):
    """The ledger already holds a reservation under this idempotency key, so nothing was charged and
    no noise may be drawn.

    ``state`` says how far that run came: ``"reserved"``, ``"measured"`` (its noisy answers are
    kept, with the SHA-256 ``measured_digest``) or ``"completed"`` (its release is out, with the
    SHA-256 ``result_digest`` of its manifest). ``receipt`` is its reservation as a manifest records
    it.
    """

    def __init__(
        self,
        message: str,
        *,
        state: Literal["reserved", "measured", "completed"],
        receipt: dict[str, str | int],
        measured_digest: str = "",
        result_digest: str = "",
    ) -> None:
        super().__init__(message)
        self.state = state
        self.receipt = receipt
        self.measured_digest = measured_digest
        self.result_digest = result_digest

    @property
    def released(self) -> bool:
        """Whether that run reported its release."""
        return self.state == "completed"


class PaidNotFinishedError(TallytreeError):
    """A release is paid for and not written yet; what was measured is kept, and can be finished at
    no further cost.
    """


class MissingExtraError(TallytreeError, ImportError):
    """An optional dependency is not installed; the message holds the install command."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs an optional dependency. Install it with: pip install "
            f"'tallytree[{extra}]'"
        )
        self.extra = extra

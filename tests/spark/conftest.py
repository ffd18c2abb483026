"""Ledgers to pay from, as in the tests of privacy."""

from tests.ledger.conftest import ledger, new_database

__all__ = ["ledger", "new_database"]

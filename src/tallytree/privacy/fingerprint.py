"""A keyed fingerprint of exact values: whether data were read that were read before, without
keeping them.

BLAKE2b under a random key (a keyed hash is a pseudorandom function: RFC 7693, section 2.9). Whoever
holds the key and the fingerprint can test any guess at the data, one after the other, so both
together are as confidential as the data. Without the key the fingerprint tells nothing, and two
readings of the same data under two keys have nothing in common.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tallytree.model.confidential import Confidential, Fact

SALT_BYTES, DIGEST_BYTES = 32, 64
_PERSON = b"tallytree read 1"


@dataclass(frozen=True, eq=False, repr=False)
class Fingerprint(Confidential):
    """Confidential: a random key and the fingerprint of what was read under it."""

    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, facts: Iterable[Fact]) -> Fingerprint:
        """The fingerprint of exact values, under a fresh key from the operating system."""
        salt = os.urandom(SALT_BYTES)
        return cls(salt, keyed_digest(salt, facts))

    @classmethod
    def from_bytes(cls, written: bytes) -> Fingerprint | None:
        """What :meth:`to_bytes` wrote; None where it is cut short or was changed."""
        salt, digest, checksum = (
            written[:SALT_BYTES],
            written[SALT_BYTES:-SALT_BYTES],
            written[-SALT_BYTES:],
        )
        whole = (
            len(written) == 2 * SALT_BYTES + DIGEST_BYTES and _checksum(salt + digest) == checksum
        )
        return cls(salt, digest) if whole else None

    def to_bytes(self) -> bytes:
        """Key, fingerprint, and a checksum of both."""
        return self.salt + self.digest + _checksum(self.salt + self.digest)

    def fits(self, facts: Iterable[Fact]) -> bool:
        """Whether the same values were read."""
        return hmac.compare_digest(self.digest, keyed_digest(self.salt, facts))


def keyed_digest(key: bytes, facts: Iterable[Fact]) -> bytes:
    """BLAKE2b of texts and arrays of whole numbers under a key; where one fact ends and the next
    begins is told too.
    """
    digest = hashlib.blake2b(key=key, person=_PERSON)
    for fact in facts:
        if isinstance(fact, str):
            head, body = b"text", memoryview(fact.encode())
        else:
            head, body = (
                f"numbers {fact.shape}".encode(),
                np.ascontiguousarray(fact, dtype="<i8").reshape(-1).data,
            )
        digest.update(struct.pack("<qq", len(head), body.nbytes) + head)
        digest.update(body)
    return digest.digest()


def public_digest(facts: Iterable[Fact]) -> str:
    """The same without a key, for what is public: in hexadecimal digits."""
    return keyed_digest(b"", facts).hex()


def _checksum(written: bytes) -> bytes:
    return hashlib.sha256(written).digest()

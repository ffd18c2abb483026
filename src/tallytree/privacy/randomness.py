"""Where random bits come from: one key per release, and a fixed place in its stream for every draw.

A release draws one 256-bit key from the operating system. For each (level, query) a subkey is
derived from it with HMAC-SHA-256; under that subkey the pair (region, index) is the counter of
AES-256 in counter mode. Every draw therefore has its own bits, whoever computes it and in whatever
order: workers need the key and nothing else, a retried piece of work draws the same noise, and
eight million small regions cost one vectorised call.

AES never gives the same block for two counters, as true randomness might; to tell the two apart
takes some 2**64 blocks. Three address spaces never overlap, because their subkeys differ: the bits
every draw uses, the bits of later attempts where a sampler rejects, and the rare extensions where
the first bits do not decide.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import secrets
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Fact
from tallytree.privacy.fingerprint import public_digest
from tallytree.privacy.journal import Journal, Question
from tallytree.privacy.kernels import Span, fill_counters, gather_words_in_place

WordArray = npt.NDArray[np.uint64]

KEY_BYTES = 32
# Words made at a time: counters and words together stay in the second-level cache.
BLOCK_WORDS = 1 << 15
_VERSION = b"tallytree keystream 1"
_FIRST_BITS, _EXTENSIONS = 0, 1


@dataclass(frozen=True, eq=False)
class Places:
    """Where the draws of one query lie in the stream.

    Draws are numbered through from 0; draw ``offsets[i] - offsets[0] + j`` is number ``j`` of
    region ``first_region + i``. A region too large to draw at once is drawn in parts:
    ``first_draw`` says how many draws of the first region came before.
    """

    level: int
    query: str
    offsets: IntArray
    first_region: int = 0
    first_draw: int = 0

    def __post_init__(self) -> None:
        offsets = self.offsets
        if (
            offsets.dtype != np.int64
            or offsets.ndim != 1
            or len(offsets) < 1
            or np.any(offsets[1:] < offsets[:-1])
        ):
            raise RequestError(
                "Offsets of draws must be a nondecreasing vector of 64-bit integers, one more than "
                "regions."
            )
        if self.first_region < 0 or self.first_draw < 0:
            raise RequestError("The first region and the first draw are counted from 0.")

    @property
    def n_draws(self) -> int:
        """Number of draws in all regions."""
        return int(self.offsets[-1] - self.offsets[0])

    @property
    def name(self) -> str:
        """The place of the first draw in words, as answers are kept under."""
        return (
            f"{self.level}: {self.query}, from region {self.first_region}, draw {self.first_draw}"
        )

    @property
    def first(self) -> int:
        """Region and number of the first draw, as one whole number: places are numbered region by
        region.
        """
        return _position(self.first_region, self.first_draw)

    @property
    def end(self) -> int:
        """The number behind that of the last draw."""
        last = len(self.offsets) - 2
        drawn = int(self.offsets[-1] - self.offsets[-2])
        return _position(self.first_region + last, drawn + (self.first_draw if last == 0 else 0))

    def locate(self, draws: IntArray) -> tuple[IntArray, IntArray]:
        """Region of each draw, and its number within the region."""
        position = draws + self.offsets[0]
        row = np.searchsorted(self.offsets, position, side="right") - 1
        return row + self.first_region, position - self.offsets[row] + np.where(
            row == 0, self.first_draw, 0
        )


def _position(region: int, draw: int) -> int:
    return region << 64 | draw


@dataclass(eq=False)
class ClaimedPlaces:
    """The places that were claimed, as runs of numbers, so that millions of regions drawn in order
    are one run.

    A region is drawn to its end before the one behind it: what is left of it counts as claimed
    then.
    """

    _runs: dict[tuple[int, str], tuple[list[int], list[int]]] = field(default_factory=dict)

    def claim(self, places: Places) -> None:
        """Take places for one question; RequestError where one of them was taken before."""
        if places.n_draws == 0:
            return
        first, end = places.first, places.end
        starts, ends = self._runs.setdefault((places.level, places.query), ([], []))
        after = bisect_right(starts, first)
        if (after > 0 and ends[after - 1] > first) or (after < len(starts) and starts[after] < end):
            raise RequestError(
                f"The place {places.name}, was drawn before. Two answers from one place have the "
                "same noise, and their "
                "difference would show the difference of the true values; each question needs a "
                "place of its own."
            )
        if after > 0 and _follows(first, ends[after - 1]):
            ends[after - 1] = end
        else:
            starts.insert(after, first)
            ends.insert(after, end)


def _follows(first: int, end: int) -> bool:
    """Whether a run that begins here goes on from one that ends there: in the same region, or in
    the next one.
    """
    return first == end or first == _position((end >> 64) + 1, 0)


class BitSource(Protocol):
    """What the samplers need: :class:`KeyStream` in earnest, a script in the tests of rare paths."""

    def claim(self, places: Places) -> None:
        """Take places for one question, before its bits are asked for."""

    def block(self, places: Places, start: int, stop: int, words_per_draw: int) -> WordArray:
        """The first bits of draws ``start:stop``, ``words_per_draw`` words each."""

    def attempt(self, places: Places, draws: IntArray, attempt: int) -> WordArray:
        """Two fresh words for each of some draws, as rows, for attempt 1, 2, …."""

    def extension(self, places: Places, draw: int, word: int, attempt: int) -> Iterator[int]:
        """Endless further 64-bit words that continue one word of one draw."""


@dataclass(frozen=True, eq=False, repr=False)
class KeyStream:
    """A keyed stream of random bits; make one with :meth:`from_system`.

    Each (level, query, region, number) is a place of its own and serves one measurement: two
    measurements from the same place would share their noise, and their difference would show the
    difference of the true values. So a place is claimed before it is drawn, and a stream refuses to
    have it claimed twice. Streams of one key in several processes cannot see one another: who lends
    the key says for which work (:meth:`lend_key`).

    Attributes
    ----------
    secure
        Whether the key came from the operating system. A release drawn from any other key is not
        private.
    journal
        Where answers are kept as they are given, so that a run that dies can go on; None where they
        are not.
    """

    _key: bytearray
    secure: bool
    journal: Journal | None = None
    _process: int = field(default_factory=os.getpid)
    _claimed: ClaimedPlaces = field(default_factory=ClaimedPlaces)
    _lent: set[str] = field(default_factory=set)

    @classmethod
    def from_system(cls, journal: Journal | None = None) -> KeyStream:
        """A stream under a fresh key from the operating system."""
        return cls(bytearray(secrets.token_bytes(KEY_BYTES)), secure=True, journal=journal)

    @classmethod
    def from_insecure_seed(cls, seed: int, journal: Journal | None = None) -> KeyStream:
        """A repeatable stream, for tests and experiments only: whoever knows the seed can take the
        noise off again.
        """
        return cls(
            bytearray(hashlib.sha256(_VERSION + b" seed %d" % seed).digest()),
            secure=False,
            journal=journal,
        )

    @classmethod
    def from_key(cls, key: bytes, *, secure: bool) -> KeyStream:
        """The stream of a key that :meth:`lend_key` gave, in another process of the same release."""
        if len(key) != KEY_BYTES:
            raise RequestError(f"A key has {KEY_BYTES} bytes, not {len(key)}.")
        return cls(bytearray(key), secure=secure)

    def lend_key(self, work: str) -> bytes:
        """The key itself, to hand to the workers that draw what ``work`` names; it is lent for each
        work once.

        Workers of one work draw from places that do not overlap. Whoever has the key can take the
        noise off again.
        """
        self._require_key()
        if work in self._lent:
            raise RequestError(
                f"The key was lent for {work} before; drawn again, other questions would get the "
                "same noise."
            )
        self._lent.add(work)
        return bytes(self._key)

    def claim(self, places: Places) -> None:
        """Take places for one question; refused where one of them was taken before in this run."""
        self._require_key()
        self._claimed.claim(places)

    def forget(self) -> None:
        """Overwrite the key; the stream cannot be used any more.

        Best effort: Python and OpenSSL may have made copies of it or of its subkeys in memory that
        nobody can reach to erase.
        """
        self._key[:] = bytes(len(self._key))
        self._key.clear()

    def words(
        self,
        level: int,
        query: str,
        *,
        offsets: IntArray,
        first_region: int = 0,
        first_draw: int = 0,
    ) -> WordArray:
        """Random words: region ``first_region + i`` gets ``offsets[i + 1] - offsets[i]`` of them,
        from its own place.
        """
        places = Places(level, query, offsets, first_region, first_draw)
        self.claim(places)
        words = np.empty(places.n_draws, dtype=np.uint64)
        for start in range(0, len(words), BLOCK_WORDS):
            stop = min(start + BLOCK_WORDS, len(words))
            words[start:stop] = self.block(places, start, stop, 1)
        return words

    def block(self, places: Places, start: int, stop: int, words_per_draw: int) -> WordArray:
        """The first bits of draws ``start:stop``, ``words_per_draw`` words each, one draw after the
        other.
        """
        subkey = self._subkey(_FIRST_BITS, places, struct.pack("<q", 0))
        span = Span(
            places.offsets, places.first_region, places.first_draw, start, stop, words_per_draw
        )
        buffer, n_counters = fill_counters(span)
        _encrypt_in_place(subkey, buffer, n_counters)
        return gather_words_in_place(span, buffer)

    def attempt(self, places: Places, draws: IntArray, attempt: int) -> WordArray:
        """Two words for each of ``draws``, as rows, for attempt 1, 2, … of a sampler that rejects."""
        counters = np.empty((len(draws) + 1, 2), dtype=np.uint64)
        counters[:-1, 0], counters[:-1, 1] = places.locate(draws)
        subkey = self._subkey(_FIRST_BITS, places, struct.pack("<q", attempt))
        _encrypt_in_place(subkey, counters, len(draws))
        return counters[:-1]

    def extension(self, places: Places, draw: int, word: int, attempt: int) -> Iterator[int]:
        """Further words that continue word ``word`` of one draw, as many as it takes to decide it."""
        region, number = (int(found[0]) for found in places.locate(np.array([draw])))
        subkey = self._subkey(
            _EXTENSIONS, places, struct.pack("<4q", attempt, word, region, number)
        )
        for block in itertools.count():
            buffer = np.array([block, 0, 0, 0], dtype=np.uint64)
            _encrypt_in_place(subkey, buffer, 1)
            yield from buffer[:2].tolist()

    def _subkey(self, purpose: int, places: Places, rest: bytes) -> bytes:
        self._require_key()
        query = places.query.encode()
        message = _VERSION + struct.pack("<bqq", purpose, places.level, len(query)) + query + rest
        return hmac.digest(self._key, message, "sha256")

    def _require_key(self) -> None:
        if not self._key:
            raise RequestError(
                "The key of this release was forgotten; its noise cannot be drawn again."
            )
        if self._process != os.getpid():
            raise RequestError(
                "The key of this release belongs to another process. Two processes under one key "
                "would draw the same noise, "
                "and the difference of their answers would show the truth; release in one of them."
            )

    def __repr__(self) -> str:
        return f"KeyStream({'secure' if self.secure else 'insecure seed: not private'}, key hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A key stream is not pickled by accident; lend_key() hands it to a worker on purpose."
        )


def answer_once(
    source: BitSource,
    places: Places,
    n_values: int,
    draw: Callable[[], IntArray],
    question: Iterable[Fact],
) -> IntArray:
    """The answer at some places, which are claimed for it: one that was kept by a run that died, or
    else a fresh one.

    ``question`` is all that is public about what is asked there: the law of the noise, and what is
    counted.
    """
    source.claim(places)
    journal: Journal | None = getattr(source, "journal", None)
    if journal is None:
        return draw()
    asked = Question(places.name, public_digest([places.offsets, *question]))
    return journal.answer(asked, n_values, draw)


def _encrypt_in_place(subkey: bytes, counters: WordArray, n_counters: int) -> None:
    """AES-256 of each 128-bit counter: counter mode with counters of our choice.

    The buffer needs a spare counter at its end. Counters and words are in the byte order of the
    machine; the workers of one release share it.
    """
    octets = counters.reshape(-1).view(np.uint8)
    encryptor = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()
    encryptor.update_into(octets[: 16 * n_counters].data, octets.data)

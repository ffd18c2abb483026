"""The keyed stream: every place has its own bits, the key stays hidden, and can be forgotten."""

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.privacy.randomness import BLOCK_WORDS, KeyStream, Places
from tests.reference.sampling import words_of_places

STREAM = KeyStream.from_insecure_seed(7)


def words(level: int, query: str, **place: Any) -> np.ndarray:
    """Words of a stream on which nothing was drawn before."""
    return KeyStream.from_insecure_seed(7).words(level, query, **place)


@pytest.mark.parametrize("words_per_draw", [1, 2, 3])
def test_words_are_counter_mode_of_region_and_block(words_per_draw: int) -> None:
    offsets = np.cumsum([0, 3, 0, 1, 4])
    places = Places(2, "sizes", offsets, first_region=10, first_draw=5)
    subkey = STREAM._subkey(0, places, bytes(8))
    expected = words_of_places(subkey, offsets.tolist(), 10, 5, words_per_draw)
    assert STREAM.block(places, 0, 8, words_per_draw).tolist() == expected
    assert (
        STREAM.block(places, 2, 6, words_per_draw).tolist()
        == expected[2 * words_per_draw : 6 * words_per_draw]
    )


def test_long_requests_are_the_blocks_put_together() -> None:
    n = 2 * BLOCK_WORDS + 5
    whole = words(0, "q", offsets=np.array([0, n]))
    tail = words(0, "q", offsets=np.array([0, 9]), first_draw=n - 9)
    assert np.array_equal(whole[-9:], tail)


def test_no_two_places_share_bits() -> None:
    offsets = np.array([0, 50])
    requests = itertools.product([0, 1], ["a", "b"], [0, 1])
    drawn = [
        words(level, query, offsets=offsets, first_region=region)
        for level, query, region in requests
    ]
    places = Places(0, "a", offsets)
    drawn += [STREAM.attempt(places, np.arange(50), attempt).reshape(-1) for attempt in (1, 2)]
    drawn += [
        np.array(
            list(itertools.islice(STREAM.extension(places, draw, word, attempt), 20)),
            dtype=np.uint64,
        )
        for draw, word, attempt in itertools.product([0, 1], [0, 1], [0, 1])
    ]
    everything = np.concatenate(drawn)
    assert len(np.unique(everything)) == len(everything)


def test_names_cannot_run_into_one_another() -> None:
    offsets = np.array([0, 2])
    names = ["", "a", "a\x00", "a\x00\x00", "ab"]
    first = {int(words(level, name, offsets=offsets)[0]) for level in (0, 1, 97) for name in names}
    assert len(first) == 15


def test_attempts_and_extensions_follow_the_place_and_not_the_cut() -> None:
    whole = Places(1, "q", np.array([0, 4, 4, 9]), first_region=3)
    part = Places(1, "q", np.array([4, 9]), first_region=5)
    assert np.array_equal(
        STREAM.attempt(whole, np.arange(4, 9), 1), STREAM.attempt(part, np.arange(5), 1)
    )
    later = Places(1, "q", np.array([0, 3]), first_region=5, first_draw=2)
    for places, draw in ((part, 3), (later, 1)):
        more = itertools.islice(STREAM.extension(places, draw, 0, 0), 3)
        assert list(more) == list(itertools.islice(STREAM.extension(whole, 7, 0, 0), 3))


def test_bits_look_fair() -> None:
    drawn = words(0, "q", offsets=np.arange(0, 200_001, 2))
    ones = np.unpackbits(drawn.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=np.int64)
    assert np.abs(ones - 100_000).max() < 5.5 * np.sqrt(200_000) / 2


def test_fresh_keys_differ_and_are_secure() -> None:
    one, other = KeyStream.from_system(), KeyStream.from_system()
    assert one.secure
    assert other.secure
    assert one.lend_key("a test") != other.lend_key("a test")
    assert not STREAM.secure


def test_a_worker_with_the_key_draws_the_same() -> None:
    stream = KeyStream.from_system()
    worker = KeyStream.from_key(stream.lend_key("a test"), secure=stream.secure)
    offsets = np.array([0, 5])
    assert np.array_equal(
        stream.words(0, "q", offsets=offsets), worker.words(0, "q", offsets=offsets)
    )
    with pytest.raises(RequestError, match="32 bytes"):
        KeyStream.from_key(b"short", secure=True)


def test_the_key_is_hidden_and_not_copied_by_accident() -> None:
    stream = KeyStream.from_system()
    key = stream.lend_key("a test")
    assert key.hex() not in repr(stream) + str(stream)
    assert repr(key) not in repr(stream)
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="lend_key"):
            attempt(stream)


def test_a_forgotten_key_draws_nothing_more() -> None:
    stream = KeyStream.from_system()
    stream.forget()
    stream.forget()
    for use in (
        lambda: stream.words(0, "q", offsets=np.array([0, 1])),
        lambda: stream.lend_key("a test"),
    ):
        with pytest.raises(RequestError, match="forgotten"):
            use()


def test_bad_offsets_are_refused() -> None:
    for offsets in (np.array([0, 2, 1]), np.array([0.0, 1.0]), np.zeros((2, 2), dtype=np.int64)):
        with pytest.raises(RequestError, match="nondecreasing"):
            words(0, "q", offsets=offsets)
    with pytest.raises(RequestError, match="counted from 0"):
        words(0, "q", offsets=np.array([0, 1]), first_region=-1)

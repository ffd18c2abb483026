import struct
import zlib

import numpy as np
import pytest

from tallytree.boxes.picture import COLOURS, encode_png, map_pixels
from tallytree.errors import RequestError


def decode(octets):
    """The pixels of a PNG as :func:`encode_png` writes it, chunk by chunk, with its checksums."""
    place, chunks = 8, {}
    while place < len(octets):
        (length,) = struct.unpack(">I", octets[place : place + 4])
        kind, body = octets[place + 4 : place + 8], octets[place + 8 : place + 8 + length]
        assert struct.unpack(">I", octets[place + 8 + length : place + 12 + length])[
            0
        ] == zlib.crc32(kind + body)
        chunks[kind] = body
        place += 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(
        height, 1 + 3 * width
    )
    return rows[:, 1:].reshape(height, width, 3)


def test_a_png_holds_its_pixels():
    pixels = np.random.default_rng(1).integers(0, 256, size=(17, 23, 3)).astype(np.uint8)
    assert np.array_equal(decode(encode_png(pixels)), pixels)


def test_dense_places_are_dark_and_lie_where_they_should():
    density = np.zeros((8, 4))
    density[6, 3] = 1000.0  # far right, top
    density[1, 0] = 1.0  # left, bottom
    pixels = map_pixels(density, size=160).astype(int)
    assert pixels.shape == (80, 160, 3)
    assert pixels[10, 130].tolist() == COLOURS[-1].astype(int).tolist()
    assert pixels[70, 130].tolist() == COLOURS[0].astype(int).tolist()
    assert pixels[10, 130].sum() < pixels[70, 30].sum() < pixels[40, 80].sum()


def test_an_empty_map_has_a_picture():
    assert map_pixels(np.zeros((4, 4)), size=64)[30, 30].tolist() == COLOURS[0].tolist()
    with pytest.raises(RequestError, match="two dimensions"):
        map_pixels(np.zeros((2, 2, 2)))
    with pytest.raises(RequestError, match="pixels wide"):
        map_pixels(np.zeros((2, 2)), size=3)

"""A map as a picture file, without a drawing library: PNG by hand, colours on a logarithmic scale."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tallytree.errors import RequestError, StorageError
from tallytree.model.arrays import FloatArray

PixelArray = npt.NDArray[np.uint8]

# From nothing to the densest place: near-white, yellow, orange, red, dark violet. Lightness falls
# evenly, so that the picture can be read in grey and by the colour-blind.
COLOURS = np.array(
    [(250, 250, 246), (254, 227, 145), (252, 157, 67), (221, 73, 62), (140, 24, 92), (45, 8, 66)],
    dtype=np.float64,
)
FRAME = (120, 120, 120)


def colour_map(density: FloatArray) -> PixelArray:
    """Red, green and blue per cell; colours follow log(1 + density over its typical nonzero value)."""
    positive = np.maximum(density, 0.0)
    busy = positive[positive > 0]
    typical = float(np.quantile(busy, 0.1)) if busy.size else 1.0
    scale = np.log1p(positive / typical)
    top = float(np.quantile(scale[positive > 0], 0.999)) if busy.size else 1.0
    place = np.clip(scale / top, 0.0, 1.0) * (len(COLOURS) - 1)
    lower = np.minimum(place.astype(np.int64), len(COLOURS) - 2)
    share = (place - lower)[..., None]
    return np.rint(COLOURS[lower] * (1 - share) + COLOURS[lower + 1] * share).astype(np.uint8)


def map_pixels(density: FloatArray, *, size: int = 768) -> PixelArray:
    """A picture of a two-dimensional density: first dimension to the right, second upwards, about
    ``size`` pixels wide.
    """
    if density.ndim != 2:
        raise RequestError(
            f"A picture shows two dimensions; this map has {density.ndim}. Add the others up first."
        )
    if not 16 <= size <= 8192:
        raise RequestError(f"A picture is 16 to 8192 pixels wide, got {size}.")
    width = size
    height = (
        max(16, round(size * density.shape[1] / density.shape[0]))
        if density.shape[1] != density.shape[0]
        else size
    )
    height = min(height, 8192)
    columns = np.arange(width) * density.shape[0] // width
    rows = np.arange(height)[::-1] * density.shape[1] // height
    pixels = colour_map(density)[columns[None, :], rows[:, None]]
    pixels[[0, -1], :] = FRAME
    pixels[:, [0, -1]] = FRAME
    return pixels


def encode_png(pixels: PixelArray) -> bytes:
    """An RGB picture of shape (height, width, 3) as the bytes of a PNG file."""
    height, width, _ = pixels.shape
    # Every row starts with a filter byte; 0 is none.
    rows = np.zeros((height, 1 + 3 * width), dtype=np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )


def save_picture(density: FloatArray, path: str | Path, *, size: int = 768) -> Path:
    """Write a density as a PNG file."""
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise RequestError(f"A picture is written as a .png file, got {target.name!r}.")
    octets = encode_png(map_pixels(density, size=size))
    try:
        target.write_bytes(octets)
    except OSError as error:
        raise StorageError(
            f"Cannot write {target}: {error.strerror}. Choose another place."
        ) from None
    return target

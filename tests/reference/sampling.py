"""Slow, obvious twins of the sampling kernels."""

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def words_of_places(
    subkey: bytes, offsets: list[int], first_region: int, first_draw: int, words_per_draw: int
) -> list[int]:
    """Word w of a region is half w % 2 of the AES cipher of the counter (region, w // 2), all
    little-endian.
    """
    words = []
    for row in range(len(offsets) - 1):
        before = first_draw if row == 0 else 0
        first = before * words_per_draw
        last = (before + offsets[row + 1] - offsets[row]) * words_per_draw
        for word in range(first, last):
            counter = (first_region + row).to_bytes(8, "little") + (word // 2).to_bytes(8, "little")
            cipher = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor().update(counter)
            half = cipher[:8] if word % 2 == 0 else cipher[8:]
            words.append(int.from_bytes(half, "little"))
    return words


def invert(word: int, thresholds: list[int]) -> int | None:
    """The number of k >= 1 whose threshold lies above the upper 63 bits, None where one equals
    them.
    """
    u = word >> 1
    if u in thresholds[1:]:
        return None
    return sum(u < threshold for threshold in thresholds[1:])

"""How the text of a file is written: stated, or found from its first bytes."""

from __future__ import annotations

import codecs
import warnings

from tallytree.errors import InputError, RequestError

UTF8 = "utf-8"
MARKS = {codecs.BOM_UTF8: UTF8, codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
"""The first bytes of a file that tell how it is written."""
LIKELY = "windows-1252"
"""What a file that is not UTF-8 and has no mark is most often written in."""
LOOKED_AT = 1 << 22
"""Bytes of a file that its encoding is found from."""


def encoding_of(start: bytes, path: str, stated: str | None) -> str:
    """The encoding of a file with these first bytes; one that was stated is checked against them."""
    return _found(start, path) if stated is None else _checked(stated, start, path)


def _checked(encoding: str, start: bytes, path: str) -> str:
    """The name of a stated encoding; refuses one that is unknown, or that the file is not written
    in.
    """
    try:
        known = codecs.lookup(encoding).name
    except LookupError:
        known = ""
    if not known:
        raise RequestError(
            f"There is no encoding {encoding!r}; say utf-8, {LIKELY}, latin-1, utf-16 or another."
        )
    if not _fits(start, known):
        raise InputError(
            f"{path} is not written in {encoding}; leave encoding= out to have it found."
        )
    return UTF8 if known in (UTF8, "utf-8-sig", "ascii") else known


def _found(start: bytes, path: str) -> str:
    """The encoding by the first bytes: a mark, or what they can be."""
    marked = next((name for mark, name in MARKS.items() if start.startswith(mark)), None)
    if marked is not None:
        return marked
    for zero, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        every_second = start[zero:400:2]
        if every_second.count(0) > 0.8 * len(
            every_second
        ):  # plain letters of UTF-16 have a zero byte each
            return name
    if _fits(start, UTF8):
        return UTF8
    if not _fits(start, LIKELY):
        raise InputError(
            f"{path} cannot be read: it is neither UTF-8 nor {LIKELY}. Say how it is written "
            "(encoding=, --encoding)."
        )
    told = f"{path} is not UTF-8 and is read as {LIKELY}. Say encoding= (--encoding) where names come out wrong."
    warnings.warn(told, UserWarning, stacklevel=3)
    return LIKELY


def _fits(start: bytes, encoding: str) -> bool:
    """Whether the first bytes of a file can be text in an encoding. The error itself would quote
    them.
    """
    try:
        codecs.getincrementaldecoder(encoding)().decode(start)
    except UnicodeDecodeError:
        return False
    return True

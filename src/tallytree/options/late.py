"""Types of values that options may have, known without loading the module that makes them: before
it is loaded no such value exists.
"""

from __future__ import annotations

import sys


class _Late(type):
    """A class whose objects are those of a class of another module."""

    home: str
    original: str

    def __instancecheck__(cls, value: object) -> bool:
        loaded = sys.modules.get(cls.home)
        return loaded is not None and isinstance(value, getattr(loaded, cls.original))


class Array(metaclass=_Late):
    """``numpy.ndarray``."""

    home, original = "numpy", "ndarray"


class ArrayInteger(metaclass=_Late):
    """``numpy.integer``."""

    home, original = "numpy", "integer"


class ArrayBool(metaclass=_Late):
    """``numpy.bool_``."""

    home, original = "numpy", "bool_"


class Bins(metaclass=_Late):
    """:class:`tallytree.model.bins.Bins`."""

    home, original = "tallytree.model.bins", "Bins"

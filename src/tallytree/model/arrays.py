"""Names for the array types that every room shares."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
LabelArray = npt.NDArray[np.object_]
AnyArray = npt.NDArray[Any]


A = TypeVar("A", bound=npt.NDArray[Any])


def read_only(array: A) -> A:
    """Mark an array as immutable and return it; frozen dataclasses hold only such arrays."""
    array.setflags(write=False)
    return array


def offsets_from_lengths(lengths: IntArray) -> IntArray:
    """Offsets of consecutive runs: ``offsets[i]:offsets[i + 1]`` holds run ``i``."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def runs_at(offsets: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Offsets of some runs, in this order, and the place of each of their values among those of all
    runs.
    """
    lengths = np.diff(offsets)[chosen]
    found = offsets_from_lengths(lengths)
    return found, np.repeat(offsets[:-1][chosen] - found[:-1], lengths) + np.arange(found[-1])

"""The one table of mechanisms for group sizes."""

from __future__ import annotations

from tallytree.extensions import extension
from tallytree.group_sizes.mechanisms.adaptive import Adaptive
from tallytree.group_sizes.mechanisms.auto import Auto
from tallytree.group_sizes.mechanisms.by_view import BOTTOM_UP, MATCHING
from tallytree.group_sizes.mechanisms.mechanism import Mechanism
from tallytree.group_sizes.mechanisms.size_bins import InSizeBins

MECHANISMS: dict[str, Mechanism] = {
    "adaptive": Adaptive(),
    "matching": MATCHING,
    "bottom-up": BOTTOM_UP,
    "size-bins": InSizeBins(),
    "auto": Auto(),
}


def mechanism_named(name: str) -> Mechanism:
    """A mechanism by name; those of papers are loaded when they are asked for."""
    if name in MECHANISMS:
        return MECHANISMS[name]
    mechanism: Mechanism = extension("group sizes")[name]
    return mechanism

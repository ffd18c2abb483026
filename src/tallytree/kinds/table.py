"""The one table of all kinds. A kind's module is imported when a release of it is met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from tallytree.errors import RequestError
from tallytree.releases.kind import Kind

MODULES = {
    "group-sizes": "tallytree.group_sizes.kind",
    "values": "tallytree.group_sizes.values.kind",
    "table": "tallytree.tables.kind",
    "histogram": "tallytree.ranges.kind",
    "degrees": "tallytree.degree_sequences.kind",
    "map": "tallytree.maps.kind",
    "stream": "tallytree.streams.kind",
}


class _Kinds(Mapping[str, Kind]):
    """Kinds by name, each from the constant ``KIND`` of its module."""

    def __getitem__(self, name: str) -> Kind:
        kind: Kind = import_module(MODULES[name]).KIND
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


KINDS: Mapping[str, Kind] = _Kinds()


def kind_named(name: object, where: object) -> Kind:
    """The kind that a manifest names."""
    if not isinstance(name, str) or name not in KINDS:
        raise RequestError(
            f"{where} holds a release of kind {name!r}, which this version does not know. Upgrade "
            "tallytree."
        )
    return KINDS[name]

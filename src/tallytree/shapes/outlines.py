"""Outlines of regions from GeoJSON (RFC 7946) or TopoJSON files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.errors import InputError, StorageError, TallytreeError
from tallytree.model.arrays import FloatArray
from tallytree.model.nested import parse_json

Polygon = tuple[FloatArray, ...]
"""Rings of corners, shape (n, 2): the outer one first, then holes. The first corner of a ring is its last."""


@dataclass(frozen=True, eq=False)
class Outlines:
    """Polygons by identifier.

    Attributes
    ----------
    polygons
        Per identifier its polygons; islands are polygons of their own.
    names
        What people call a shape, where the file says it (the property ``name``).
    """

    polygons: dict[str, tuple[Polygon, ...]]
    names: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Outlines({len(self.polygons):,} shapes)"


def read_outlines(
    path: str | Path, identifier: str | None = None, *, layer: str | None = None
) -> Outlines:
    """The outlines of a GeoJSON or TopoJSON file.

    Parameters
    ----------
    path
        The file.
    identifier
        Property that names the region; the ``id`` of each feature where left out, or where no
        feature has the property.
    layer
        Of TopoJSON: the object to take; the one with the most shapes where left out.
    """
    with _well_formed(path):
        return _read_outlines(path, identifier, layer)


def _read_outlines(path: str | Path, identifier: str | None, layer: str | None) -> Outlines:
    features = _features(path, layer)
    by_property = identifier is not None and any(
        identifier in (one.get("properties") or {}) for one, _ in features
    )
    polygons: dict[str, tuple[Polygon, ...]] = {}
    names: dict[str, str] = {}
    for feature, geometry in features:
        name = (
            (feature.get("properties") or {}).get(identifier) if by_property else feature.get("id")
        )
        parts = _polygons(geometry)
        if name is not None and parts:
            polygons[str(name)] = polygons.get(str(name), ()) + parts
            called = (feature.get("properties") or {}).get("name")
            if isinstance(called, str) and called:
                names[str(name)] = called
    if not polygons:
        known = sorted({name for one, _ in features for name in (one.get("properties") or {})})
        raise InputError(
            f"{path} names no shape by {identifier or 'id'!r}. Say another property: "
            f"{', '.join(known) or 'there is none'}."
        )
    return Outlines(polygons, names)


def layers_of(path: str | Path) -> tuple[str, ...]:
    """The layers of a TopoJSON file; none of GeoJSON, which is one."""
    with _well_formed(path):
        facts = _read(Path(path))
        return tuple(map(str, facts["objects"])) if facts.get("type") == "Topology" else ()


def read_polygons(path: str | Path) -> list[Polygon]:
    """All outlines of a file, whatever they are called."""
    with _well_formed(path):
        return [part for _, geometry in _features(path, None) for part in _polygons(geometry)]


@contextmanager
def _well_formed(path: str | Path) -> Iterator[None]:
    """One sentence for whatever is not where these formats have it; deep nesting makes Python run
    out of calls.
    """
    try:
        yield
    except TallytreeError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        damaged = InputError(
            f"{path} is not GeoJSON or TopoJSON as it should be: a shape lacks what it needs."
        )
    else:
        return
    raise damaged


def _features(path: str | Path, layer: str | None) -> list[tuple[Any, Any]]:
    """The features of a file with their geometries."""
    facts = _read(Path(path))
    kind = facts.get("type")
    if kind == "Topology":
        return _topology_features(facts, layer, path)
    if kind == "FeatureCollection":
        return [(feature, feature.get("geometry")) for feature in facts["features"]]
    raise InputError(
        f"{path} is neither GeoJSON nor TopoJSON: a FeatureCollection or a Topology is expected, "
        f"got {kind!r}."
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        facts = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise InputError(
            f"{path} is no JSON file; outlines are read from GeoJSON or TopoJSON."
        ) from None
    return facts if isinstance(facts, dict) else {}


def _polygons(geometry: Any) -> tuple[Polygon, ...]:
    """The polygons of a GeoJSON geometry; points and lines have none."""
    if not isinstance(geometry, dict):
        return ()
    if geometry["type"] == "GeometryCollection":
        return tuple(part for one in geometry["geometries"] for part in _polygons(one))
    if geometry["type"] not in ("Polygon", "MultiPolygon"):
        return ()
    parts = [geometry["coordinates"]] if geometry["type"] == "Polygon" else geometry["coordinates"]
    return tuple(
        tuple(np.array(ring, dtype=np.float64)[:, :2] for ring in part) for part in parts if part
    )


def _topology_features(
    facts: dict[str, Any], layer: str | None, path: str | Path
) -> list[tuple[Any, Any]]:
    """The geometries of a TopoJSON object as pairs of feature and GeoJSON geometry."""
    objects = facts["objects"]
    if layer is not None and layer not in objects:
        raise InputError(f"{path} has no object {layer!r}. Known: {', '.join(objects)}.")
    name = layer or max(objects, key=lambda one: len(objects[one].get("geometries", ())))
    arcs = list(_arcs(facts))
    shapes = objects[name].get("geometries", [objects[name]])
    return [(shape, _joined(shape, arcs)) for shape in shapes]


def _arcs(facts: dict[str, Any]) -> Iterable[FloatArray]:
    """Arcs in coordinates: quantised ones are differences, scaled and shifted."""
    transform = facts.get("transform")
    for arc in facts["arcs"]:
        corners = np.array(arc, dtype=np.float64)[:, :2]
        if transform is not None:
            corners = np.cumsum(corners, axis=0) * np.array(transform["scale"]) + np.array(
                transform["translate"]
            )
        yield corners


def _joined(shape: dict[str, Any], arcs: list[FloatArray]) -> dict[str, Any] | None:
    """A geometry whose rings are joined from arcs; arc ``~i`` is arc ``i`` backwards."""

    def ring(numbers: list[int]) -> FloatArray:
        parts = [arcs[number] if number >= 0 else arcs[~number][::-1] for number in numbers]
        return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])

    if shape.get("type") == "Polygon":
        return {"type": "Polygon", "coordinates": [ring(numbers) for numbers in shape["arcs"]]}
    if shape.get("type") == "MultiPolygon":
        parts = [[ring(numbers) for numbers in part] for part in shape["arcs"]]
        return {"type": "MultiPolygon", "coordinates": parts}
    return None

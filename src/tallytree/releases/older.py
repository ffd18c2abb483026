"""Manifests of format 1, as the present version would have written them.

Format 1 had no checksum of its own, so every key that its writer always wrote must be there. It
named a unit in words, spelled noise in two ways, and called the mechanism of a histogram its
strategy and that of a map or degree sequence its method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallytree.errors import VerificationError
from tallytree.model.unit import ENTITY, Unit
from tallytree.privacy.guarantee import Guarantee, budget_of, guarantee_to_json
from tallytree.storage.folder import MANIFEST, Manifest

GRID_KIND = "grid-histogram"
"""A kind that is no more: :mod:`tallytree.releases.older_grids` reads its folders as maps."""

_EVERY_KIND = ("kind", "privacy", "public", "versions", "files")
_PRIVACY = (
    "private", "definition", "unit", "unit_column", "contributions", "neighbours", "statement", "composition",
)  # fmt: skip
_VERSIONS = ("python", "tallytree", "numpy", "numba", "pyarrow", "duckdb", "cryptography")
# Per kind: keys at the top, keys of the block that names the mechanism, of ``public``, and the
# files beside counts.parquet.
_KEYS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "group-sizes": (
        ("levels", "request", "totals", "hierarchy_sha256"),
        "mechanism",
        ("name", "views", "norms", "merge", "max_size"),
        ("hierarchy", "group_totals", "max_quantity"),
        ("regions.parquet",),
    ),
    "histogram": (
        ("published",), "strategy", ("name", "bins", "kind", "shares", "reason"), ("bins", "outside"), (),
    ),
    GRID_KIND: (
        ("published",), "strategy", ("name", "bins", "kind", "shares", "reason", "shape", "widths"), ("bins", "outside"),
        ("axes.parquet",),
    ),
    "degrees": ((), "method", ("name", "graphical"), ("groups", "max_quantity", "note"), ()),
    "map": (
        ("columns", "box", "resolution", "uniformity", "published"),
        "method",
        ("name", "asked_for", "n_points", "alpha", "cells", "depth", "branching", "prune"),
        ("box", "outside", "number_of_points"),
        (),
    ),
}  # fmt: skip
_NOISE = {"discrete Laplace": "discrete-laplace", "discrete Gaussian": "discrete-gaussian"}


def from_format_1(manifest: Manifest) -> Manifest:
    """The manifest in the present format, without ``files``; VerificationError where a key is
    missing.
    """
    _need(manifest, "", _EVERY_KIND)
    kind = manifest["kind"]
    if kind not in _KEYS:
        return manifest
    top, mechanism, of_mechanism, public, files = _KEYS[kind]
    _need(manifest, "", (*top, mechanism))
    _need(manifest[mechanism], mechanism, of_mechanism)
    _need(manifest["public"], "public", public)
    _need(manifest["versions"], "versions", _VERSIONS)
    _need(manifest["files"], "files", ("counts.parquet", *files))
    for name, facts in manifest["files"].items():
        _need(facts, f"files.{name}", ("rows", "sha256"))
    privacy = manifest["privacy"]
    _need(
        privacy, "privacy", (*_PRIVACY, "epsilon" if privacy.get("definition") == "pure" else "rho")
    )
    rest = {name: value for name, value in manifest.items() if name not in ("privacy", mechanism)}
    return {**rest, "mechanism": manifest[mechanism], "privacy": _privacy(kind, manifest)}


def _privacy(kind: str, manifest: Manifest) -> dict[str, Any]:
    old = manifest["privacy"]
    symbol = budget_of(old).symbol
    more: dict[str, Any] = {"composition": old["composition"]}
    match kind:
        case "group-sizes":
            _check_group_sizes(manifest)
            _need(old, "privacy", ("levels", "side_queries"))
            more |= {
                name: [_query(one, name, symbol) for one in old[name]]
                for name in ("levels", "side_queries")
            }
            more |= {"ledger": old["ledger"]} if "ledger" in old else {}
        case "histogram" | "grid-histogram":
            _check_histogram(manifest)
            _need(old, "privacy", ("levels",))
            more |= {"levels": [_query(one, "levels", symbol) for one in old["levels"]]}
        case "degrees":
            more |= _query(
                {symbol: old[symbol], **_some(old, "sensitivity", "noise", "scale", "variance")},
                "",
                symbol,
            )
            del more[symbol]
        case _:
            _need(manifest["published"], "published", ("nonnegative", "integers", "sparse"))
            _need(old, "privacy", ("steps",))
            _need(old["composition"], "privacy.composition", ("composition", "meaning"))
            for step in old["steps"]:
                _need(step, "privacy.steps", ("query", "boxes", "share", symbol))
                _need(
                    step,
                    "privacy.steps",
                    ("mechanism", "rate") if "rate" in step or "mechanism" in step else ("noise",),
                )
            more |= {"steps": old["steps"]}
    guarantee = Guarantee(
        budget_of(old), _unit(old), _fixed(kind, manifest), old["private"] is True, _adds(manifest)
    )
    return guarantee_to_json(guarantee) | _in_words(more, str(old["unit"]), guarantee.unit.words)


def _in_words(facts: Any, old: str, new: str) -> Any:
    """The same facts, with records that name the unit in the words of today."""
    if isinstance(facts, list):
        return [_in_words(fact, old, new) for fact in facts]
    if not isinstance(facts, dict):
        return facts
    return {
        name: new if name == "unit" and fact == old else _in_words(fact, old, new)
        for name, fact in facts.items()
    }


def _check_group_sizes(manifest: Manifest) -> None:
    _need(manifest["totals"], "totals", ("kept", "source"))
    _need(
        manifest["request"],
        "request",
        ("mechanism", (manifest["privacy"]["definition"] == "pure" and "epsilon") or "rho"),
    )
    for level in manifest["levels"]:
        _need(level, "levels", ("name", "regions"))
    if "intervals" in manifest:
        _need(manifest["intervals"], "intervals", ("confidence",))
    if manifest["mechanism"]["name"] == "adaptive":
        _need(manifest["mechanism"], "mechanism", ("split",))
    if "ledger" in manifest["privacy"]:
        receipt = ("dataset", "position", "key", "definition", "amount", "charge", "hash")
        _need(manifest["privacy"]["ledger"], "privacy.ledger", receipt)


def _check_histogram(manifest: Manifest) -> None:
    _need(manifest["published"], "published", ("nonnegative", "integers"))
    strategy = manifest["strategy"]
    more = {"tree": ("widths",), "matrix": ("rows",)}.get(strategy["kind"], ())
    _need(strategy, "strategy", more)
    if strategy["kind"] == "matrix":
        _need(manifest["files"], "files", ("strategy.parquet",))


def _query(old: Mapping[str, Any], where: str, symbol: str) -> dict[str, Any]:
    """A measured query with its noise as it is spelled now; a level on which nothing was measured
    has none.
    """
    where = f"privacy.{where}".rstrip(".")
    known = {"privacy.levels": ("level", "share"), "privacy.side_queries": ("query",)}.get(
        where, ()
    )
    _need(old, where, (*known, symbol))
    if where == "privacy.levels" and "query" not in old:
        _need(old, where, ("name", "view"))
    if old.get("query") == "group totals":
        _need(old, where, ("level",))
    facts = dict(old)
    if old.get("share") != "0":
        _need(old, where, ("sensitivity", "noise"))
        _need(old["sensitivity"], f"{where}.sensitivity", ("l1", "l2_squared"))
        if "query" not in old or where == "privacy.side_queries":
            _need(old, where, () if where == "privacy" else ("composition",))
        facts["noise"] = _NOISE.get(old["noise"], old["noise"])
        _need(old, where, ("scale",) if facts["noise"] == "discrete-laplace" else ("variance",))
        if "variance" in facts:
            facts["sigma2"] = facts.pop("variance")
    return facts


def _unit(old: Mapping[str, Any]) -> Unit:
    """The unit from its words: "one person", "all rows of one driver (of which …)", "all rows of
    one person, at most 3".
    """
    words, column, contributions = (
        str(old["unit"]),
        str(old["unit_column"] or ""),
        old["contributions"],
    )
    if words.startswith("one "):
        return Unit(words.removeprefix("one "), "", contributions)
    bounded = "(of which at most" in words
    return Unit("row" if bounded else column or ENTITY, column if bounded else "", contributions)


def _fixed(kind: str, manifest: Manifest) -> tuple[str, ...]:
    if kind == "group-sizes":
        from tallytree.group_sizes.manifest import fixed_facts  # other kinds need none of it

        return fixed_facts(groups_public=manifest["totals"]["source"] == "public")
    return ("how many groups there are",) if kind == "degrees" else ()


def _adds(manifest: Manifest) -> str:
    most = manifest["public"].get("max_quantity", 1)
    if manifest["kind"] != "group-sizes" or most == 1:
        return ""
    return f"one row adding at most {most} to the size of its group"


def _some(facts: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: facts[name] for name in names if name in facts}


def _need(facts: object, where: str, names: tuple[str, ...]) -> None:
    """Refuse a part of a manifest that lacks a key."""
    if not isinstance(facts, Mapping):
        raise VerificationError(
            f"{MANIFEST}: {where or 'it'} is not a table of facts.", (MANIFEST,)
        )
    for name in names:
        if name not in facts:
            raise VerificationError(
                f"{MANIFEST} lacks {f'{where}.{name}' if where else name}.", (MANIFEST,)
            )

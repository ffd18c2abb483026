"""What the pages of all kinds say, as JSON-ready facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallytree.options.asking import PageOptions
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.guarantee import budget_of
from tallytree.releases.notes import notes_of
from tallytree.releases.report.words import (
    check_in_words,
    citation,
    in_full,
    note_sentences,
    protection,
    reading,
    units,
)
from tallytree.strategies.density import Density

BUDGET_NOTE = "Boxes of one step do not overlap; every cell pays for the steps that asked about it, the whole budget at most."
USE = (
    "Every number contains noise, so small differences mean nothing.",
    "Numbers of larger regions are relatively more exact; prefer them where you can.",
    "Parts add up to the whole, so no number needs adjusting before it is added to another.",
    "Do not try to find single people: the noise hides whether any one of them is in the data.",
)


def named(
    look: PageOptions,
    manifest: dict[str, Any],
    title: str,
    drawn: str,
    *,
    whiskers: bool = False,
    adds_up: bool = True,
) -> dict[str, Any]:
    """What a page is called, how to read it and how to cite it: as it was told, else in words of
    its own.

    ``drawn`` says what its first picture shows.
    """
    called = look.title or title
    return {
        "title": called,
        "read": reading(drawn, units(manifest), whiskers=whiskers, adds_up=adds_up),
        "notes": list(look.notes),
        "source": f"Source: {look.source_note}" if look.source_note else "",
        "citation": citation(called, look.source_note, manifest),
    }


def common_facts(
    manifest: dict[str, Any],
    checks: Any,
    *,
    watermark: str = "",
    called: Mapping[str, tuple[str, str]] | None = None,
    groups: str = "groups",
) -> dict[str, Any]:
    """What every page says: what is protected, warnings, checks, what is public and how it was
    made.

    ``called`` and ``groups`` say what levels and groups are called.
    """
    privacy = manifest["privacy"]
    if not privacy["private"]:
        watermark = (
            watermark or "NOT PRIVATE: made with an insecure seed, for tests and experiments only."
        )
    versions = ", ".join(f"{name} {version}" for name, version in manifest["versions"].items())
    notes = notes_of(manifest)
    return {
        "protection": protection(privacy) if privacy["private"] else "",
        "statement": in_full(privacy) if privacy["private"] else [],
        "watermark": watermark,
        "checks": [
            {
                "name": check_in_words(check.name, called or {}, groups),
                "passed": check.passed,
                "detail": check.detail,
            }
            for check in checks
        ],
        "public": note_sentences(notes.public, groups),
        "confidential": note_sentences(notes.confidential, groups),
        "counting": note_sentences(notes.counting, groups),
        "made": f"Mechanism: {manifest['mechanism']['name']}. Made with {versions}.",
    }


def too_fine(density: Density | None) -> list[str]:
    """A sentence where a flat release has bins that are far too fine."""
    return [str(density)] if density is not None and density.far_too_fine else []


def steps_paid(manifest: dict[str, Any]) -> dict[str, Any]:
    """Share of the privacy loss per step, as a bar each; a cell pays for the steps that asked about
    it.
    """
    loss = budget_of(manifest["privacy"]).symbol
    bars = [
        {
            "name": step["query"],
            "share": float(written_fraction(step["share"])),
            "detail": f"{loss} = {float(written_fraction(step[loss])):.4g}, {step['boxes']:,} "
            "boxes, "
            f"{step.get('noise') or step.get('mechanism')}",
        }
        for step in manifest["privacy"]["steps"]
    ]
    return {"budget": bars, "budgetNote": BUDGET_NOTE}


def levels_paid(
    manifest: dict[str, Any], called: Mapping[str, tuple[str, str]] | None = None
) -> list[dict[str, Any]]:
    """Share of the privacy loss per level and side query, as a bar each; ``called`` says what
    levels are called.
    """
    privacy = manifest["privacy"]
    budget = budget_of(privacy)
    loss, total = budget.symbol, budget.total
    parts = [
        (level.get("name", f"tree level {level['level']}"), level) for level in privacy["levels"]
    ]
    parts += [(f"people, {table['name']}", table) for table in privacy.get("people", [])]
    parts += [
        (f"{query['query']} {query.get('level', '')}".strip(), query)
        for query in privacy.get("side_queries", [])
    ]
    return [
        {
            "name": called[name][1] if called and name in called else name,
            "share": float(written_fraction(part[loss]) / total),
            "detail": f"{loss} = {part[loss]}, {part.get('noise', 'nothing measured')}",
        }
        for name, part in parts
    ]


def interleave(keys: Any, values: Any) -> list[float]:
    """Keys and values in turns, as pages have pairs."""
    return np.stack([keys, values], axis=1).ravel().tolist()

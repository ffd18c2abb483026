"""What the page of a degree sequence shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.degree_sequences.release import DegreeSequence
from tallytree.options.asking import PageOptions
from tallytree.releases.report.facts import USE, common_facts, interleave, named
from tallytree.releases.report.html import page, plain_look, without_evaluation
from tallytree.releases.report.words import group_names


def degrees_payload(sequence: DegreeSequence, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a degree sequence: one region, degrees as sizes."""
    look = look or PageOptions()
    _, nodes = group_names(look.group_name or "node/nodes")
    drawn = (
        f"A bar shows how many {nodes} have that degree, which is how many connections they have."
    )
    return {
        **common_facts(sequence.manifest, sequence.verify().checks),
        **named(look, sequence.manifest, "Degree sequence", drawn, adds_up=False),
        "lead": f"How many of {len(sequence.degrees):,} {nodes} have each degree, without saying "
        "which is which.",
        "words": {
            "groups": nodes,
            "total": "sum of degrees",
            "size": "degree",
            "largest": "Largest degrees",
        },
        "regions": {
            "labels": ["all"],
            "parent": [-1],
            "runs": [interleave(*np.unique(sequence.degrees, return_counts=True))],
        },
        "budget": [],
        "use": [USE[0], USE[3]],
    }


def degrees_page(
    sequence: DegreeSequence, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a degree sequence."""
    return page(
        degrees_payload(
            without_evaluation(evaluation, sequence), plain_look(look, "level_names", "shapes")
        )
    )

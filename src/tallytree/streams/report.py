"""What the page of a stream shows, as JSON-ready facts, from a release alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallytree.options.asking import PageOptions
from tallytree.releases.report.facts import USE, common_facts, interleave, levels_paid, named
from tallytree.releases.report.html import page, plain_look, without_evaluation
from tallytree.releases.report.words import plural
from tallytree.streams.release import StreamRelease


def stream_payload(release: StreamRelease, look: PageOptions | None = None) -> dict[str, Any]:
    """The page of a stream: one region, steps as bins, with the counts so far."""
    look = look or PageOptions()
    answers, total, entities = release.step_answers(), release.total(), plural(release.manifest)
    labels = [str(release.steps.name(step)) for step in range(release.n_steps)]
    ends = zip(answers.low.tolist(), answers.high.tolist())
    drawn = f"A bar shows how many {entities} had come by the end of that step, from the start on."
    return {
        **common_facts(release.manifest, release.verify().checks),
        **named(
            look,
            release.manifest,
            f"Stream of {release.n_steps:,} steps",
            drawn,
            whiskers=True,
            adds_up=False,
        ),
        "lead": f"How many {entities} came so far, after each of {release.n_steps:,} steps from "
        f"{labels[0]} to {labels[-1]}.",
        "words": {
            "groups": f"{entities} so far",
            "size": "step",
            "largest": "",
            "bin": labels,
            "edges": None,
            "axis": "step",
        },
        "facts": [
            [f"{entities} so far", f"{total.estimate:,.6g}"],
            ["standard error of that", f"{total.std_error:,.3g}"],
            ["steps", f"{release.n_steps:,}"],
        ],
        "regions": {
            "labels": ["all"],
            "parent": [-1],
            "runs": [
                interleave(np.flatnonzero(release.counts), release.counts[release.counts != 0])
            ],
            "bounds": [[[step, low, high] for step, (low, high) in enumerate(ends)]],
        },
        "budget": levels_paid(release.manifest),
        "use": [
            *USE[:1],
            "Counts may fall a little from one step to the next: each has noise of its own.",
        ],
    }


def stream_page(
    release: StreamRelease, evaluation: object = None, look: PageOptions | None = None
) -> str:
    """The page of a stream: its steps, one after the other."""
    return page(
        stream_payload(
            without_evaluation(evaluation, release),
            plain_look(look, "group_name", "level_names", "shapes"),
        )
    )

"""Looking at a release before it is paid for: regions, what is public, what is doubtful, and a
trial on assumed data.

Nothing confidential is read but what is declared public, nothing is written, nothing is paid.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tallytree.group_sizes.accuracy import Prediction, predict
from tallytree.group_sizes.doubts import reversed_levels, single_groups
from tallytree.group_sizes.plan.costs import Cost, predicted_cost
from tallytree.group_sizes.plan.plan import plan_release
from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
from tallytree.ingest.outside import Outside, read_outside
from tallytree.ingest.read import classes_of
from tallytree.ingest.regions import alike_labels
from tallytree.model.confidential import in_classes
from tallytree.model.unit import Unit
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.reading import ReadOptions
from tallytree.privacy.guarantee import weak_promise
from tallytree.releases.progress import Progress, silent

# Where numbers of groups are not public, so many are assumed in each leaf; the size of errors
# hardly depends on it.
ASSUMED_GROUPS = 1000
# A trial takes as long as the release without reading and writing, several times.
MOST_TRIAL_SECONDS = 60.0
# Who pays, and with which seed, is no part of a trial.
NOT_SIMULATED = ("ledger", "dataset", "idempotency_key", "part", "insecure_seed")


@dataclass(frozen=True, eq=False)
class Preview:
    """What is known about a release beforehand.

    Attributes
    ----------
    outside
        Regions, public numbers of groups, what a row is.
    doubts
        What would better be looked at before paying, one sentence each.
    assumptions
        What the prediction assumes, one sentence each.
    cost
        CPU time, memory and disk of the release, predicted from public facts.
    prediction
        Expected errors per level, from a trial on the assumed data; None where it would take too
        long.
    seconds
        CPU time that measuring and estimating took in the trial; reading the sizes comes on top.
    peak_bytes
        The most memory that this process took.
    """

    outside: Outside
    doubts: tuple[str, ...]
    assumptions: tuple[str, ...]
    cost: Cost
    prediction: Prediction | None
    seconds: float
    peak_bytes: int

    def to_json(self) -> dict[str, Any]:
        """JSON-ready facts."""
        tree, public = self.outside.hierarchy, self.outside.public
        return {
            "levels": [
                {"name": name, "regions": tree.level_size(level)}
                for level, name in enumerate(tree.level_names)
            ],
            "public": {"hierarchy": public.regions_note, "group_totals": public.groups_note},
            "doubts": list(self.doubts),
            "assumptions": list(self.assumptions),
            "cost": asdict(self.cost),
            "prediction": None if self.prediction is None else self.prediction.to_json(),
            "seconds": self.seconds,
            "peak_bytes": self.peak_bytes,
        }


def preview(
    source: Any,
    data: ReadOptions,
    how: ReleaseOptions,
    *,
    shape: str,
    runs: int = 3,
    progress: Progress = silent,
) -> Preview:
    """Look at a release before it is paid for."""
    outside, classes = read_outside(source, data), classes_of(data)
    tree = outside.hierarchy
    totals = outside.n_groups
    assumptions = [f"Sizes are like {shape} (--shape); with other sizes, errors differ."]
    own, attributes = outside.shape, outside.attributes
    if totals is None:
        totals = np.full(
            tree.n_leaves * attributes.n_cells, -(-ASSUMED_GROUPS // attributes.n_cells)
        )
        assumptions.append(
            f"Each {tree.level_names[-1]} has {ASSUMED_GROUPS:,} groups: their numbers are not "
            "public."
        )
    if attributes:
        assumptions.append(f"Sizes do not depend on {', '.join(attributes.names)}.")
    if own.people:
        assumptions.append(
            f"As many entities have each value of {', '.join(own.people.classes.names)}."
        )
    largest = own.contributions if own.whole_groups and own.people else None
    assumed = assumed_counts(
        tree,
        totals,
        named_shape(shape),
        attributes=attributes,
        people=own.people.checked(attributes),
        largest=largest,
    )
    assumed = assumed if classes is None else in_classes(assumed, classes)
    unit = Unit(
        data.entity or "row",
        own.unit or "",
        own.contributions,
        group="group" if own.whole_groups else "",
    )
    assumed = assumed.with_public(
        groups_public=outside.public.groups_public,
        max_quantity=own.max_quantity,
        unit=unit,
    )
    facts = assumed.public
    cost = predicted_cost(plan_release(how, facts), facts, tree.sum_from_leaves(assumed.n_groups))
    started, prediction = time.process_time(), None
    if cost.cpu_seconds <= MOST_TRIAL_SECONDS:
        options = {
            name: value
            for name, value in how.given().items()
            if name not in (*NOT_SIMULATED, "epsilon")
        }
        progress(0, runs, "trying the release on assumed data")
        prediction = predict(assumed, name="as asked", runs=runs, epsilon=how.epsilon, **options)
    seconds = (time.process_time() - started) / runs
    weak = weak_promise(how.loss())
    doubts = (*doubts_about(outside), *([weak] if weak else []))
    return Preview(outside, doubts, tuple(assumptions), cost, prediction, seconds, _peak_bytes())


def doubts_about(outside: Outside) -> tuple[str, ...]:
    """What public facts alone make doubtful about a request."""
    tree = outside.hierarchy
    found = [
        *outside.doubts,
        *reversed_levels(tree),
        *alike_labels(tree, outside.attributes),
    ]
    for level in range(2, tree.n_levels):
        labels = Counter(tree.labels[tree.level_slice(level)].tolist())
        twice = [label for label, times in labels.items() if times > 1]
        if twice and len(twice) < len(labels) / 10:
            found.append(
                f"{len(twice):,} of {len(labels):,} labels of {tree.level_names[level]} occur "
                "under several regions above, "
                f"such as {twice[0]!r}; they count as different regions."
            )
    return (*found, *single_groups(tree, outside.leaf_groups))


def _peak_bytes() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak

"""How accurate will a map be? Answered before any budget is spent, by releasing assumed points
again and again.

The assumed points are public: those of an earlier map, spread at random inside its boxes. Real
points cluster inside boxes too, so what a prediction says of boxes smaller than those of the
earlier map is on the low side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tallytree.boxes.publish import release_map
from tallytree.boxes.release import SpatialRelease
from tallytree.errors import RequestError
from tallytree.maps.assumed import points_like
from tallytree.maps.evaluate import evaluate_map
from tallytree.model.confidential_grid import ConfidentialGrid
from tallytree.model.notebook import html_table, plain
from tallytree.options.choices import MapMethod
from tallytree.options.maps import MethodOptions
from tallytree.privacy.budget import Exact, noise_for, stated_budget
from tallytree.privacy.sensitivity import histogram_sensitivity
from tallytree.releases.metrics import HEAD, QueryErrors
from tallytree.releases.progress import Progress, silent
from tallytree.releases.query_evaluation import error_rows
from tallytree.strategies.density import Density

METHODS: tuple[MapMethod, ...] = ("auto", "adaptive-grid", "uniform-grid", "quad-opt", "flat")
LINE_METHODS: tuple[MapMethod, ...] = (
    "noisy-merge",
    "structure-merge",
    "noisy-first",
    "structure-first",
)


@dataclass(frozen=True)
class MapPrediction:
    """Expected errors of a map by the size of boxes: means over simulated releases of assumed
    points.
    """

    name: str
    epsilon: str
    classes: tuple[QueryErrors, ...]

    def to_json(self) -> dict[str, Any]:
        """The prediction as JSON-ready facts."""
        return {
            "name": self.name,
            "epsilon": self.epsilon,
            "classes": [asdict(one) for one in self.classes],
        }

    def __repr__(self) -> str:
        errors = ", ".join(f"{one.name}: {plain(one.mean_error)}" for one in self.classes)
        return f"MapPrediction({self.name}, epsilon = {self.epsilon}, mean error of {errors})"

    def _repr_html_(self) -> str:
        caption = f"Predicted errors of boxes: {self.name}, ε = {self.epsilon}"
        return html_table(
            caption, list(HEAD), error_rows(self.classes), note="No confidential data were read."
        )


def plan_map(
    like: SpatialRelease,
    *,
    epsilon: Exact | None = None,
    target: str | None = None,
    runs: int = 5,
    **options: Any,
) -> MapPrediction:
    """Expected errors of a map like this one; see :func:`tallytree.plan`."""
    if epsilon is None or target is not None:
        raise RequestError("Errors of a map are predicted at a given epsilon; it takes no target.")
    return predict_map(points_like(like), epsilon=epsilon, runs=runs, **options)


def predict_map(
    assumed: ConfidentialGrid, *, epsilon: Exact, mechanism: MapMethod = "auto", runs: int = 5
) -> MapPrediction:
    """Expected errors of one method, as means over simulated maps of the assumed points."""
    budget, options = stated_budget(epsilon, None, "pure"), MethodOptions(mechanism=mechanism)
    simulated = [
        evaluate_map(release_map(assumed, budget, options, insecure_seed=seed), assumed).classes
        for seed in range(runs)
    ]
    return MapPrediction(mechanism, str(epsilon), tuple(_mean(same) for same in zip(*simulated)))


def flat_density(assumed: ConfidentialGrid, epsilon: Exact) -> Density:
    """The slides' rule for the assumed points: whether the cells of the fine grid may be measured
    one by one.
    """
    sensitivity = histogram_sensitivity(contributions=assumed.public.unit.contributions)
    variance = noise_for(stated_budget(epsilon, None, "pure"), sensitivity).variance
    return Density.of(float(assumed.counts.sum()), assumed.counts.size, variance)


def compare_maps(
    assumed: ConfidentialGrid,
    methods: Sequence[MapMethod],
    *,
    epsilon: Exact,
    runs: int = 5,
    progress: Progress = silent,
) -> list[MapPrediction]:
    """Predictions for several methods."""
    found = []
    for done, method in enumerate(methods):
        progress(done, len(methods), f"simulating {method}")
        found.append(predict_map(assumed, epsilon=epsilon, mechanism=method, runs=runs))
    return found


def _mean(same: Sequence[QueryErrors]) -> QueryErrors:
    facts = [asdict(one) for one in same]
    means = {
        key: float(np.mean([one[key] for one in facts]))
        for key in facts[0]
        if key not in ("name", "queries")
    }
    return QueryErrors(name=same[0].name, queries=same[0].queries, **means)

"""How accurate will a release be? Answered before any budget is spent, by running the real code on
assumed data.

The assumed data are public: an earlier release, or made up from group totals and an assumed shape
of sizes. Nothing here reads confidential values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.evaluate import (
    Evaluation,
    LevelErrors,
    emd_per_level,
    errors_html,
    evaluate,
)
from tallytree.group_sizes.manifest import facts_of
from tallytree.group_sizes.plan.costs import Cost, predicted_cost
from tallytree.group_sizes.plan.plan import plan_release
from tallytree.group_sizes.publish import release
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.targets import METRIC_NAMES, METRICS, CountTarget, Target, parse_target
from tallytree.group_sizes.trade_off import trade_off_svg
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import AssumedCounts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.people import NO_PEOPLE, People, dealt
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.releases.progress import Progress, silent

# A trade-off is drawn at these multiples of ε.
_MULTIPLES = tuple(Fraction(2) ** power for power in range(-3, 4))
# Bisection on the logarithm of ε: ends when the bracket is within 2 %.
_LEAST_EPSILON, _MOST_EPSILON, _BRACKET, _NEAR = 1e-3, 1e3, 1.02, 4.0


@dataclass(frozen=True)
class Spread:
    """How the error of single regions spreads around its mean, over the regions of a level and all
    simulated releases.

    Attributes
    ----------
    name
        The level.
    half, most, largest
        Earth mover's distance that half of the regions, nine in ten, and all of them stay at or
        below.
    """

    name: str
    half: float
    most: float
    largest: float


@dataclass(frozen=True)
class Prediction:
    """Expected errors per level of a release with some options.

    Attributes
    ----------
    name, epsilon
        What was simulated.
    levels
        Means over regions and simulated releases.
    spread
        How single regions spread around these means, one per level.
    share
        Where a target asked for counts near the true ones: the share of regions that have one.
    cost
        CPU time, memory and disk of one release.
    """

    name: str
    epsilon: str
    levels: tuple[LevelErrors, ...]
    spread: tuple[Spread, ...] = ()
    share: float | None = None
    cost: Cost | None = None

    def meets(self, target: Target | CountTarget) -> bool:
        """Whether the prediction meets a target, for which it was made."""
        if isinstance(target, CountTarget):
            return self.share is not None and self.share >= target.regions
        level = next(level for level in self.levels if level.name == target.level)
        return bool(getattr(level, target.metric) <= target.bound)

    def to_json(self) -> dict[str, Any]:
        """The prediction as JSON-ready facts."""
        more: dict[str, Any] = {} if self.share is None else {"share_of_regions": self.share}
        if self.cost is not None:
            more["cost"] = asdict(self.cost)
        levels, spread = ([asdict(one) for one in each] for each in (self.levels, self.spread))
        return {
            "name": self.name,
            "epsilon": self.epsilon,
            "levels": levels,
            "spread": spread,
            **more,
        }

    def __repr__(self) -> str:
        return f"Prediction({self.name}, epsilon = {self.epsilon}, {emd_per_level(self.levels)})"

    def _repr_html_(self) -> str:
        caption = f"Predicted mean error per region: {self.name}, ε = {self.epsilon}"
        return errors_html(caption, self.levels, note="No confidential data were read.")


@dataclass(frozen=True)
class TradeOff:
    """Predictions over a range of ε for one or more ways to release: what privacy costs in
    accuracy.
    """

    predictions: tuple[Prediction, ...]

    def svg(self, metric: str = "emd") -> str:
        """A picture: error against ε, one panel per level."""
        if metric not in METRICS:
            raise RequestError(
                f"The metric {metric!r} is not known. Choose one of: {', '.join(METRICS)}."
            )
        panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for prediction in self.predictions:
            for level in prediction.levels:
                points = panels.setdefault(level.name, {}).setdefault(prediction.name, [])
                points.append((float(Fraction(prediction.epsilon)), getattr(level, metric)))
        title = "Predicted mean error per region against ε (no confidential data were read)"
        return trade_off_svg(panels, title=title, error=METRIC_NAMES[metric])

    def to_json(self) -> dict[str, Any]:
        """All predictions as JSON-ready facts."""
        return {"predictions": [prediction.to_json() for prediction in self.predictions]}

    def __repr__(self) -> str:
        names = list(dict.fromkeys(prediction.name for prediction in self.predictions))
        epsilons = sorted({Fraction(prediction.epsilon) for prediction in self.predictions})
        return f"TradeOff({', '.join(names)}; epsilon from {float(epsilons[0]):g} to {float(epsilons[-1]):g})"

    def _repr_html_(self) -> str:
        return self.svg()


def plan_group_sizes(
    like: Release | AssumedCounts,
    *,
    epsilon: Any = None,
    target: str | None = None,
    runs: int = 5,
    **options: Any,
) -> Prediction:
    """Expected errors of a release like this one, or the smallest ε that meets a target; see
    :func:`tallytree.plan`.
    """
    if (epsilon is None) == (target is None):
        raise RequestError(
            "Say either epsilon, to predict errors, or target, to find the smallest epsilon."
        )
    assumed = data_like(like) if isinstance(like, Release) else like
    if target is None:
        return predict(assumed, epsilon=epsilon, runs=runs, **options)
    return smallest_epsilon(assumed, parse_target(target), runs=runs, **options)[1]


def data_like(earlier: Release) -> AssumedCounts:
    """An earlier release taken as the assumed data: the same regions, totals and sizes, and as much
    noise.

    What scales the noise comes from its manifest: what is protected, how much an entity may add to
    a size, and whether numbers of groups are public.
    """
    tree, manifest = earlier.hierarchy, earlier.manifest
    leaf_counts = earlier.counts.regions(tree.level_slice(tree.n_levels - 1))
    lattice, margins = earlier.lattice, earlier.margins
    people, entity_counts = _people_like(earlier)
    facts = facts_of(manifest, tree)
    return AssumedCounts(
        replace(
            facts, people=people, group="group", groups_note="an earlier release, for planning"
        ),
        leaf_counts,
        leaf_counts.n_groups(),
        cell_counts=None
        if margins is None
        else margins.at(lattice.rows_in_margins(lattice.finest)),
        entity_counts=entity_counts,
    )


def _people_like(earlier: Release) -> tuple[People, IntArray | None]:
    """Classes of entities, and entities of each class per leaf and combination of values; none
    where none are counted.

    Within the cells that people were not counted by, classes are dealt in order: nothing measured
    depends on it.
    """
    if earlier.people is None:
        return NO_PEOPLE, None
    lattice, people = earlier.lattice, earlier.people.people
    slots = (
        earlier.counts
        if earlier.margins is None
        else earlier.margins.at(lattice.rows_in_margins(lattice.finest))
    )
    cells = (
        slots
        if earlier.margins is not None
        else slots.regions(lattice.hierarchy.level_slice(lattice.finest.level))
    )
    row_of = lattice.rows_of_cells(people.family(lattice))
    return people, dealt(cells.n_entities(), earlier.people.cells, row_of)


def protecting_groups(assumed: AssumedCounts, *, least_size: int = 0) -> AssumedCounts:
    """The same assumed data, of which whole groups are to be protected."""
    public = assumed.public
    unit = replace(public.unit, column="", contributions=1, group=public.group)
    return assumed.with_public(groups_public=False, unit=unit, least_size=least_size)


def predict(
    assumed: AssumedCounts,
    *,
    name: str = "",
    runs: int = 5,
    target: Target | CountTarget | None = None,
    epsilon: Any,
    **options: Any,
) -> Prediction:
    """Expected errors per level, as the mean over simulated releases of the assumed data.

    Parameters
    ----------
    assumed
        Public data that stand in for the confidential ones; see :func:`data_like` and
        :func:`tallytree.group_sizes.plan.shapes.assumed_counts`.
    runs
        Number of simulated releases.
    target
        Of counts that are to be near the true ones: in which share of the regions they are is
        predicted too.
    epsilon, options
        As for :func:`tallytree.release`.
    """
    simulated, shares = [], []
    for seed in range(runs):
        made = release(assumed, epsilon=epsilon, insecure_seed=seed, **options)
        simulated.append(evaluate(made, assumed))
        if isinstance(target, CountTarget):
            shares.append(target.share(made, assumed))
    levels = tuple(
        _mean(list(same_level)) for same_level in zip(*(one.levels for one in simulated))
    )
    named = name or ", ".join(f"{key} {value}" for key, value in options.items()) or "default"
    share = float(np.mean(shares)) if shares else None
    facts = assumed.public
    plan = plan_release(ReleaseOptions(epsilon=epsilon, **options), facts)
    cost = predicted_cost(plan, facts, assumed.hierarchy.sum_from_leaves(assumed.n_groups))
    return Prediction(
        named, str(epsilon), levels, _spread(assumed.hierarchy, simulated), share, cost
    )


def _spread(hierarchy: Hierarchy, simulated: Sequence[Evaluation]) -> tuple[Spread, ...]:
    emd = np.stack([one.emd for one in simulated if one.emd is not None])
    found = []
    for level, name in enumerate(hierarchy.level_names):
        here = emd[:, hierarchy.level_slice(level)]
        half, most, largest = np.quantile(here, [0.5, 0.9, 1.0], method="higher").tolist()
        found.append(Spread(name, half, most, largest))
    return tuple(found)


def _mean(errors: Sequence[LevelErrors]) -> LevelErrors:
    first = errors[0]
    means = {
        key: float(np.mean([getattr(error, key) for error in errors]))
        for key in ("emd", "l1", "l2", "count_error", "distinct_sizes", "l1_total", "omniscient")
    }
    return LevelErrors(**{**vars(first), **means})


def compare(
    assumed: AssumedCounts,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    epsilon: Any,
    runs: int = 5,
    progress: Progress = silent,
) -> list[Prediction]:
    """Predictions for several ways to release the same data, each named and given as options."""
    predictions = []
    for done, (name, options) in enumerate(variants.items()):
        progress(done, len(variants), f"simulating {name}")
        predictions.append(predict(assumed, name=name, runs=runs, epsilon=epsilon, **options))
    return predictions


def trade_off(
    assumed: AssumedCounts,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    around: Any,
    runs: int = 5,
    progress: Progress = silent,
) -> TradeOff:
    """Predictions for several ways to release at an eighth to eight times an ε: error against
    privacy.
    """
    middle = Fraction(str(around))
    wanted = [
        (name, options, middle * multiple)
        for name, options in variants.items()
        for multiple in _MULTIPLES
    ]
    predictions = []
    for done, (name, options, epsilon) in enumerate(wanted):
        progress(done, len(wanted), f"simulating {name} at ε = {float(epsilon):.3g}")
        predictions.append(predict(assumed, name=name, runs=runs, epsilon=epsilon, **options))
    return TradeOff(tuple(predictions))


def smallest_epsilon(
    assumed: AssumedCounts,
    target: Target | CountTarget,
    *,
    runs: int = 5,
    progress: Progress = silent,
    **options: Any,
) -> tuple[Fraction, Prediction]:
    """The smallest ε, to about 2 %, at which the predicted error meets a target; by bisection over
    simulations.

    Near the answer four times as many releases are simulated: there, the noise of the prediction
    decides.
    """
    names = assumed.hierarchy.level_names
    if target.level not in names:
        raise RequestError(f"There is no level {target.level!r}. Levels: {', '.join(names)}.")

    def at(epsilon: float, width: float) -> tuple[Fraction, Prediction]:
        exact = Fraction(f"{epsilon:.3g}")
        return exact, predict(
            assumed,
            runs=runs if width > _NEAR else 4 * runs,
            target=target,
            epsilon=exact,
            **options,
        )

    low, high = _LEAST_EPSILON, _MOST_EPSILON
    best = at(high, high / low)
    if not best[1].meets(target):
        raise RequestError(f"Even ε = {_MOST_EPSILON:g} does not bring {target}.")
    steps = math.ceil(math.log2(math.log(high / low) / math.log(_BRACKET)))
    for step in range(steps):
        middle = math.sqrt(low * high)
        progress(step, steps, f"simulating ε = {middle:.3g}")
        found = at(middle, high / low)
        if found[1].meets(target):
            high, best = middle, found
        else:
            low = middle
    return best

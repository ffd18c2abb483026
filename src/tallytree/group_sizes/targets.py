"""What a release is to achieve, in words that a statistician writes: mean errors, or how many
regions have a good count.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.release.release import Release
from tallytree.group_sizes.release.tables import as_released
from tallytree.model.arrays import FloatArray
from tallytree.model.classes import OPEN, SizeNames, class_span
from tallytree.model.confidential import AssumedCounts
from tallytree.model.count_of_counts import CountsBySize
from tallytree.model.lattice import Family

METRIC_NAMES = {"emd": "EMD", "l1": "L1", "count_error": "error of one count"}
METRICS = tuple(METRIC_NAMES)
_MEAN = re.compile(r"\s*(?P<level>.+?)\s*:\s*(?P<metric>\w+)\s*<=\s*(?P<bound>[0-9.eE+-]+)\s*")
_COUNT = re.compile(
    r"\s*(?P<level>.+?)\s*:\s*count of sizes?\s+(?P<sizes>\d+(?:\s*(?:-|–|to)\s*\d+|\s*\+|\s+or more)?)\s+within\s+"
    r"(?P<within>[0-9.]+)\s*%\s+in\s+(?P<regions>[0-9.]+)\s*%\s+of\s+(?:the\s+)?regions\s*"
)


@dataclass(frozen=True)
class Target:
    """A wish such as ``county: emd<=20``: the mean error of a level is to stay at or below a bound."""

    level: str
    metric: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric} of {self.level} to {self.bound:g}"


@dataclass(frozen=True)
class CountTarget:
    """A wish such as ``county: count of size 5 within 5 % in 90 % of regions``.

    Attributes
    ----------
    level
        Name of the level.
    low, high
        First and last size that is counted.
    within
        How far a released count may be from the true one, as a part of it.
    regions
        Share of the regions that have such groups whose count is to be that near.
    """

    level: str
    low: int
    high: int
    within: float
    regions: float

    def share(self, release: Release, truth: AssumedCounts) -> float:
        """In which part of the regions that have such groups the released count is near enough."""
        level = release.hierarchy.level_names.index(self.level)
        released = release.counts.regions(release.hierarchy.level_slice(level))
        named = release.size_names
        exact = as_released(truth.counts_of(Family(level, ())), named)
        true = _counted(exact, self.low, self.high, named)
        near = np.abs(_counted(released, self.low, self.high, named) - true) <= self.within * true
        return float(near[true > 0].mean()) if np.any(true > 0) else 1.0

    def __str__(self) -> str:
        sizes = (
            f"{self.low}+"
            if self.high == OPEN
            else str(self.low)
            if self.low == self.high
            else f"{self.low}-{self.high}"
        )
        return f"the count of size {sizes} within {self.within:.3g} in {self.regions:.0%} of {self.level}"


def _counted(counts: CountsBySize, low: int, high: int, classes: SizeNames | None) -> FloatArray:
    """Groups of some sizes per region."""
    first, last = (
        (low, high) if classes is None else classes.span(low, None if high == OPEN else high)
    )
    chosen = (counts.size >= first) & (counts.size <= last)
    weights = counts.count[chosen].astype(np.float64)
    return np.bincount(counts.region_of_run()[chosen], weights, counts.n_regions).astype(np.float64)


def parse_target(text: str) -> Target | CountTarget:
    """Read ``LEVEL: METRIC<=NUMBER`` or ``LEVEL: count of size 5 within 5 % in 90 % of regions``.

    Examples
    --------
    >>> parse_target("county: emd<=20")
    Target(level='county', metric='emd', bound=20.0)
    >>> parse_target("county: count of size 5-6 within 5 % in 90 % of regions")
    CountTarget(level='county', low=5, high=6, within=0.05, regions=0.9)
    """
    counted = _COUNT.fullmatch(text)
    if counted is not None:
        sizes = re.sub(r"\s*to\s*", "-", counted["sizes"].replace("or more", "+"))
        low, high = class_span(sizes)
        within, regions = _number(counted["within"]) / 100, _number(counted["regions"]) / 100
        if not (within > 0 and 0 < regions <= 1):
            raise RequestError(
                f"The target {text!r} needs a deviation above 0 and a share of regions up to 100 %."
            )
        return CountTarget(counted["level"], low, high, within, regions)
    match = _MEAN.fullmatch(text)
    if match is None or match["metric"] not in METRICS:
        raise RequestError(
            f"The target {text!r} is not understood. Write LEVEL: METRIC<=NUMBER, METRIC one of "
            f"{METRICS}, or LEVEL: count of "
            "size 5 within 5 % in 90 % of regions (sizes 5-6 and 7+ too)."
        )
    bound = _number(match["bound"])
    if not bound > 0:
        raise RequestError(f"The target {text!r} needs a bound above 0.")
    return Target(match["level"], match["metric"], bound)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan

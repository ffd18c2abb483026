"""What a type checker sees of the public functions: `make lint` reads this file, and nothing runs
it.

Mypy complains where a right call has another type than it says, and where a wrong call passes.
"""

from typing import assert_type

import tallytree as tt
from tallytree.group_sizes.accuracy import Prediction
from tallytree.strategies.answers import Answer


def right_calls_have_their_types() -> None:
    counts = tt.read("people.parquet", group="household", levels=["state", "county"])
    views = tt.release(
        counts, epsilon=1, mechanism="matching", view=["hybrid", "sizes", "sizes"], progress=print
    )
    assert_type(counts, tt.ConfidentialCounts)
    assert_type(views, tt.Release)
    assert_type(tt.release(counts, tt.ReleaseOptions(epsilon="1/3"), progress=print), tt.Release)
    assert_type(tt.read("people.parquet", tt.ReadOptions(group="household")), tt.ConfidentialCounts)
    line = tt.histogram([1, 2], epsilon=1, width=1, bounds=(0, 10), mechanism="wavelet")
    assert_type(line, tt.RangeHistogram)
    assert_type(tt.histogram(counts=[1, 2], rho=0.5, definition="zcdp"), tt.RangeHistogram)
    places = tt.spatial([[1.0, 2.0]], epsilon=1, box=[(0, 1), (0, 1)], mechanism="quadtree")
    assert_type(places, tt.SpatialRelease)
    assert_type(tt.degrees([1, 2], epsilon=1, mechanism="sorted"), tt.DegreeSequence)
    days = tt.stream(
        "visits.parquet",
        column="day",
        until="2025-01-31",
        every="day",
        start="2025-01-01",
        epsilon=1,
    )
    assert_type(days, tt.StreamRelease)
    steps = tt.stream(
        counts=[1, 2],
        horizon=365,
        rho=1,
        definition="zcdp",
        mechanism="square-root",
        out="visits",
    )
    assert_type(steps, tt.StreamRelease)
    assert_type(tt.StreamCounter(365, epsilon=1).add(3), Answer)
    assert_type(tt.plan(views, epsilon=1, mechanism="chain"), Prediction)
    assert_type(tt.__version__, str)


def wrong_calls_fail(counts: tt.ConfidentialCounts, release: tt.Release) -> None:
    # Reading: a misspelt keyword, an internal hook, a wrong type.
    tt.read("people.parquet", grop="household")  # type: ignore[call-overload]
    tt.read("people.parquet", group="household", counter=print)  # type: ignore[call-overload]
    tt.read("people.parquet", group=3)  # type: ignore[call-overload]
    # Group sizes: a misspelt keyword, mechanism, view of one level, definition.
    tt.release(counts, epsilom=1)  # type: ignore[call-overload]
    tt.release(counts, epsilon=1, mechanism="matchng")  # type: ignore[call-overload]
    tt.ReleaseOptions(epsilon=1, mechanism="matchng")  # type: ignore[arg-type]
    tt.release(counts, epsilon=1, view=["hybrid", "hybird"])  # type: ignore[list-item]
    tt.release(counts, rho=1, definition="zCDP")  # type: ignore[call-overload]
    # Options of another kind, options both ways, data of another kind.
    tt.release(counts, tt.HistogramOptions(epsilon=1))  # type: ignore[call-overload]
    tt.release(counts, tt.ReleaseOptions(), epsilon=1)  # type: ignore[call-overload]
    tt.release("people.parquet", epsilon=1)  # type: ignore[call-overload]
    # Histograms and maps.
    tt.histogram([1], epsilon=1, mechanism="wavlet")  # type: ignore[arg-type]
    tt.histogram([1], epsilon=1, nonnegative="clip")  # type: ignore[call-overload]
    tt.spatial([[1.0, 2.0]], epsilon=1, mechanism="quadtre")  # type: ignore[call-overload]
    tt.spatial([[1.0, 2.0]], epsilon=1, outside="ignore")  # type: ignore[call-overload]
    # Degrees, streams, plans.
    tt.degrees([1], epsilon=1, mechanism="sort")  # type: ignore[call-overload]
    tt.stream("visits.parquet", column="day", until=3, every="hour", epsilon=1)  # type: ignore[call-overload]
    tt.StreamCounter(365, epsilom=1)  # type: ignore[call-arg]
    tt.plan(release, epsilon=1, mechanism="matchng")  # type: ignore[call-overload]

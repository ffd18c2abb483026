"""Options check themselves, say what was meant, and can be told as text, TOML or JSON."""

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.options import (
    DegreesOptions,
    HistogramOptions,
    MapOptions,
    Options,
    ReadOptions,
    ReleaseOptions,
    StreamOptions,
)
from tallytree.options.asking import (
    AssumedOptions,
    EvaluateOptions,
    PlanOptions,
    QueryOptions,
    ReportOptions,
)
from tallytree.options.base import fields_of, spelling_of, types_of
from tallytree.options.checks import fits
from tallytree.options.group_sizes import GroupSizesOutput
from tallytree.options.groups import Output
from tallytree.options.maps import MapOutput
from tallytree.options.reading import EngineOptions
from tallytree.options.spelled import spelled, spelled_alone

GROUPS: list[type[Options]] = [
    AssumedOptions, DegreesOptions, EngineOptions, EvaluateOptions, GroupSizesOutput, HistogramOptions,
    MapOptions, MapOutput, Output, PlanOptions, QueryOptions, ReadOptions, ReleaseOptions, ReportOptions,
    StreamOptions,
]  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_has_a_default_that_fits_a_type_and_a_line_of_help(
    group: type[Options],
) -> None:
    made = group()
    assert made.to_json() == {}
    assert {field.name for field in fields_of(group)} == {field.name for field in fields(group)}
    for field in fields(group):
        assert fits(field.default, types_of(group)[field.name]), field.name
        assert spelling_of(field).help.endswith(
            (".", "?", "3/4", "0.6", "41", "120", "512", "x,y", '20".')
        ), field.name
        assert field.name in _documented(group), f"{field.name} is in no docstring"


def _documented(group: type[Options]) -> str:
    return "\n".join(part.__doc__ or "" for part in group.__mro__)


WRONG: list[tuple[type[Options], dict[str, Any], str]] = [
    (
        ReleaseOptions,
        {"mechanism": "matchng"},
        r"mechanism 'matchng' is not known. .* Did you mean 'matching'\?",
    ),
    (ReleaseOptions, {"mechanism": 3}, "Choose one of: adaptive, matching"),
    (
        ReleaseOptions,
        {"view": ("hybrid", "hybird")},
        r"view 'hybird' is not known.* Did you mean 'hybrid'\?",
    ),
    (ReleaseOptions, {"view": 1.5}, "view takes one of naive"),
    (ReleaseOptions, {"norm": 3}, "norm 3 is not known. Choose one of: 1, 2"),
    (ReleaseOptions, {"norm": True}, "norm takes one of 1, 2"),
    (ReleaseOptions, {"budget": "fair"}, "budget 'fair' is not known. Choose one of: auto, equal"),
    (
        ReleaseOptions,
        {"max_size": "large"},
        "max_size 'large' is not known. Choose one of: auto, or a whole number",
    ),
    (ReleaseOptions, {"repair": "yes"}, "repair takes true or false; got 'yes'"),
    (ReleaseOptions, {"insecure_seed": 1.0}, "insecure_seed takes a whole number; got 1.0"),
    (ReleaseOptions, {"insecure_seed": True}, "insecure_seed takes a whole number; got True"),
    (ReleaseOptions, {"dataset": 7}, "dataset takes a text; got 7"),
    (ReleaseOptions, {"ledger": 7}, "ledger takes a text or"),
    (ReleaseOptions, {"definition": "renyi"}, "Choose one of: pure, zcdp"),
    (ReadOptions, {"levels": 3}, "levels takes a text or a list of texts; got 3"),
    (ReadOptions, {"levels": ("state", 3)}, "levels takes a text or a list of texts"),
    (ReadOptions, {"public": "everything"}, "Choose one of: groups, regions"),
    (HistogramOptions, {"mechanism": "wavlet"}, r"Did you mean 'wavelet'\?"),
    (HistogramOptions, {"width": "10"}, "width takes a number; got '10'"),
    (HistogramOptions, {"branching": 1}, "branching is a whole number of at least 2, got 1"),
    (
        HistogramOptions,
        {"contributions": 0},
        "contributions is a whole number of at least 1, got 0",
    ),
    (
        HistogramOptions,
        {"contributions": 1.5},
        "contributions is a whole number of at least 1, got 1.5",
    ),
    (
        HistogramOptions,
        {"contributions": True},
        "contributions is a whole number of at least 1, got True",
    ),
    (HistogramOptions, {"edges": "0,1"}, "edges takes a list of numbers or an array"),
    (MapOptions, {"mechanism": "quadtre"}, r"Did you mean 'quadtree'\?"),
    (MapOptions, {"prune": float("inf")}, "prune is a number of at least 0, got inf"),
    (MapOptions, {"prune": float("nan")}, "prune is a number of at least 0, got nan"),
    (MapOptions, {"alpha": 1, "mechanism": "adaptive-grid"}, "alpha lies between 0 and 1"),
    (MapOptions, {"depth": 3}, "depth goes with quadtree"),
    (
        StreamOptions,
        {"every": "hour"},
        "every 'hour' is not known. Choose one of: day, week, month",
    ),
    (StreamOptions, {"horizon": 0}, "horizon is a whole number of at least 1, got 0"),
    (StreamOptions, {"until": 1.5}, "until takes a whole number or a text or a date"),
    (DegreesOptions, {"directed": True}, "go with edges="),
    (DegreesOptions, {"column": "a", "edges": ("a", "b")}, "not both"),
    (DegreesOptions, {"edges": ("a", "b", "c")}, "two columns"),
    (DegreesOptions, {"table": "t"}, "say what the rows are"),
]


@pytest.mark.parametrize(("group", "given", "message"), WRONG)
def test_wrong_values_are_refused_in_one_sentence(
    group: type[Options], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        group(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 1}, {"epsilon": 0.1}, {"epsilon": "1/3"}, {"epsilon": Fraction(1, 3)}, {"epsilon": np.float32(0.1)},
        {"mechanism": "chain", "view": "chain"}, {"view": ["sizes", "hybrid"]}, {"budget": ["0", 0.5, Fraction(1, 2)]},
        {"max_size": np.int64(5)}, {"max_size": "auto"}, {"norm": 2}, {"repair": np.bool_(True)}, {"time_limit": 3},
    ],
)  # fmt: skip
def test_right_values_are_taken(given: dict[str, Any]) -> None:
    ReleaseOptions(**given)


def test_numpy_numbers_become_plain_ones() -> None:
    made = HistogramOptions(contributions=np.int64(3), integers=np.bool_(False))
    assert type(made.contributions) is int
    assert made.integers is False
    assert made.to_json() == {"contributions": 3, "integers": False}


def test_what_was_asked_for_can_be_asked_for_again() -> None:
    asked = ReleaseOptions(
        epsilon=0.1,
        mechanism="matching",
        view=("sizes", "hybrid"),
        budget=("1/4", Fraction(3, 4)),
        max_size=20,
        norm=1,
        repair=True,
        time_limit=2.5,
        ledger="postgresql://user:password@host/database",
        dataset="census",
        idempotency_key="key",
        part="state=Georgia",
        insecure_seed=3,
    )
    facts = asked.to_json()
    assert facts == {
        "epsilon": "0.1", "mechanism": "matching", "view": ["sizes", "hybrid"], "budget": ["1/4", "3/4"], "max_size": 20,
        "norm": 1, "repair": True, "time_limit": "2.5",
    }  # fmt: skip
    assert ReleaseOptions.told(facts).to_json() == facts
    assert "password" not in repr(asked)


def test_numbers_may_be_told_as_text() -> None:
    assert ReleaseOptions.told({"max_size": "20", "norm": 2}) == ReleaseOptions(max_size=20, norm=2)


def test_equality_looks_at_values_arrays_too() -> None:
    edges = np.array([0.0, 1.0])
    assert HistogramOptions(edges=edges) == HistogramOptions(edges=edges.copy())
    assert HistogramOptions(edges=edges) != HistogramOptions(edges=edges + 1)
    assert ReleaseOptions() != HistogramOptions()
    assert hash(HistogramOptions(edges=edges)) == hash(HistogramOptions(edges=edges.copy()))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Keywords(ReleaseOptions):
    shout: bool = False


@spelled(Keywords)
def ask(
    data: int, options: ReleaseOptions, *, shout: bool = False
) -> tuple[int, ReleaseOptions, bool]:
    """Ask."""
    return data, options, shout


@spelled_alone(ReleaseOptions)
def may(data: Any, options: ReleaseOptions) -> Any:
    """May be asked without data."""
    return data


def test_options_are_passed_as_one_or_spelled() -> None:
    whole = ReleaseOptions(epsilon=1, mechanism="chain")
    assert (
        ask(1, whole)
        == ask(1, options=whole)
        == ask(1, epsilon=1, mechanism="chain")
        == (1, whole, False)
    )
    assert ask(1, whole, shout=True)[2] is True
    assert ask(1, epsilon=1, shout=True) == (1, ReleaseOptions(epsilon=1), True)
    assert ask(data=1, epsilon=1)[0] == 1  # type: ignore[call-overload]


def test_misspelt_and_mixed_keywords_are_refused() -> None:
    with pytest.raises(
        TypeError,
        match=r"ask\(\) got an unexpected keyword argument 'mechansim'. Did you mean 'mechanism'\?",
    ):
        ask(1, mechansim="chain")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="either as ReleaseOptions or as keywords"):
        ask(1, ReleaseOptions(), epsilon=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="takes its options as ReleaseOptions"):
        ask(1, ReadOptions())  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="spell all else as keywords"):
        ask(1, ReleaseOptions(), 2)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'data'"):
        ask(epsilon=1)  # type: ignore[call-overload]


def test_the_signature_and_the_docstring_show_every_option() -> None:
    import inspect

    names = list(inspect.signature(ask).parameters)
    assert names[0] == "data"
    assert names[-1] == "shout"
    assert set(names[1:-1]) == {field.name for field in fields(ReleaseOptions)}
    for name in names[1:-1]:
        assert name in str(ask.__doc__), name


def test_data_may_be_left_out_where_the_function_says_so() -> None:
    assert may(3, ReleaseOptions()) == 3
    assert may(epsilon=1) is None
    with pytest.raises(TypeError, match="missing"):
        ask(epsilon=1)  # type: ignore[call-overload]


def test_options_can_be_replaced() -> None:
    assert replace(ReleaseOptions(epsilon=1), epsilon=2) == ReleaseOptions(epsilon=2)

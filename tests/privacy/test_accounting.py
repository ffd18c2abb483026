"""The composition record: losses from sensitivities and noise, and an edited record is noticed."""

import json
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from tallytree.errors import InputError, RequestError
from tallytree.privacy.accounting import (
    Composition,
    MechanismRecord,
    check_composition,
    loss_of,
    measurements,
    record_from_json,
    record_to_json,
    total_loss,
)
from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace
from tallytree.privacy.sensitivity import Sensitivity, sizes_sensitivity

THIRD = Fraction(1, 3)


def measured(part: Budget, level: int | None = 0, query: str = "sizes") -> MechanismRecord:
    sensitivity = sizes_sensitivity(max_quantity=2, contributions=3)
    return MechanismRecord(
        "matching",
        level,
        query,
        "one person",
        sensitivity,
        noise_for(part, sensitivity),
        part.total,
    )


def three_levels(definition: Any) -> Composition:
    return Composition(
        "sequential", tuple(measured(Budget(definition, THIRD), level) for level in range(3))
    )


@pytest.mark.parametrize("definition", ["pure", "zcdp"])
def test_levels_add_up(definition: Any) -> None:
    record = three_levels(definition)
    assert total_loss(record, definition) == 1
    assert check_composition(record, Budget(definition, Fraction(1))) == ()
    assert check_composition(record, Budget(definition, Fraction(2))) == ()


def test_disjoint_parts_cost_the_largest() -> None:
    parts = tuple(measured(Budget("pure", Fraction(1, n))) for n in (2, 3, 4))
    side = measured(Budget("pure", Fraction(1, 10)), level=None, query="largest size")
    record = Composition("sequential", (side, Composition("parallel", parts)))
    assert total_loss(record, "pure") == Fraction(1, 10) + Fraction(1, 2)
    assert [leaf.query for leaf in measurements(record)] == [
        "largest size",
        "sizes",
        "sizes",
        "sizes",
    ]


def test_pure_noise_counts_inside_zcdp_but_not_the_reverse() -> None:
    sensitivity = Sensitivity(2, 4)
    assert loss_of(sensitivity, DiscreteLaplace(Fraction(4)), "zcdp") == Fraction(1, 8)
    with pytest.raises(RequestError, match="no pure differential privacy"):
        loss_of(sensitivity, DiscreteGaussian(Fraction(4)), "pure")
    failures = check_composition(three_levels("zcdp"), Budget("pure", Fraction(1)))
    assert len(failures) == 3


@pytest.mark.parametrize("definition", ["pure", "zcdp"])
def test_a_record_survives_json_exactly(definition: Any) -> None:
    record = Composition(
        "sequential",
        (
            three_levels(definition),
            Composition("parallel", (measured(Budget(definition, THIRD), None),)),
        ),
    )
    again = record_from_json(json.loads(json.dumps(record_to_json(record))))
    assert again == record


def test_an_edited_scale_sensitivity_or_total_is_noticed() -> None:
    budget = Budget("pure", Fraction(1))
    record = three_levels("pure")
    written = record_to_json(record)
    written["parts"][1]["scale"] = "17"
    (failure,) = check_composition(record_from_json(written), budget)
    assert failure == "sizes, level 1: sensitivity and noise cost epsilon = 6/17, stated is 1/3."
    smaller = Composition(
        "sequential", (*record.parts[:2], replace(record.parts[2], sensitivity=Sensitivity(5, 36)))
    )  # type: ignore[type-var]
    assert len(check_composition(smaller, budget)) == 1
    (failure,) = check_composition(record, Budget("pure", Fraction(9, 10)))
    assert failure == "All measurements together cost epsilon = 1, stated is 9/10."


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("scale", "0"),
        ("scale", "1/0"),
        ("scale", 18),
        ("scale", "-3"),
        ("scale", "1e9"),
        ("noise", "laplace"),
        ("level", "0"),
        ("level", True),
        ("query", None),
        ("loss", "x"),
        ("sensitivity", {"l1": 0, "l2_squared": 1}),
        ("sensitivity", {"l1": 1}),
        ("sensitivity", 3),
    ],
)
def test_a_record_that_makes_no_sense_is_refused(where: str, value: object) -> None:
    written = record_to_json(three_levels("pure"))
    written["parts"][0][where] = value
    with pytest.raises(InputError):
        record_from_json(written)


def test_an_unknown_or_empty_composition_is_refused() -> None:
    with pytest.raises(InputError, match="sequential, parallel"):
        record_from_json({"composition": "magic", "parts": [record_to_json(three_levels("pure"))]})
    with pytest.raises(InputError, match="at least one part"):
        record_from_json({"composition": "parallel", "parts": []})
    with pytest.raises(InputError):
        record_from_json({"composition": "parallel"})

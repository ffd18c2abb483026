"""What a release did to the data, as frozen data: enough for an outsider to recompute its privacy
loss.

A release is a tree. Its leaves are measurements, each with the sensitivity of its query and its
noise; an inner node says how its parts compose. :func:`total_loss` works the loss out again from
sensitivities and noise alone, ignoring what the record claims; :func:`check_composition` compares
the two.

In a manifest numbers are written exactly, as text such as ``"1/3"``. The meaning of a kind of noise
or composition never changes; a new meaning gets a new name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from tallytree.errors import InputError, RequestError
from tallytree.privacy.budget import Budget, Definition, written_fraction
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise
from tallytree.privacy.sensitivity import Sensitivity

CompositionKind = Literal["sequential", "parallel"]


@dataclass(frozen=True)
class MechanismRecord:
    """One query with noise.

    Attributes
    ----------
    name
        The mechanism that asked, such as ``"matching"``.
    level
        Level of the hierarchy, None where the query is about no level.
    query
        What was asked, such as ``"cumulative"``; the answers of all regions of the level together.
    unit
        What is protected, such as ``"one person"``; neighbours differ by one unit.
    sensitivity
        How much one unit can change the answers.
    noise
        What was added to each answer.
    stated
        The part of the budget that the measurement is said to cost: ε or ρ.
    """

    name: str
    level: int | None
    query: str
    unit: str
    sensitivity: Sensitivity
    noise: Noise
    stated: Fraction


@dataclass(frozen=True)
class Composition:
    """Measurements that compose.

    ``sequential``: each part may look at all of the data and at the answers before it; losses add
    up.

    ``parallel``: the parts are about disjoint sets of entities; the loss is the largest one. This
    holds for units of several entities too, as long as each part states its sensitivity for a whole
    unit: if a unit has k_i of its k entities in part i, the part loses at most k_i/k (or, for zCDP,
    (k_i/k)²) of its stated loss, and these shares add up to at most 1.
    """

    kind: CompositionKind
    parts: tuple[Record, ...]

    def __post_init__(self) -> None:
        if self.kind not in get_args(CompositionKind):
            raise RequestError(
                f"A composition is one of {', '.join(get_args(CompositionKind))}, got "
                f"{self.kind!r}."
            )
        if not self.parts:
            raise RequestError("A composition has at least one part.")


Record = MechanismRecord | Composition


def loss_of(sensitivity: Sensitivity, noise: Noise, definition: Definition) -> Fraction:
    """What one measurement costs, worked out from sensitivity and noise.

    Pure: discrete Laplace costs l1/scale; discrete Gaussian noise gives no pure guarantee. zCDP:
    discrete Gaussian costs l2²/(2 sigma2), and ε-DP implies ε²/2-zCDP (Bun and Steinke 2016, Prop.
    1.4).
    """
    if isinstance(noise, DiscreteLaplace):
        epsilon = sensitivity.l1 / noise.scale
        return epsilon if definition == "pure" else epsilon**2 / 2
    if definition == "pure":
        raise RequestError(
            "Discrete Gaussian noise gives no pure differential privacy; state the loss as zCDP."
        )
    return sensitivity.l2_squared / (2 * noise.sigma2)


def total_loss(record: Record, definition: Definition) -> Fraction:
    """The loss of a whole tree, from sensitivities and noise alone."""
    if isinstance(record, MechanismRecord):
        return loss_of(record.sensitivity, record.noise, definition)
    losses = [total_loss(part, definition) for part in record.parts]
    return max(losses) if record.kind == "parallel" else sum(losses, Fraction(0))


def measurements(record: Record) -> Iterator[MechanismRecord]:
    """All measurements of a tree, in order."""
    if isinstance(record, MechanismRecord):
        yield record
    else:
        for part in record.parts:
            yield from measurements(part)


def check_composition(record: Record, budget: Budget) -> tuple[str, ...]:
    """What does not hold, one sentence each: a measurement that costs more than it states, or a
    total above the budget.
    """
    failures = []
    for leaf in measurements(record):
        where = f"{leaf.query}, level {leaf.level}" if leaf.level is not None else leaf.query
        if isinstance(leaf.noise, DiscreteGaussian) and budget.definition == "pure":
            failures.append(f"{where}: discrete Gaussian noise gives no pure differential privacy.")
            continue
        loss = loss_of(leaf.sensitivity, leaf.noise, budget.definition)
        if loss != leaf.stated:
            failures.append(
                f"{where}: sensitivity and noise cost {budget.symbol} = {loss}, stated is "
                f"{leaf.stated}."
            )
    if not failures:
        total = total_loss(record, budget.definition)
        if total > budget.total:
            failures.append(
                f"All measurements together cost {budget.symbol} = {total}, stated is "
                f"{budget.total}."
            )
    return tuple(failures)


def record_to_json(record: Record) -> dict[str, Any]:
    """A tree as plain JSON values, fractions as text."""
    if isinstance(record, Composition):
        return {
            "composition": record.kind,
            "parts": [record_to_json(part) for part in record.parts],
        }
    return {
        "mechanism": record.name,
        "level": record.level,
        "query": record.query,
        "unit": record.unit,
        "sensitivity": {"l1": record.sensitivity.l1, "l2_squared": record.sensitivity.l2_squared},
        **noise_to_json(record.noise),
        "loss": str(record.stated),
    }


def noise_to_json(noise: Noise) -> dict[str, str]:
    """Kind and parameter of noise."""
    if isinstance(noise, DiscreteLaplace):
        return {"noise": "discrete-laplace", "scale": str(noise.scale)}
    return {"noise": "discrete-gaussian", "sigma2": str(noise.sigma2)}


def record_from_json(value: Mapping[str, Any]) -> Record:
    """The tree that :func:`record_to_json` wrote; InputError where it is not one."""
    try:
        if "composition" in value:
            return Composition(
                value["composition"], tuple(record_from_json(part) for part in value["parts"])
            )
        sensitivity = value["sensitivity"]
        level = value["level"]
        return MechanismRecord(
            name=_text(value["mechanism"]),
            level=None if level is None else _whole(level),
            query=_text(value["query"]),
            unit=_text(value["unit"]),
            sensitivity=Sensitivity(_whole(sensitivity["l1"]), _whole(sensitivity["l2_squared"])),
            noise=noise_from_json(value),
            stated=written_fraction(value["loss"]),
        )
    except (KeyError, TypeError, RequestError) as error:
        raise InputError(
            f"The composition record of this release cannot be read: {error}"
        ) from error


def noise_from_json(value: Mapping[str, Any]) -> Noise:
    """The noise that :func:`noise_to_json` wrote."""
    match value["noise"]:
        case "discrete-laplace":
            return DiscreteLaplace(written_fraction(value["scale"]))
        case "discrete-gaussian":
            return DiscreteGaussian(written_fraction(value["sigma2"]))
        case other:
            raise InputError(
                f"There is no noise {other!r}; known are discrete-laplace and discrete-gaussian."
            )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected a whole number, got {value!r}")
    return value

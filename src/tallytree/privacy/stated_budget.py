"""The privacy loss that a user states, by one name or the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tallytree.errors import RequestError
from tallytree.privacy.budget import Budget, Definition, exact

if TYPE_CHECKING:
    from tallytree.privacy.sensitivity import Sensitivity


def stated_budget(
    epsilon: object, rho: object, definition: Definition, delta: object = None
) -> Budget:
    """``epsilon`` for pure differential privacy, ``rho`` for zero-concentrated, and not both.

    ``epsilon`` with ``delta`` is a zero-concentrated budget whose Gaussian noise is (ε, δ)-DP,
    whatever is asked with it; who knows the answers better calls
    :func:`~tallytree.privacy.approximate.approximate_budget`.
    """
    if definition not in ("pure", "zcdp"):
        raise RequestError(f"The definition must be one of pure, zcdp, got {definition!r}.")
    if delta is not None:
        if epsilon is None or rho is not None:
            raise RequestError(
                "delta goes with epsilon and nothing else; give epsilon=… and delta=…."
            )
        from tallytree.privacy.approximate import approximate_budget  # loads exact profiles

        found = approximate_budget(epsilon, delta)
        return replace(found.budget, asked=(found.epsilon, found.delta))
    name, value, other = (
        ("epsilon", epsilon, rho) if definition == "pure" else ("rho", rho, epsilon)
    )
    if other is not None:
        wrong, its = ("rho", "zcdp") if definition == "pure" else ("epsilon", "pure")
        raise RequestError(
            f"{wrong} belongs to definition {its!r}; definition {definition!r} takes {name}."
        )
    if value is None:
        number = "1.0" if definition == "pure" else "0.1"
        raise RequestError(
            f"{name} is missing. State the privacy loss, for example {name}={number} (--{name} "
            f"{number})."
        )
    return Budget(definition, exact(value, name))


def refuse_many_changes(budget: Budget, sensitivities: Iterable[Sensitivity]) -> None:
    """Refuse (ε, δ) where one unit may change more answers than the budget was found for.

    Answers are whole numbers, so no more of them change than their L1 sensitivities add up to.
    """
    refuse_more_changes(budget, sum(sensitivity.l1 for sensitivity in sensitivities))


def refuse_more_changes(budget: Budget, most: int) -> None:
    """The same where it is known how many answers change at most."""
    if budget.asked is None:
        return
    from tallytree.privacy.approximate import ANY_ANSWERS

    if most > ANY_ANSWERS.most_changed:
        raise RequestError(
            f"One unit may change {most:,} answers, more than the {ANY_ANSWERS.most_changed:,} for "
            "which epsilon and delta are "
            "proved. Lower the bounds on what one unit contributes, or state rho."
        )

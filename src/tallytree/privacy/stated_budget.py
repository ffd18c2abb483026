"""The privacy loss that a user states, by one name or the other."""

from __future__ import annotations

from tallytree.errors import RequestError
from tallytree.privacy.budget import Budget, Definition, exact


def stated_budget(epsilon: object, rho: object, definition: Definition) -> Budget:
    """``epsilon`` for pure differential privacy, ``rho`` for zero-concentrated, and not both."""
    if definition not in ("pure", "zcdp"):
        raise RequestError(f"The definition must be one of pure, zcdp, got {definition!r}.")
    name, value, other = ("epsilon", epsilon, rho) if definition == "pure" else ("rho", rho, epsilon)
    if value is None or other is not None:
        raise RequestError(f"definition={definition!r} takes {name} and nothing else; give {name}=….")
    return Budget(definition, exact(value, name))

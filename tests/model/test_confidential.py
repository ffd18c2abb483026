"""Every class that holds exact values hides them, and can be neither pickled nor copied."""

import copy
import importlib
import inspect
import pickle
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import tallytree
from tallytree.model.confidential import Confidential
from tallytree.model.confidential_grid import ConfidentialGrid, PublicGrid

SECRET = 7341992


def all_classes() -> Iterator[type]:
    for module in pkgutil.walk_packages(tallytree.__path__, "tallytree."):
        if module.name == "tallytree.__main__":
            continue
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if found.__module__ == module.name:
                yield found


def holds_exact_values(found: type) -> bool:
    """By its name, by what its own text says of itself or a field, or because a field is of such a
    class.
    """
    documented = inspect.cleandoc(found.__doc__ or "") if "__doc__" in vars(found) else ""
    said = (
        found.__name__.startswith("Confidential")
        or re.search(r"(^|\s)Confidential:", documented) is not None
    )
    if said or not is_dataclass(found):
        return said or "exact_history" in vars(found).get("__annotations__", {})
    return any("Confidential" in str(field.type) for field in fields(found))


HOLDERS = sorted(
    {found for found in all_classes() if holds_exact_values(found)},
    key=lambda found: found.__name__,
)


def test_the_known_ones_are_found() -> None:
    names = {found.__name__ for found in HOLDERS}
    assert names >= {
        "BinnedValues", "ConfidentialArrivals", "ConfidentialCounts", "ConfidentialDegrees", "ConfidentialGrid",
        "ConfidentialHistogram", "ConfidentialSizes", "PrivateSurvey", "SparkCounts",
    }  # fmt: skip


@pytest.mark.parametrize("found", HOLDERS, ids=lambda found: found.__name__)
def test_a_class_that_holds_exact_values_is_guarded(found: type) -> None:
    assert issubclass(found, Confidential), f"{found.__module__}.{found.__name__} lacks the guard"
    for name in ("__reduce__", "__reduce_ex__", "__repr__"):
        owner = next(base for base in found.__mro__ if name in vars(base))
        assert owner is Confidential, f"{found.__name__} replaces {name} of the guard"


def test_the_guard_hides_and_refuses() -> None:
    grid = ConfidentialGrid(
        np.array([[SECRET]]), PublicGrid(((0.0, 1.0), (0.0, 1.0)), ("x", "y"), (1, 1))
    )
    assert repr(grid) == "ConfidentialGrid(1 x 1 cells, values hidden)"
    assert str(SECRET) not in repr(grid)
    actions: list[Any] = [pickle.dumps, copy.copy, copy.deepcopy]
    for action in actions:
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            action(grid)

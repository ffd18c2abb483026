"""What a manifest says about privacy, recomputed by someone who trusts none of it.

The record of measurements in the manifest is enough: its total loss follows from sensitivities and
noise alone, and each sensitivity from the query, the bound on contributions and the bound on
quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tallytree.errors import VerificationError
from tallytree.privacy.accounting import (
    MechanismRecord,
    Record,
    check_composition,
    measurements,
    noise_from_json,
    record_from_json,
    record_to_json,
    total_loss,
)
from tallytree.privacy.budget import Budget, written_fraction
from tallytree.privacy.guarantee import budget_of, false_claims
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.releases.checks import Check
from tallytree.storage.folder import Folder, Manifest

Leaves = Sequence[MechanismRecord]
Expected = Callable[[Folder, Leaves], Sequence[Sensitivity | None]]
"""From a folder and its measurements: the sensitivity that each must have; None where its query is
not known."""


def check_privacy(folder: Folder, expected: Expected) -> tuple[Check, ...]:
    """The loss of a release, recomputed from the record of its measurements and compared with what
    is stated; ``expected`` sensitivities are the kind's.
    """
    stated, record = budget_of(folder.manifest["privacy"]), record_of(folder.manifest)
    leaves = list(measurements(record))
    failures = check_composition(record, stated)
    return (
        Check(f"the measurements cost at most {stated}", not failures, " ".join(failures)),
        _check_sensitivities(leaves, expected(folder, leaves)),
        _check_listed(folder.manifest, leaves),
    )


def check_secure(folder: Folder) -> Check:
    """Whether the noise came from secure randomness, by the manifest's own word."""
    private = folder.manifest["privacy"].get("private") is True
    return Check(
        "the noise came from secure randomness",
        private,
        "" if private else "An insecure seed was used.",
    )


def check_claims(folder: Folder) -> Check:
    """Statement, factor, cost of replacing and (ε, δ) follow from budget, unit and what is fixed."""
    wrong = false_claims(folder.manifest["privacy"])
    return Check(
        "the statement follows from the figures",
        not wrong,
        f"{', '.join(wrong)} differ." if wrong else "",
    )


def recomputed_loss(folder: Folder) -> Budget:
    """The loss of a release, from sensitivities and noise alone."""
    definition = budget_of(folder.manifest["privacy"]).definition
    return Budget(definition, total_loss(record_of(folder.manifest), definition))


def record_of(manifest: Manifest) -> Record:
    """The tree of measurements that a manifest records."""
    if "composition" not in manifest["privacy"]:
        raise VerificationError("The manifest holds no record of the measurements.")
    return record_from_json(manifest["privacy"]["composition"])


def _check_sensitivities(leaves: Leaves, expected: Sequence[Sensitivity | None]) -> Check:
    wrong = []
    for leaf, sensitivity in zip(leaves, expected, strict=True):
        if sensitivity is None:
            wrong.append(
                f"{_where(leaf)}: the query is not known, so its sensitivity cannot be checked."
            )
        elif leaf.sensitivity != sensitivity:
            wrong.append(
                f"{_where(leaf)}: one unit can change {_norms(sensitivity)}, stated is "
                f"{_norms(leaf.sensitivity)}."
            )
    return Check("each query states its sensitivity", not wrong, " ".join(wrong))


def _norms(sensitivity: Sensitivity) -> str:
    return f"l1 = {sensitivity.l1}, l2² = {sensitivity.l2_squared}"


def _where(leaf: MechanismRecord) -> str:
    return leaf.query if leaf.level is None else f"{leaf.query}, level {leaf.level}"


def _check_listed(manifest: Manifest, leaves: Leaves) -> Check:
    """The figures per level, which people read, are those of the record, which was just recomputed."""
    privacy = manifest["privacy"]
    symbol = budget_of(privacy).symbol
    shown = [
        privacy,
        *(
            facts
            for part in ("side_queries", "levels", "people")
            for facts in privacy.get(part, [])
        ),
    ]
    listed = [_facts(facts, symbol) for facts in shown if "noise" in facts]
    recorded = [_facts(record_to_json(leaf), "loss") for leaf in leaves]
    same = sorted(listed, key=repr) == sorted(recorded, key=repr)
    return Check(
        "the figures per level agree with the record",
        same,
        "" if same else "sensitivity, noise or loss differ.",
    )


def _facts(facts: Mapping[str, Any], loss: str) -> tuple[Any, ...]:
    bounds = facts["sensitivity"]
    return (
        facts.get("level"),
        noise_from_json(facts),
        bounds["l1"],
        bounds["l2_squared"],
        written_fraction(facts[loss]),
    )

"""The manifest of a stream: how it is counted and what it promises, enough to load it, to check it
and to go on.
"""

from __future__ import annotations

from typing import Any

from tallytree.errors import InputError
from tallytree.model.part import Part, kept_rows
from tallytree.model.steps import Steps, steps_from
from tallytree.model.unit import Unit
from tallytree.privacy.accounting import noise_to_json, record_to_json
from tallytree.privacy.guarantee import Guarantee, budget_of, guarantee_to_json, unit_from_json
from tallytree.releases.checks import Check
from tallytree.storage.folder import Manifest
from tallytree.streams.plan import StreamPlan, plan_stream
from tallytree.version import library_versions

KIND = "stream"
# What changes when a stream goes on; for everything else the ledger vouches, see
# storage.folder.lasting_digest.
GROWS = ("n_steps", "versions", "files", "sha256")
_STEPS_ARE_PUBLIC = "where steps begin and end, and how many are over"
# What of the privacy block is asked for; the rest follows from it, and from the plan.
_ASKED = ("private", "definition", "epsilon", "rho", "stated", "unit")
# A row that moves from one step to another between two runs changes the noisy rows of both, by more
# than the sensitivity.
FIXED = ("how many steps are over", "that a row stays in the step in which it was first counted")
# Without a ledger nothing can notice that published steps are drawn a second time.
ONE_FOLDER = (
    "that the stream goes on from its one folder, never from a copy or an earlier state of it"
)


def stream_manifest(
    plan: StreamPlan,
    steps: Steps,
    n_steps: int,
    unit: Unit,
    *,
    note: str,
    part: Part | None = None,
    secure: bool,
    noted: bool,
) -> Manifest:
    """Everything that ``manifest.json`` says about a stream, all of it public. ``noted``: a ledger
    will note each step that the stream leaves.
    """
    return {
        "kind": KIND,
        "n_steps": n_steps,
        "grows": list(GROWS),
        "steps": {"start": str(steps.start), "every": steps.every},
        "mechanism": {
            "name": plan.strategy,
            "horizon": plan.horizon,
            "epochs": list(plan.epochs),
            "branching": list(plan.branching),
            "inference": plan.inference,
            "objective": plan.objective,
        },
        "privacy": {
            **guarantee_to_json(Guarantee(plan.budget, unit, _fixed(noted), secure)),
            "levels": _levels(plan),
            "composition": record_to_json(plan.record(unit.words)),
        },
        "public": {"steps": _STEPS_ARE_PUBLIC, "rows": note},
        **kept_rows(part),
        "versions": library_versions(),
    }


def _fixed(noted: bool) -> tuple[str, ...]:
    return FIXED if noted else (*FIXED, ONE_FOLDER)


def _levels(plan: StreamPlan) -> list[dict[str, Any]]:
    """What is measured, level by level and epoch by epoch; an entity comes in one epoch, so each
    has the whole budget.
    """
    found = []
    for number in range(len(plan.epochs)):
        epoch = plan.epoch(number)
        where = f"epoch {number + 1}, " if len(plan.epochs) > 1 else ""
        for level in range(epoch.n_levels):
            width, tree = epoch.branching**level, plan.strategy == "tree"
            found.append(
                {
                    "name": where
                    + (
                        f"blocks of {width:,} step{'s' if width > 1 else ''}"
                        if tree
                        else "every step"
                    ),
                    "level": level if tree else None,
                    plan.budget.symbol: str(plan.budget.total / epoch.n_levels),
                    "sensitivity": {
                        "l1": epoch.sensitivity.l1,
                        "l2_squared": epoch.sensitivity.l2_squared,
                    },
                    **noise_to_json(epoch.noise),
                }
            )
    return found


def stream_plan(manifest: Manifest) -> StreamPlan:
    """The plan that a manifest describes; its noise is computed anew from budget and sensitivity,
    not believed.
    """
    facts, privacy = manifest["mechanism"], manifest["privacy"]
    epochs, branching = tuple(map(_whole, facts["epochs"])), tuple(map(_whole, facts["branching"]))
    return plan_stream(
        budget_of(privacy),
        None if facts["horizon"] is None else _whole(facts["horizon"]),
        strategy=facts["name"],
        contributions=_whole(privacy["unit"]["contributions"]),
        branching=branching,
        inference=facts["inference"] is True,
        objective=facts["objective"],
        min_gap=_whole(privacy["unit"].get("min_gap", 0)),
        epochs=epochs,
    )


def steps_of(manifest: Manifest) -> tuple[Steps, int]:
    """The steps of a manifest, and how many of them are over."""
    facts = manifest["steps"]
    return steps_from(facts["start"], facts["every"]), _whole(manifest["n_steps"])


def check_stream_record(manifest: Manifest) -> Check:
    """Whether all that the plan, the steps and the unit determine is what the manifest says."""
    plan, (steps, n_steps) = stream_plan(manifest), steps_of(manifest)
    words = manifest["privacy"]["unit"]["words"]
    stated = manifest["privacy"]
    expected = {
        "name": plan.strategy == manifest["mechanism"]["name"],
        "branching": list(plan.branching) == manifest["mechanism"]["branching"],
        "composition": record_to_json(plan.record(words)) == stated["composition"],
        "levels": _levels(plan) == stated["levels"],
        "fixed": list(_fixed("ledger" in stated)) == stated["fixed"],
        "grows": list(GROWS) == manifest["grows"],
        "horizon": plan.horizon is None or n_steps <= plan.horizon,
        "public": manifest["public"]
        == {"steps": _STEPS_ARE_PUBLIC, "rows": str(manifest["public"]["rows"])},
        "start": str(steps.start) == manifest["steps"]["start"],
    }
    wrong = [name for name, right in expected.items() if not right]
    return Check(
        "the record is that of a stream with this plan",
        not wrong,
        f"{', '.join(wrong)} differ." * bool(wrong),
    )


def same_stream(one: Manifest, other: Manifest) -> list[str]:
    """What two manifests say differently, but for how far the streams are, who paid, and the
    versions of libraries.
    """

    def asked(manifest: Manifest) -> dict[str, Any]:
        privacy = {name: value for name, value in manifest["privacy"].items() if name in _ASKED}
        unit = unit_from_json(privacy["unit"])
        bounds = (unit.name, unit.contributions, unit.min_gap)
        privacy["unit"] = bounds  # whatever a row without a name is called
        rest = {name: manifest.get(name) for name in ("kind", "where")}
        return {
            **rest,
            **manifest["mechanism"],
            **manifest["steps"],
            **privacy,
            "rows": manifest["public"]["rows"],
        }

    here, there = asked(one), asked(other)
    return [name for name in {**here, **there} if here.get(name) != there.get(name)]


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(
            f"The manifest of the stream holds {value!r} where a whole number should be."
        )
    return value

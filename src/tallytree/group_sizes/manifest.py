"""The manifest of a release of group sizes: how it was made and what it promises, enough for an
outsider to check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallytree.errors import VerificationError
from tallytree.group_sizes.plan.choice import Choice
from tallytree.group_sizes.plan.plan import SIZE_LOOK, LevelPlan, Plan, QueryPlan
from tallytree.group_sizes.plan.size_bins import SizeBins
from tallytree.group_sizes.plan.traits import traits_of
from tallytree.model.attributes import NO_ATTRIBUTES, Attributes
from tallytree.model.classes import SizeNames, SizesUpTo, classes_from
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.part import kept_rows, part_of
from tallytree.model.people import NO_PEOPLE, People
from tallytree.model.scale import ValueScale, scale_from_json
from tallytree.privacy.accounting import Composition, MechanismRecord, noise_to_json, record_to_json
from tallytree.privacy.guarantee import Guarantee, guarantee_to_json, unit_from_json
from tallytree.storage.folder import Manifest
from tallytree.version import library_versions

KIND, VALUES = "group-sizes", "values"
FIXED_REGIONS = "which regions there are"
FIXED_GROUPS = "how many groups each region has"
# Of a request for values, what is its own; all else follows from the scale.
_ASKED_OF_VALUES = {"epsilon", "rho", "delta", "definition", "neighbours", "budget"}


def group_sizes_manifest(plan: Plan, facts: PublicFacts, *, secure: bool) -> Manifest:
    """Everything that ``manifest.json`` says about a release of group sizes."""
    hierarchy, loss = facts.hierarchy, plan.budget.symbol
    return {
        "kind": KIND if facts.scale is None else VALUES,
        "levels": [
            {"name": name, "regions": hierarchy.level_size(level)}
            for level, name in enumerate(hierarchy.level_names)
        ],
        "request": _request(plan, facts),
        "mechanism": mechanism_of(plan, facts),
        "privacy": {
            **guarantee_to_json(guarantee_of(plan, facts, secure=secure)),
            "levels": [_level(level, loss) for level in plan.levels],
            "side_queries": _side_queries(plan, loss),
            **({"people": [_level(level, loss) for level in plan.people]} if plan.people else {}),
            "composition": record_to_json(composition_of(plan, facts)),
        },
        "totals": {
            "kept": "every region" if plan.totals == "regions" else "root",
            "source": "public"
            if facts.groups_public
            else "released"
            if facts.whole_groups
            else "noisy",
        },
        "public": {
            "hierarchy": facts.regions_note,
            **_counted_note(facts),
            **({"attributes": facts.attributes.to_json()} if facts.attributes else {}),
            **({"people": facts.people.to_json()} if facts.people else {}),
            **_classes_note(plan, facts),
            **_least_note(plan),
        },
        **({} if facts.classes is None else {"classes": facts.classes.to_json()}),
        **({} if facts.scale is None else {"values": facts.scale.to_json()}),
        "hierarchy_sha256": hierarchy.fingerprint,
        **kept_rows(facts.part),
        "versions": library_versions(),
    }


def _request(plan: Plan, facts: PublicFacts) -> dict[str, Any]:
    """What was asked for beyond the defaults."""
    asked = plan.request.to_json()
    if facts.scale is None:
        return asked
    return {name: value for name, value in asked.items() if name in _ASKED_OF_VALUES}


def _counted_note(facts: PublicFacts) -> dict[str, Any]:
    """What is known of the groups, or of the rows with a value, and how they count."""
    if facts.scale is not None:
        return {
            "numbers": "not public; the numbers of rows follow from the measured counts by value",
            "rows": f"{facts.scale.sentence}; rows without a number there are left out",
        }
    return {
        "group_totals": _totals_note(facts),
        "max_quantity": facts.max_quantity,
        "least_size": facts.least_size,
    }


def _classes_note(plan: Plan, facts: PublicFacts) -> dict[str, str]:
    if facts.scale is not None:
        return {}
    if facts.classes is None:
        bounded = sizes_up_to(plan.max_size, [level.view for level in plan.levels])
        return (
            {}
            if bounded is None
            else {
                BOUNDED: f"sizes of {bounded.last} and more are counted as one class, "
                f"{bounded.last}+, chosen without the data"
            }
        )
    labels = ", ".join(facts.classes.labels)
    return {
        "classes": f"sizes are counted in {facts.classes.n_classes} classes, chosen without the "
        f"data: {labels}"
    }


def _least_note(plan: Plan) -> dict[str, str]:
    if not plan.request.min_size:
        return {}
    return {"min_size": f"no group is smaller than {plan.least_size}, as stated without the data"}


def facts_of(manifest: Manifest, hierarchy: Hierarchy) -> PublicFacts:
    """The public facts that a release of group sizes was made with, but for the words for a group
    and for who is alone, which stand in sentences only.
    """
    public = manifest["public"]
    return PublicFacts(
        hierarchy,
        manifest["totals"]["source"] == "public",
        int(public.get("max_quantity", 1)),
        unit_from_json(manifest["privacy"]["unit"]),
        least_size=int(public.get("least_size", 0)),
        classes=classes_from(manifest["classes"]) if "classes" in manifest else None,
        attributes=attributes_of(manifest),
        people=people_of(manifest),
        part=part_of(manifest),
        scale=scale_of(manifest),
        group="",
        groups_note=str(public.get("group_totals", "")),
        regions_note=str(public["hierarchy"]),
    )


def scale_of(manifest: Manifest) -> ValueScale | None:
    """On which scale a release counts values; None where it counts sizes of groups."""
    return scale_from_json(manifest["values"]) if "values" in manifest else None


BOUNDED = "max_size"
"""The note, in the block ``public``, that the last size stands for all larger ones."""

# Views that ask about every size, however large: a bound changes nothing of what they tell.
_WITHOUT_BOUND = ("sizes", "hybrid")


def sizes_up_to(max_size: int | None, views: Sequence[str]) -> SizesUpTo | None:
    """What a public bound makes of sizes: none of what is measured tells larger ones apart from it.

    None without a bound, and where no level is measured by a view that takes one.
    """
    if max_size is None or all(view in _WITHOUT_BOUND for view in views):
        return None
    return SizesUpTo(max_size)


def size_names_of(manifest: Manifest) -> SizeNames | None:
    """What sizes in the tables of a release stand for: classes, or single sizes and all from the
    public bound on; None where each size is itself.
    """
    if "classes" in manifest:
        return classes_from(manifest["classes"])
    return SizesUpTo(manifest["mechanism"]["max_size"]) if BOUNDED in manifest["public"] else None


def attributes_of(manifest: Manifest) -> Attributes:
    """The attributes of groups that a release has; none in most."""
    return Attributes.from_json(manifest["public"].get("attributes", []))


def people_of(manifest: Manifest) -> People:
    """The classes that a release counts entities by; none in most."""
    return People.from_json(manifest["public"].get("people"))


def _name(plan: Plan, facts: PublicFacts) -> str:
    """What the mechanism is called."""
    return plan.mechanism if facts.scale is None else "value-bins"


def mechanism_of(plan: Plan, facts: PublicFacts) -> dict[str, Any]:
    """What the request came to."""
    named = {"name": _name(plan, facts), "views": [level.view for level in plan.levels]}
    if facts.scale is not None:
        return named
    return {
        **named,
        "norms": [level.norm for level in plan.levels],
        "merge": plan.merge,
        "max_size": plan.max_size,
        **(
            {"people": {level.name: str(level.share) for level in plan.people}}
            if plan.people
            else {}
        ),
    }


def _totals_note(facts: PublicFacts) -> str:
    if facts.whole_groups:
        return "not public; they follow from the measured counts by size"
    return facts.groups_note if facts.groups_public else "not public; estimated from noisy totals"


def guarantee_of(plan: Plan, facts: PublicFacts, *, secure: bool) -> Guarantee:
    """What a release of group sizes promises."""
    adds = "" if facts.scale is None else f"each with its {facts.scale.sentence}"
    if facts.scale is not None and facts.unit.contributions == 1:
        adds = f"with its {facts.scale.sentence}"
    if facts.max_quantity > 1 and not facts.unit.group:
        adds = f"a {facts.unit.entity} adding at most {facts.max_quantity} to the size of its {facts.group}"
    fixed = fixed_facts(
        groups_public=facts.groups_public, attributes=facts.attributes, people=facts.people
    )
    return Guarantee(plan.budget, facts.unit, fixed, secure, adds, facts.alone)


def fixed_facts(
    *, groups_public: bool, attributes: Attributes = NO_ATTRIBUTES, people: People = NO_PEOPLE
) -> tuple[str, ...]:
    """What neighbouring tables of groups have in common."""
    if people:
        classes = f"which values {', '.join(people.classes.names)} may have"
        return (*fixed_facts(groups_public=groups_public, attributes=attributes), classes)
    if not attributes:
        return (FIXED_REGIONS, FIXED_GROUPS) if groups_public else (FIXED_REGIONS,)
    names = ", ".join(attributes.names)
    values = f"which values {names} may have"
    if not groups_public:
        return (FIXED_REGIONS, values)
    return (
        FIXED_REGIONS,
        values,
        f"{FIXED_GROUPS} of each combination of {names}",
        f"{names} of each group",
    )


def with_split(manifest: Manifest, plan: Plan, facts: PublicFacts) -> Manifest:
    """The manifest of a release whose split over levels was chosen after it had been paid for, from
    its first look.

    The receipt of the ledger stays: the total is the same.
    """
    privacy, chosen = (
        manifest["privacy"],
        group_sizes_manifest(plan, facts, secure=manifest["privacy"]["private"]),
    )
    split = {name: chosen["privacy"][name] for name in ("levels", "side_queries", "composition")}
    why = (
        "given"
        if plan.request.budget != "auto"
        else "planned from the first look and public numbers of groups"
    )
    return {
        **manifest,
        "privacy": {**privacy, **split},
        "mechanism": {**manifest["mechanism"], "split": why},
    }


def with_bins(manifest: Manifest, plan: Plan, facts: PublicFacts, bins: SizeBins) -> Manifest:
    """The manifest of a release whose bins of sizes were chosen from its first look, or follow from
    the public bound.
    """
    chosen = with_split(manifest, plan, facts)
    asked = {name: fact for name, fact in chosen["mechanism"].items() if name != "split"}
    views = [level.view for level in plan.levels]
    edges = {"bins": bins.edges.tolist(), "bins_per_block": bins.block or None}
    return {**chosen, "mechanism": {**asked, "views": views, **edges}}


def bins_of(manifest: Manifest) -> SizeBins:
    """The bins of sizes that ``with_bins`` wrote down."""
    facts = manifest["mechanism"]
    edges, block = np.array(facts["bins"], dtype=np.int64), int(facts["bins_per_block"] or 0)
    if (
        edges.ndim != 1
        or len(edges) < 2
        or np.any(np.diff(edges) <= 0)
        or edges[0] < 0
        or block < 0
    ):
        raise VerificationError("The bins of sizes in the manifest are none.")
    return SizeBins(edges, block)


def with_choice(manifest: Manifest, plan: Plan, facts: PublicFacts, choice: Choice) -> Manifest:
    """The manifest of a release whose mechanism was chosen after its look at bins of sizes: which,
    and why.
    """
    return {**manifest, "mechanism": {**mechanism_of(plan, facts), "chosen": choice.to_json()}}


def choice_of(manifest: Manifest) -> Choice:
    """What ``with_choice`` wrote down."""
    return Choice.from_json(manifest["mechanism"]["name"], manifest["mechanism"]["chosen"])


def with_fit(manifest: Manifest, fit: dict[str, Any]) -> Manifest:
    """The manifest with facts about how the consistent fit went, known only afterwards."""
    return {**manifest, "mechanism": {**manifest["mechanism"], "fit": fit}} if fit else manifest


def composition_of(plan: Plan, facts: PublicFacts) -> Composition:
    """The tree of all measurements of a plan. Each is about all regions of its level, which compose
    in parallel inside.

    Of a plan that awaits its first look only the sum over levels is certain: it stands as one part,
    on no level in particular.
    """

    def record(level: int | None, name: str, query: QueryPlan) -> MechanismRecord:
        return MechanismRecord(
            _name(plan, facts),
            level,
            name,
            facts.unit.words,
            query.sensitivity,
            query.noise,
            query.budget,
        )

    chosen = traits_of(plan.mechanism).chosen_after_look
    parts = [record(level, "group totals", query) for level, query in enumerate(plan.group_totals)]
    if plan.largest_size is not None:
        parts.append(record(None, "largest size", plan.largest_size))
    if plan.size_look is not None:
        parts.append(record(None, SIZE_LOOK, plan.size_look))
    if plan.first_look is not None:
        parts.append(record(None, "first look", plan.first_look))
    for level in plan.levels:
        if level.query is not None:
            undecided = plan.awaits_look
            name = level.question(level.view)
            if undecided:
                name = f"{level.view}, {chosen} after the first look"
            parts.append(record(None if undecided else level.level, name, level.query))
    for table in plan.people:
        assert table.query is not None
        parts.append(record(table.level, table.question(table.view), table.query))
    return Composition("sequential", tuple(parts))


def _level(level: LevelPlan, loss: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "level": level.level,
        "name": level.name,
        "view": level.view,
        "share": str(level.share),
    }
    if level.by:
        facts["by"] = list(level.by)
    if level.query is None:
        return facts | {loss: "0"}
    together = {"composition": "all regions of the level together"} if level.view == "chain" else {}
    return facts | _query(level.query, loss) | together


def _side_queries(plan: Plan, loss: str) -> list[dict[str, Any]]:
    queries: list[dict[str, Any]] = []
    if plan.largest_size is not None:
        queries.append({"query": "largest size"} | _query(plan.largest_size, loss))
    if plan.size_look is not None:
        queries.append({"query": SIZE_LOOK} | _query(plan.size_look, loss))
    if plan.first_look is not None:
        queries.append({"query": "first look"} | _query(plan.first_look, loss))
    for level, query in enumerate(plan.group_totals):
        queries.append({"query": "group totals", "level": level} | _query(query, loss))
    return queries


def _query(query: QueryPlan, loss: str) -> dict[str, Any]:
    return {
        loss: str(query.budget),
        "sensitivity": {"l1": query.sensitivity.l1, "l2_squared": query.sensitivity.l2_squared},
        **noise_to_json(query.noise),
        "composition": "parallel over the regions of the level",
    }

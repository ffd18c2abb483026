"""The manifest of a table: how it was made and what it promises, enough to load it and to check it."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.errors import InputError
from tallytree.lattice.tables import Axes, TableKey
from tallytree.model.confidential_table import PublicTable
from tallytree.model.hierarchy import Hierarchy
from tallytree.model.known import Known, settled_totals
from tallytree.model.part import kept_rows, part_of
from tallytree.model.rules import possible_cells, rule_from
from tallytree.model.values import values_from_json
from tallytree.options.tables import TableOptions
from tallytree.privacy.accounting import Composition, MechanismRecord, noise_to_json, record_to_json
from tallytree.privacy.budget import written_fraction
from tallytree.privacy.guarantee import Guarantee, budget_of, guarantee_to_json, unit_from_json
from tallytree.storage.folder import Manifest
from tallytree.tables.plan import (
    PlannedTable,
    TablePlan,
    axes_of,
    beside_known,
    plan_of_shares,
    query_name,
)
from tallytree.version import library_versions

KIND = "table"
MECHANISM = "planned"
REGIONS_FIXED = "which regions there are"
RULES_KEPT = (
    "rules that were stated hold of every count; a row that breaks one is left out, by its own "
    "values alone"
)
VALUES_PUBLIC = "the values of attributes are lists that were stated"


def table_manifest(plan: TablePlan, options: TableOptions, *, secure: bool) -> Manifest:
    """Everything that ``manifest.json`` says about a table, all of it public."""
    facts, tree = plan.facts, plan.facts.hierarchy
    held = tuple(one.words(tree, facts.values) for one in facts.known)
    guarantee = Guarantee(
        plan.budget, facts.unit, (REGIONS_FIXED, *held), secure, alone=facts.alone
    )
    records = tuple(
        MechanismRecord(
            MECHANISM,
            table.key.level,
            query_name(plan, table.key),
            facts.unit.words,
            table.sensitivity,
            table.noise,
            plan.budget.total * table.share,
        )
        for table in plan.tables
    )
    return {
        "kind": KIND,
        "mechanism": {"name": MECHANISM, "want": wanted_names(options)},
        "attributes": facts.values.described(),
        "rules": [rule.described() for rule in facts.rules],
        "known": [
            {"level": one.level, "by": list(one.margin), "counts": one.counts.tolist()}
            for one in facts.known
        ],
        "levels": [
            {"level": level, "name": name, "regions": tree.level_size(level)}
            for level, name in enumerate(tree.level_names)
        ],
        "hierarchy_sha256": tree.fingerprint,
        "privacy": {
            **guarantee_to_json(guarantee),
            "levels": [_table(plan, table) for table in plan.tables],
            "composition": record_to_json(Composition("sequential", records)),
        },
        "public": public_facts(facts),
        **kept_rows(facts.part),
        "versions": library_versions(),
    }


def public_facts(facts: PublicTable) -> dict[str, str]:
    """In words, what is public and why."""
    found = {"regions": facts.regions_note, "values": VALUES_PUBLIC}
    if facts.rules:
        found["rules"] = f"{RULES_KEPT}: {'; '.join(rule.words for rule in facts.rules)}"
    return found


def wanted_names(options: TableOptions) -> list[str]:
    """The tables that were asked for; none for all."""
    return [options.want] if isinstance(options.want, str) else list(options.want)


def measured_name(plan: TablePlan, key: TableKey) -> str:
    """A measured table in words: its level and what is counted."""
    return f"{plan.facts.hierarchy.level_names[key.level]}, {query_name(plan, key)}"


def _table(plan: TablePlan, table: PlannedTable) -> dict[str, Any]:
    """A measured table as the manifest lists it."""
    bound, query = table.sensitivity, query_name(plan, table.key)
    return {
        "name": measured_name(plan, table.key),
        "level": table.key.level,
        "query": query,
        "classes": list(plan.axes.classes(table.key.parts)),
        "share": str(table.share),
        plan.budget.symbol: str(plan.budget.total * table.share),
        "sensitivity": {"l1": bound.l1, "l2_squared": bound.l2_squared},
        **noise_to_json(table.noise),
    }


def facts_of(manifest: Manifest, hierarchy: Hierarchy) -> PublicTable:
    """What a manifest says is public."""
    privacy, values = manifest["privacy"], values_from_json(manifest["attributes"])
    rules = tuple(rule_from(told) for told in manifest["rules"])
    given = [
        Known(int(one["level"]), tuple(one["by"]), np.array(one["counts"], dtype=np.int64))
        for one in manifest["known"]
    ]
    possible = possible_cells(values, rules)
    facts = PublicTable(
        hierarchy,
        values,
        unit_from_json(privacy["unit"]),
        part_of(manifest),
        str(privacy["alone"]),
        str(manifest["public"]["regions"]),
        rules,
    )
    return beside_known(facts, settled_totals(hierarchy, values, given, possible))


def plan_from_manifest(manifest: Manifest, hierarchy: Hierarchy) -> TablePlan:
    """The plan that a manifest describes; its noise is computed anew from budget, shares and
    sensitivity, not believed.
    """
    facts = facts_of(manifest, hierarchy)
    axes = axes_of(facts.values)
    shares: dict[TableKey, Fraction] = {}
    for table in manifest["privacy"]["levels"]:
        key = _key(axes, hierarchy, table)
        if key in shares:
            raise InputError("The manifest lists a table twice.")
        shares[key] = written_fraction(table["share"])
    return plan_of_shares(facts, axes, budget_of(manifest["privacy"]), shares)


def _key(axes: Axes, hierarchy: Hierarchy, table: dict[str, Any]) -> TableKey:
    """The level and partitions of a table that a manifest lists."""
    level, classes = table["level"], table["classes"]
    whole = isinstance(level, int) and 0 <= level < hierarchy.n_levels
    known = len(classes) == len(axes.axes) and all(
        n in axis.n_classes for axis, n in zip(axes.axes, classes)
    )
    if not whole or not known:
        raise InputError("The manifest lists a table that its attributes do not have.")
    parts = [axis.n_classes.index(n) for axis, n in zip(axes.axes, classes)]
    return TableKey(level, tuple(parts))


def options_of(manifest: Manifest) -> TableOptions:
    """What a manifest says was asked for, as far as a plan follows from it."""
    return TableOptions(want=tuple(map(str, manifest["mechanism"]["want"])))

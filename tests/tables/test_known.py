"""Known totals: kept exactly, never compared with the data, refused where they cannot be kept."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError
from tallytree.ingest.tables import read_table
from tallytree.model.confidential_table import ConfidentialTable
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.known import Known, settled_totals
from tallytree.model.rules import Rule, possible_cells
from tallytree.model.values import Values
from tallytree.options.tables import CellOptions
from tests.attacks.transcript import listen, loss_between, replay

BY = {"sex": ["f", "m"], "age": ["0-14", "15-64", "65+"]}
ASKED: dict[str, Any] = {"levels": ["state", "county"], "by": BY, "closed": ["sex", "age"]}
LEAVES = (("GA", "a"), ("GA", "b"), ("NY", "c"), ("NY", "d"), ("NY", "e"))
PUBLIC = pa.table({"county": [b for _, b in LEAVES], "state": [a for a, _ in LEAVES]})
TREE = hierarchy_from_leaves(["state", "county"], LEAVES, root="total")
VALUES = Values(("sex", "age"), (("f", "m"), ("0-14", "15-64", "65+")), ("age",))


def people(seed: int = 0, n: int = 600) -> pa.Table:
    rng = np.random.default_rng(seed)
    leaf = rng.integers(0, len(LEAVES), n)
    return pa.table(
        {
            "state": [LEAVES[one][0] for one in leaf],
            "county": [LEAVES[one][1] for one in leaf],
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(0, 90, n),
            "person": rng.integers(0, n // 2, n),
        }
    )


def totals(rows: pa.Table, level: int, *by: str) -> pa.Table:
    """The true totals, as a public table would have them."""
    columns = ["state", "county"][:level]
    classes = np.searchsorted([15, 65], rows["age"].to_numpy(), side="right")
    rows = rows.set_column(3, "age", pa.array(np.array(BY["age"])[classes]))
    found = rows.group_by([*columns, *by]).aggregate([([], "count_all")])
    paths = ["/".join(["total", *one]) for one in zip(*(found[c].to_pylist() for c in columns))]
    regions = paths if columns else ["total"] * len(found)
    named = {name: found[name] for name in by}
    return pa.table({"region": regions, **named, "count": found["count_all"]})


def release(*known: Any, **more: Any) -> tt.TableRelease:
    asked = {**ASKED, "epsilon": 1, "insecure_seed": 1, "known": list(known)} | more
    return tt.table(people(), **asked)


def held(made: tt.TableRelease) -> bool:
    """Whether every known number is the released one."""
    for known in made.plan.facts.known:
        part = made.margin(known.level, known.margin)
        found = np.zeros(known.counts.size, dtype=np.int64)
        found[part.cell] = part.n
        if not np.array_equal(found, known.counts.ravel()):
            return False
    return bool(made.verify())


@pytest.mark.parametrize(
    "which", [[(0,)], [(1, "sex")], [(2,)], [(2, "age")], [(2,), (1, "sex")], [(0, "age"), (1, "age")]]
)  # fmt: skip
def test_known_totals_hold_and_tell_of_the_rest(which: list[Any]) -> None:
    rows = people()
    given = [totals(rows, *one) for one in which]
    made = release(*given)
    assert made.plan.facts.known
    assert held(made)
    free = release(neighbours="replace")
    asked = [(path, where) for path in made.hierarchy.paths for where in ({}, {"sex": "f"}, {"age": "65+"})]  # fmt: skip
    errors, others = ([one.answer(*of).std_error for of in asked] for one in (made, free))
    assert sum(errors) < sum(others)
    assert made.answer().std_error < 1e-12


def test_they_are_constants_that_are_never_compared_with_the_data() -> None:
    far = pa.table({"region": ["total/GA", "total/NY"], "count": [7, 100_000]})
    made = release(far)
    assert held(made)
    assert made.count("total/GA") == 7
    assert made.count("total/NY") == 100_000


def test_the_statement_is_about_replacing_and_names_what_is_held_fixed() -> None:
    given = totals(people(), 1, "sex")
    made = release(given, hierarchy=PUBLIC, levels=["county"], insecure_seed=None)
    privacy = made.manifest["privacy"]
    assert privacy["statement"].startswith("Replacing any one row by another makes any outcome")
    assert "the counts by sex of each state, which are known totals" in privacy["statement"]
    assert privacy["epsilon"] == "1/2"
    assert privacy["replacing"] == {"epsilon": "1"}
    # Tables that the known ones tell are not measured.
    measured = {(one["level"], one["query"]) for one in privacy["levels"]}
    assert not measured & {(0, "counts"), (0, "counts by sex"), (1, "counts"), (1, "counts by sex")}


def test_what_cannot_be_kept_is_refused_before_anything_is_paid() -> None:
    rows = people()
    for given, why in (
        ([totals(rows, 1, "sex"), totals(rows, 1, "age")], "by sex and by age|by age and by sex"),
        ([totals(rows, 2, "sex", "age")], "leave no row an alternative"),
        ([totals(rows, 1), totals(rows.slice(1), 0)], "contradict each other: those of total"),
        ([pa.table({"region": ["total/GA"], "count": [3]})], "lack regions"),
        ([pa.table({"region": ["total", "total/GA"], "count": [3, 3]})], "several levels"),
        ([pa.table({"region": ["total", "total"], "count": [3, 3]})], "a number twice"),
        ([pa.table({"sex": ["f", "x"], "count": [3, 3]})], "no value of sex"),
        ([pa.table({"colour": ["red"], "count": [3]})], "no attribute 'colour'"),
        ([pa.table({"count": ["-3"]})], "whole numbers"),
        ([pa.table({"region": ["total/XX"], "count": [3]})], "no region"),
    ):
        with pytest.raises((RequestError, InputError), match=why):
            release(*given)
    with pytest.raises(RequestError, match="not proved with delta"):
        release(totals(rows, 1), delta="1e-9")
    with pytest.raises(RequestError, match="contradict the rules"):
        release(totals(rows, 1, "age"), rule="age<15 => sex=f, age>=65")


def test_those_who_have_no_alternative_are_named() -> None:
    """With this rule children of a county are all girls: known totals by age say all of them."""
    made = release(totals(people(), 2, "age"), rule="age<15 => sex=f")
    assert "the only cell that known totals and rules leave" in made.manifest["privacy"]["alone"]
    assert held(made)


def brute_alternatives(known: list[Known], possible: Any) -> np.ndarray[Any, Any]:
    """Of each possible cell of each leaf: how many cells are counted by the same known numbers."""
    labels = {}
    for leaf in range(TREE.n_leaves):
        for cell in np.flatnonzero(possible):
            label = []
            for one in known:
                here = TREE.level_slice(one.level)
                region = np.searchsorted(TREE.leaf_ends[here], leaf, side="right")
                label.append((region, one.rows(VALUES)[cell]))
            labels[leaf, cell] = tuple(label)
    found = list(labels.values())
    return np.array([found.count(label) for label in found])


@pytest.mark.parametrize("seed", range(30))
def test_alternatives_are_found_as_by_looking_at_every_cell(seed: int) -> None:
    from tallytree.model.known import without_alternative

    rng = np.random.default_rng(seed)
    rules = [Rule("age<15 => sex=f"), Rule("age>=65 => sex=f"), Rule("age=15-64 => sex=m")]
    possible = possible_cells(VALUES, [rule for rule in rules if rng.random() < 0.5])
    truth = rng.integers(1, 9, (TREE.n_leaves, VALUES.n_cells)) * possible
    margin = [(), (0,), (1,), (0, 1)][rng.integers(4)]
    level = int(rng.integers(3))
    finest = Known(2, (0, 1), truth)
    sums = np.add.reduceat(finest.by(VALUES, margin), TREE.leaf_starts[TREE.level_slice(level)])
    given = [Known(level, margin, sums)]
    alternatives = brute_alternatives(given, possible)
    if (alternatives == 1).all():
        with pytest.raises(RequestError, match="no row an alternative"):
            settled_totals(TREE, VALUES, given, possible)
        return
    settled = settled_totals(TREE, VALUES, given, possible)
    assert brute_alternatives(list(settled), possible).tolist() == alternatives.tolist()
    some = without_alternative(TREE, VALUES, settled, possible)
    assert (some == "some") == (alternatives == 1).any()


@pytest.mark.proof
def test_rules_and_known_totals_hold_for_a_thousand_random_cases() -> None:
    public = read_table(people(), CellOptions(**ASKED), None).public
    rules = [Rule("age<15 => sex=f"), Rule("age>=65 => sex=m"), Rule("age=15-64 => sex=m")]
    margins: list[tuple[int, ...]] = [(), (0,), (1,)]
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        some = tuple(rule for rule in rules if rng.random() < 0.3)
        possible = possible_cells(VALUES, some)
        size = (TREE.n_leaves, VALUES.n_cells)
        truth = rng.poisson(rng.choice([0.3, 2.0, 30.0]), size) * possible
        leaves = Known(2, (0, 1), truth)
        # Coarser margins below: those of two levels need not agree, one may know more than another.
        first, second = (margins[one] for one in rng.integers(0, 3, 2))
        given = []
        for level, margin in ((2, ()), (1, first), (0, second))[rng.integers(0, 3) :]:
            sums = np.add.reduceat(
                leaves.by(VALUES, margin), TREE.leaf_starts[TREE.level_slice(level)]
            )
            given.append(Known(level, margin, sums))
        if len(given) > 1 and {first, second} == {(0,), (1,)}:
            with pytest.raises(RequestError, match="totals are known by"):
                settled_totals(TREE, VALUES, given, possible)
            continue
        try:
            known = settled_totals(TREE, VALUES, given, possible)
        except RequestError:
            assert (brute_alternatives(given, possible) == 1).all()
            continue
        facts = replace(public, rules=some, known=known)
        # The data are not those that the totals are of.
        data = rng.poisson(2, size) * possible
        cell = np.flatnonzero(data.ravel())
        counts = ConfidentialTable(facts, cell, data.ravel()[cell].astype(np.int64))
        made = tt.table(counts, tt.TableOptions(**ASKED, epsilon="1/4", insecure_seed=seed))
        assert made.plan.facts.known == known
        assert held(made)
        assert not made.cells().ravel()[~possible].any()


@pytest.mark.proof
@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": "1/2", "definition": "zcdp"}])
@pytest.mark.parametrize("unit", [{}, {"unit": "person", "contributions": 2}])
def test_the_loss_is_as_stated_for_every_replacement(loss: Any, unit: Any) -> None:
    """Also of rows that are replaced by such as the totals would not allow."""
    rng, rows = np.random.default_rng(2), people(n=6)
    given = [totals(people(), 1, "sex")]

    def run(table: pa.Table) -> Callable[[], tt.TableRelease]:
        asked = {**ASKED, "hierarchy": PUBLIC, "levels": ["county"], "known": given}
        return lambda: tt.table(table, **asked, **unit, **loss, insecure_seed=1)

    worst = Fraction(0)
    made, script = listen(run(rows), rng)
    definition = made.manifest["privacy"]["definition"]
    for place in range(4):
        for new in range(6):
            listed = rows.to_pylist()
            listed[place] = {**people(9).slice(new, 1).to_pylist()[0], "person": 10**6}
            other, again = replay(run(pa.Table.from_pylist(listed)), script)
            assert other.table().equals(made.table())
            assert other.manifest == made.manifest
            worst = max(worst, loss_between(script, again, definition))
    stated = Fraction(made.manifest["privacy"]["replacing"]["epsilon" if definition == "pure" else "rho"])  # fmt: skip
    assert 0 < worst <= stated


def test_a_release_with_known_totals_is_kept_checked_and_estimated_again(tmp_path: Path) -> None:
    pacsv.write_csv(totals(people(), 1, "sex"), tmp_path / "known.csv")
    made = release(str(tmp_path / "known.csv"), rule="age<15 => sex=f")
    folder = made.save(tmp_path / "out")
    assert tt.verify(folder)
    assert tt.load(folder).table().equals(made.table())
    assert tt.re_estimate(folder).table().equals(made.table())
    assert tt.plan(made, epsilon=1).epsilon == 0.5
    from tests.forging import forge

    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["known"][0]["counts"][0][0] += 1
    manifest["known"][1]["counts"][0][0] += 1
    forge(folder, manifest)
    assert not tt.verify(folder)

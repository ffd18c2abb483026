"""Declared impossibilities: no count breaks a rule, whatever the data, and nothing is lost by one."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import tallytree as tt
from tallytree.errors import InputError, RequestError
from tallytree.ingest.tables import read_table
from tallytree.lattice.axes import even_axis, plain_axis
from tallytree.lattice.tables import Axes, TableKey
from tallytree.lattice.zeros import given_zeros
from tallytree.model.confidential_table import ConfidentialTable
from tallytree.model.rules import Rule, possible_cells, rule_from
from tallytree.model.values import Values
from tallytree.options.tables import CellOptions
from tallytree.tables.estimate import Estimates
from tallytree.tables.measure import NoisyTable
from tallytree.tables.plan import plan_of_shares
from tests.attacks.transcript import listen, loss_between, replay
from tests.tables.test_estimate import TREE, plan, sums_matrix

BY = {"age": ["0-14", "15-64", "65+"], "marital": ["single", "married", "widowed"]}
VALUES = Values(
    ("age", "marital", "sex"),
    (("0-14", "15-64", "65+", "other"), ("single", "married"), ("f", "m")),
    ("age",),
)
YOUNG = "age<15 => marital=single"


def people(seed: int = 0, n: int = 400) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "state": rng.choice(["GA", "NY"], n),
            "age": rng.integers(0, 90, n),
            "marital": rng.choice(["single", "married", "widowed"], n),
            "person": rng.integers(0, 90, n),
        }
    )


def options(**more: Any) -> CellOptions:
    return CellOptions(levels=["state"], by=BY, closed=["age", "marital"], **more)


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("age<15 => marital=single", lambda age, marital, sex: age == 0 and marital == 1),
        ("age<=14 => marital=single", lambda age, marital, sex: age == 0 and marital == 1),
        ("age>=65 => sex=f", lambda age, marital, sex: age == 2 and sex == 1),
        ("age>64, sex=m => marital!=single", lambda age, marital, sex: (age, marital, sex) == (2, 0, 1)),
        ("age=0-14|65+ => sex=f, marital=single",
         lambda age, marital, sex: age in (0, 2) and (sex, marital) != (0, 0)),
        ("marital=married => age>14", lambda age, marital, sex: marital == 1 and age in (0, 3)),
    ],
)  # fmt: skip
def test_a_rule_forbids_what_it_says(text: str, broken: Callable[..., bool]) -> None:
    found = possible_cells(VALUES, [Rule(text)]).reshape(VALUES.shape)
    for cell in np.ndindex(VALUES.shape):
        assert found[cell] == (not broken(*cell))
    again = rule_from(json.loads(json.dumps(Rule(text).described())))
    assert again == Rule(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("age<15", "is no rule"),
        ("age<15 => single", "is no rule, for 'single'"),
        ("age<20 => marital=single", "cuts the class '15-64'"),
        ("marital<single => sex=f", "in no order"),
        ("age<young => sex=f", "has no value 'young'"),
        ("colour=red => sex=f", "no attribute 'colour'"),
        ("age=0-14 => marital=divorced", "has no value 'divorced'"),
    ],
)
def test_what_is_no_rule_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        possible_cells(VALUES, [Rule(text)])


def test_rules_that_contradict_each_other_are_refused_before_anything_is_paid() -> None:
    rules = [
        "age=0-14|15-64|other => age=65+",
        "age=65+ => marital=single",
        "marital=single => age<15",
    ]
    with pytest.raises(RequestError, match="contradict"):
        tt.table("missing.csv", levels=["state"], by=BY, rule=rules, epsilon=1)


def test_rows_that_break_a_rule_are_left_out_by_their_own_values_alone() -> None:
    rows = people()
    breaks = (rows["age"].to_numpy() < 15) & (np.array(rows["marital"].to_pylist()) != "single")
    exact = read_table(rows, options(rule=YOUNG), None)
    kept = read_table(rows.filter(pa.array(~breaks)), options(), None)
    assert np.array_equal(exact.cell, kept.cell)
    assert np.array_equal(exact.n, kept.n)
    assert dict(exact.altered.numbers)["rows that break a rule, left out"] == breaks.sum()
    # Of one person with many rows they take no place of those that count.
    bounded = read_table(rows, options(rule=YOUNG, unit="person", contributions=2), None)
    of_person = np.bincount(rows["person"].to_numpy()[~breaks])
    assert bounded.n.sum() == np.minimum(of_person, 2).sum()


def test_an_attribute_follows_from_another(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    industry = rng.choice(["11", "21", "31"], 300)
    sector = np.where(industry == "31", "plant", "land")
    sector[:5] = "plant"
    jobs = pa.table({"industry": industry, "sector": sector})
    listed = pa.table({"sector": ["land", "land", "plant"], "industry": ["11", "21", "31"]})
    pacsv.write_csv(listed, tmp_path / "sectors.csv")
    by = {"industry": ["11", "21", "31"], "sector": ["land", "plant"]}
    made = tt.table(
        jobs,
        by=by,
        closed=list(by),
        rules=str(tmp_path / "sectors.csv"),
        epsilon=1,
        insecure_seed=1,
    )
    cells = made.cells()
    assert cells[0, 1] == cells[1, 1] == cells[2, 0] == 0
    assert made.count(sector="land") == made.count(industry="11") + made.count(industry="21")
    assert made.answer(where={"industry": "11", "sector": "plant"}).std_error == 0
    assert "3 possible combinations of sector, industry" in made.manifest["public"]["rules"]


def test_a_file_has_a_rule_per_line(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text(f"# of people\n{YOUNG}\n\nage>=65 => marital!=single  # for a test\n")
    found = read_table(people(), options(rules=str(file), rule=YOUNG), None).public.rules
    assert [rule.text for rule in found] == [YOUNG, "age>=65 => marital!=single"]
    for wrong in ("missing.txt", "missing.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            read_table(people(), options(rules=str(tmp_path / wrong)), None)


@pytest.mark.parametrize("seed", range(12))
def test_cells_that_are_zero_are_fitted_as_by_dense_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = Axes((plain_axis(3), even_axis(6, (2,))))
    precision = np.repeat(rng.uniform(0.1, 9, (4, len(axes.partitions))), 1, axis=0)
    precision = precision[:, axes.component]
    numbers, possible = rng.normal(size=(4, axes.n_cells)), rng.random(axes.n_cells) < 0.6
    found = axes.restored(given_zeros(axes, numbers, precision, possible))
    basis = axes.restored(np.eye(axes.n_cells)).T
    for region in range(4):
        # (x − t)' H' π H (x − t) least, over the cells that are possible.
        known = basis @ np.diag(precision[region]) @ basis.T
        cells = basis @ numbers[region]
        some = np.flatnonzero(possible)
        best = np.zeros(axes.n_cells)
        best[some] = np.linalg.solve(known[np.ix_(some, some)], known[some] @ cells)
        np.testing.assert_allclose(found[region], best, atol=1e-6)


def some_rules(rng: np.random.Generator) -> list[str]:
    """Rules that leave something: whatever they give, single people of 15 to 64 are never in it."""
    ages, states = ["0-14", "65+", "other"], ["married", "widowed", "other"]
    found = []
    for _ in range(rng.integers(1, 4)):
        age, other = rng.choice(ages), rng.choice(["single", *states])
        if rng.random() < 0.5:
            found.append(f"age={age} => marital{rng.choice(['=', '!='])}{other}")
        else:
            found.append(f"marital={rng.choice(states)} => age{rng.choice(['=', '!='])}{age}")
    return found


@pytest.mark.proof
def test_no_count_and_no_synthetic_row_breaks_any_of_a_hundred_sets_of_rules(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(5)
    every = read_table(people(), CellOptions(levels=["state"], by=BY), None)
    for seed in range(100):
        rules = some_rules(rng)
        asked: dict[str, Any] = {"levels": ["state"], "by": BY, "rule": rules}
        facts = replace(every.public, rules=tuple(map(Rule, rules)))
        possible = possible_cells(facts.values, facts.rules)
        there = possible[every.cells()]
        counts = ConfidentialTable(facts, every.cell[there], every.n[there])
        made = tt.table(counts, **asked, epsilon="1/2", insecure_seed=seed)
        assert made.verify()
        for region in ("total", "total/GA", "total/NY"):
            assert not made.cells(region).ravel()[~possible].any()
        if seed % 25 == 0:
            tt.microdata(made, out=tmp_path / str(seed))
            written = pq.read_table(tmp_path / str(seed) / "synthetic_rows.parquet")
            exact = read_table(written, CellOptions(**asked), None)
            assert exact.n.sum() == made.count()
            assert dict(exact.altered.numbers) == {"rows that break a rule, left out": 0}


@pytest.mark.proof
@pytest.mark.parametrize("loss", [{"epsilon": 1}, {"rho": "1/2", "definition": "zcdp"}])
@pytest.mark.parametrize("unit", [{}, {"unit": "person", "contributions": 2}])
def test_the_loss_is_as_stated_for_every_neighbour(loss: Any, unit: Any) -> None:
    """Of all people who may go, those too whose rows break a rule; no answer shows which."""
    rng, rows = np.random.default_rng(2), people(n=10)
    public = pa.table({"state": ["GA", "NY"]})

    def run(table: pa.Table) -> Callable[[], tt.TableRelease]:
        asked: dict[str, Any] = {"levels": ["state"], "by": BY, "rule": YOUNG, "hierarchy": public}
        return lambda: tt.table(table, **asked, **unit, **loss, insecure_seed=1)

    worst = Fraction(0)
    made, script = listen(run(rows), rng)
    definition = made.manifest["privacy"]["definition"]
    person = rows["person"].to_numpy()
    for one in np.unique(person) if unit else range(len(rows)):
        rest = person != one if unit else np.arange(len(rows)) != one
        other, again = replay(run(rows.filter(pa.array(rest))), script)
        assert other.table().equals(made.table())
        assert other.manifest == made.manifest
        worst = max(worst, loss_between(script, again, definition))
    stated = Fraction(made.manifest["privacy"]["epsilon" if definition == "pure" else "rho"])
    assert 0 < worst <= stated


def test_a_release_with_rules_is_kept_checked_and_estimated_again(tmp_path: Path) -> None:
    made = tt.table(people(), levels=["state"], by=BY, rule=YOUNG, epsilon=1, insecure_seed=1)
    folder = made.save(tmp_path / "out")
    loaded = tt.load(folder)
    assert tt.verify(folder)
    assert loaded.table().equals(made.table())
    assert tt.re_estimate(folder).table().equals(made.table())
    # Numbers of impossible cells alone are not drawn, so that none stands in the file.
    finest = made.plan.tables[-1].key.parts
    assert len(made.plan.drawn(finest)) == 4 * 4 - 3
    assert tt.evaluate(loaded, people()).to_json() == tt.evaluate(made, people()).to_json()
    from tests.forging import forge

    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["rules"] = [{"rule": "age<15 => marital=married"}]
    forge(folder, manifest)
    assert not tt.verify(folder)


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(4))
def test_on_a_tree_errors_are_near_those_of_least_squares_over_possible_cells(seed: int) -> None:
    """Rules are applied region by region: of one region alone that is exact, on a tree nearly so."""
    rng = np.random.default_rng(seed)
    axes = Axes((plain_axis(3), plain_axis(4)))
    keys = [TableKey(level, parts) for level in range(3) for parts in axes.partitions]
    made = plan(axes, sorted({TableKey(2, axes.finest), *(k for k in keys if rng.random() < 0.6)}))
    possible = np.ones((3, 4), dtype=bool)
    possible[[0, 1, 2, 2], [0, 2, 1, 3]] = False
    listed = tuple((str(a), str(b)) for a, b in np.argwhere(possible))
    facts = replace(made.facts, rules=(Rule("", ("a", "b"), listed),))
    ruled = plan_of_shares(facts, axes, made.budget, made.shares)
    matrix = np.concatenate([sums_matrix(axes, table.key, TREE) for table in made.tables])
    weight = np.concatenate([
        np.full(TREE.level_size(table.key.level) * axes.n_rows(table.key.parts),
                1 / table.noise.variance) for table in made.tables])  # fmt: skip

    def fitted(columns: Any) -> Any:
        some = matrix[:, columns]
        return np.linalg.solve(some.T @ (weight[:, None] * some), some.T * weight)

    there = np.tile(possible.ravel(), TREE.n_leaves)
    least, free = fitted(there), fitted(np.ones(len(there), dtype=bool))
    errors: list[list[Any]] = [[], [], []]
    for _ in range(100):
        noise, noisy, drawn = rng.normal(size=len(weight)) / np.sqrt(weight), [], 0
        for table in ruled.tables:
            size = (TREE.level_size(table.key.level), axes.n_rows(table.key.parts))
            values = np.zeros(size)
            rows = ruled.drawn(table.key.parts)
            part = noise[drawn : drawn + size[0] * size[1]]
            values[:, rows] = part.reshape(size)[:, rows]
            part[:] = values.ravel()
            drawn += len(part)
            noisy.append(NoisyTable(table.key, np.rint(values * 1e4).astype(np.int64)))
        exact = np.zeros(len(there))
        exact[there] = least @ noise
        ours = axes.restored(Estimates(ruled, noisy).of(0, 0, 1))[0] / 1e4
        for found, cells in zip(errors, (ours, exact, free @ noise)):
            table_of = cells.reshape(-1, 3, 4).sum(axis=0)
            margins = [table_of.sum(axis=0), table_of.sum(axis=1), [table_of.sum()]]
            found.append(np.concatenate([table_of[possible], *margins]))
    mean = [np.log((np.array(found) ** 2).mean(axis=0)).mean() / 2 for found in errors]
    assert mean[0] < mean[2] - 0.02
    assert mean[1] - 1e-3 < mean[0] < mean[1] + 0.1

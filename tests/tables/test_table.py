"""A table from rows to answers."""

import dataclasses
import json
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.errors import RequestError, VerificationError
from tallytree.ingest.tables import read_table, values_of
from tallytree.lattice.tables import TableKey
from tallytree.model.confidential_table import PublicTable
from tallytree.model.values import Values
from tallytree.options.tables import CellOptions
from tallytree.tables.cells import LevelCells
from tallytree.tables.plan import axes_of, query_name
from tallytree.tables.release import NOT_FOLLOWED, table_release

RNG = np.random.default_rng(3)
N = 3000
PEOPLE = pa.table(
    {
        "state": RNG.choice(["GA", "NY"], N),
        "county": RNG.choice(["a", "b", "c"], N),
        "sex": RNG.choice(["f", "m", "x"], N),
        "age": RNG.integers(0, 40, N),
        "person": RNG.integers(0, 900, N),
    }
)
BY = {"sex": ["f", "m"], "age": [*map(str, range(31))]}
ASKED = {"levels": ["state", "county"], "by": BY, "classes": {"age": ["0-17", "18-30"]}}


def release(**more: object) -> tt.TableRelease:
    return tt.table(PEOPLE, **{**ASKED, "epsilon": 1, "insecure_seed": 1, **more})


def test_rows_are_counted_exactly() -> None:
    exact = read_table(PEOPLE, CellOptions(**ASKED), None)
    frame = PEOPLE.to_pylist()
    values, tree = exact.public.values, exact.public.hierarchy
    assert exact.n.sum() == N
    for leaf, cell, n in zip(exact.leaves(), exact.cells(), exact.n):
        path = tree.paths[tree.level_starts[-2] + leaf].split("/")[1:]
        sex, age = values.labels_of(int(cell))
        rows = [
            row
            for row in frame
            if [row["state"], row["county"]] == path
            and (row["sex"] if row["sex"] in "fm" else "other") == sex
            and (str(row["age"]) if row["age"] <= 30 else "other") == age
        ]
        assert len(rows) == n


def test_rows_on_no_list_are_left_out_of_closed_attributes() -> None:
    exact = read_table(PEOPLE, CellOptions(**ASKED, closed=["sex", "age"]), None)
    frame = PEOPLE.to_pylist()
    inside = [row for row in frame if row["sex"] in "fm" and row["age"] <= 30]
    assert exact.n.sum() == len(inside)
    assert exact.public.values.shape == (2, 31)
    assert dict(exact.altered.numbers) == {
        "rows with a value on no list, left out": N - len(inside)
    }


def test_no_number_is_too_large_or_too_small_to_be_counted() -> None:
    """An error would tell of a single row that its number is odd."""
    odd = [0.5, 17.9, 18.0, float("nan"), float("inf"), -float("inf"), 1e300, -1e300, -0.1, None]
    for numbers, by, counts in (
        (pa.array(odd), ["0-17", "18+"], [2, 3, 5]),
        (pa.array(odd), ["0-17", "18-99"], [2, 1, 7]),
        (pa.array(odd), ["17", "18"], [1, 1, 8]),
        (pa.array([2**63 + 5, 17, 18], pa.uint64()), ["0-17"], [*[0] * 17, 1, 2]),
        (pa.array([2**63 + 5, 17, 18], pa.uint64()), ["10-17", "18+"], [1, 2, 0]),
        (pa.array([-(2**63), 2**63 - 1, 3], pa.int64()), ["1-2", "3-5"], [0, 1, 2]),
        (pa.array(["1e30", "17.5", "-3"]).cast(pa.decimal128(38, 2)), ["0-17", "18+"], [1, 1, 1]),
    ):
        exact = read_table(pa.table({"age": numbers}), CellOptions(by={"age": by}), None)
        found = np.zeros(len(counts), dtype=np.int64)
        found[exact.cell] = exact.n
        assert found.tolist() == counts


def test_rows_alone_are_counted_without_attributes_or_regions() -> None:
    assert read_table(pa.table({"a": ["x", "y"]}), CellOptions(), None).n.tolist() == [2]


def test_a_list_of_one_value_is_that_value() -> None:
    assert values_of(CellOptions(by={"a": ["x, y"]})).values == (("x, y", "other"),)
    assert values_of(CellOptions(by={"a": "x, y"})).values == (("x", "y", "other"),)


@pytest.mark.parametrize(
    "asked",
    [
        {"by": {"a": ["other"]}},
        {"by": {"a": ["x", "other"]}, "closed": "a"},
        {"by": {"": ["x"]}},
    ],
)
def test_attributes_that_count_nothing_are_refused(asked: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        values_of(CellOptions(**asked))


def test_intervals_of_noise_that_is_hardly_there() -> None:
    made = tt.table(PEOPLE, **ASKED, epsilon=1_000_000)
    found = made.answer()
    assert (found.low, found.estimate, found.high) == (N, N, N)


def test_of_a_unit_so_many_rows_count() -> None:
    exact = read_table(PEOPLE, CellOptions(**ASKED, unit="person", contributions=2), None)
    people = np.bincount(PEOPLE["person"].to_numpy())
    assert exact.n.sum() == np.minimum(people, 2).sum()
    closed = CellOptions(**ASKED, unit="person", contributions=2, closed=["sex"])
    listed = np.isin(PEOPLE["sex"].to_pylist(), ["f", "m"])
    inside = np.bincount(PEOPLE["person"].to_numpy()[listed])
    assert read_table(PEOPLE, closed, None).n.sum() == np.minimum(inside, 2).sum()


def test_rows_that_stand_for_many() -> None:
    rows = pa.table({"state": ["GA", "GA", "NY"], "sex": ["f", "f", "m"], "n": [3, 4, 0]})
    exact = read_table(rows, CellOptions(levels=["state"], by=["sex=f,m"], count="n"), None)
    assert exact.n.tolist() == [7]


def test_every_table_adds_up_and_is_near_the_truth() -> None:
    made = release()
    assert made.verify()
    errors = tt.evaluate(made, PEOPLE)
    assert all(one.mean_error < 4 * one.std_error for one in errors.margins)
    for by in ([], ["sex"], ["age"], ["sex", "age"]):
        for level in ("total", "state", "county"):
            total = sum(made.table(by=by, level=level)["count"].to_pylist())
            assert total == made.count()
    young = sum(made.count("total/GA", age=str(age)) for age in range(18))
    assert made.count("total/GA", age="0-17") == young == made.count("total/GA", age="0–17")


def test_answers_have_intervals_that_hold() -> None:
    exact = read_table(PEOPLE, CellOptions(**ASKED), None)
    ages = PEOPLE["age"].to_numpy()
    inside = 0
    for seed in range(40):
        made = tt.table(exact, tt.TableOptions(**ASKED, epsilon=1, insecure_seed=seed))
        answer = made.answer(where={"age": "5-17"})
        inside += answer.low <= np.count_nonzero((ages >= 5) & (ages <= 17)) <= answer.high
    assert inside >= 33


def test_a_saved_table_is_the_same(tmp_path: Path) -> None:
    made = release()
    made.save(tmp_path / "out")
    loaded = tt.load(tmp_path / "out")
    assert loaded.table().equals(made.table())
    assert tt.re_estimate(tmp_path / "out").table().equals(made.table())
    assert loaded.attributes == made.attributes
    for word in ("group", "size"):
        text = (tmp_path / "out" / "manifest.json").read_text()
        assert word not in text.replace('"group": null', "")


def test_a_changed_share_is_noticed(tmp_path: Path) -> None:
    from tests.forging import forge

    made = release()
    folder = made.save(tmp_path / "out")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["privacy"]["levels"][0]["share"] = "1/7"
    forge(folder, manifest)
    assert not tt.verify(folder)


def test_questions() -> None:
    made = release()
    reply = tt.ask(made, region="total/GA", where=["age=18-30"], by=["sex"])
    assert [row[0] for row in reply.rows] == ["f", "m", "other"]
    assert reply.rows[0][1] == made.count("total/GA", age="18-30", sex="f")
    both = tt.ask(made, region=["total/GA", "total/NY"], total=True)
    assert both.rows[0][0] == made.count()
    with pytest.raises(RequestError, match="has no value"):
        made.count(sex="q")
    with pytest.raises(RequestError, match="There is no attribute"):
        made.count(colour="red")
    with pytest.raises(RequestError, match="under --by and under --where"):
        tt.ask(made, where=["sex=f"], by=["sex"])


def test_numbers_are_counted_in_classes_whatever_type_they_are_written_in(tmp_path: Path) -> None:
    import pyarrow.csv

    classes = CellOptions(levels=["state"], by=["age=0-17,18-30,31+", "sex=f,m,x"])
    pyarrow.csv.write_csv(PEOPLE, tmp_path / "people.csv")
    floats = PEOPLE.set_column(3, "age", PEOPLE["age"].cast(pa.float64()))
    names = np.array(["0-17", "18-30", "31+"])[np.searchsorted([18, 31], PEOPLE["age"], "right")]
    named = PEOPLE.set_column(3, "age", pa.array(names))
    found = [
        read_table(rows, classes, None)
        for rows in (PEOPLE, str(tmp_path / "people.csv"), floats, named)
    ]
    assert len(found[0].n) == 18
    for other in found[1:]:
        assert np.array_equal(found[0].cell, other.cell)
        assert np.array_equal(found[0].n, other.n)


def test_a_wish_moves_the_budget() -> None:
    every, some = release(), release(want=["county:age"])
    assert _error(some, "county", ("age",)) < _error(every, "county", ("age",))


def _error(made: tt.TableRelease, level: str, by: tuple[str, ...]) -> float:
    margins = tt.evaluate(made, PEOPLE).margins
    return next(one.std_error for one in margins if (one.level, one.by) == (level, by))


def test_a_plan_says_what_a_release_states() -> None:
    made = release()
    prediction = tt.plan(made, epsilon=1)
    stated = [one.std_error for one in tt.evaluate(made, PEOPLE).margins]
    np.testing.assert_allclose([one.std_error for one in prediction.tables], stated)
    found = tt.plan(made, target="state: sex within 5 % in 90 % of cells")
    assert found.share is not None
    assert 0.9 <= found.share < 0.93


def test_synthetic_rows_tabulate_to_the_release(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    made = release()
    tt.microdata(made, out=tmp_path / "rows")
    rows = pq.read_table(tmp_path / "rows" / "synthetic_rows.parquet")
    exact = read_table(rows, CellOptions(**ASKED), None)
    assert np.array_equal(exact.cell, made.levels[-1].cell)
    assert np.array_equal(exact.n, made.levels[-1].n)


def test_two_releases_compare() -> None:
    found = tt.compare(release(), release(insecure_seed=2))
    assert sum(one.clear for one in found.levels) <= 3
    assert set(found.table["sex"].to_pylist()) == {"f", "m", "other", "all"}


def test_words_of_attributes() -> None:
    found = values_of(CellOptions(by=["age=0-4,5-17,65+", "grade=low,high"], ordered=["grade"]))
    assert found.ordered == ("age", "grade")
    assert found.places("age", "5-17").tolist() == [1]
    assert found.places("grade", "low-high").tolist() == [0, 1]
    for wrong in ("age", "=a", "age=", "age=1,1"):
        with pytest.raises(RequestError):
            values_of(CellOptions(by=[wrong]))
    with pytest.raises(RequestError, match="no attribute"):
        values_of(CellOptions(by=["sex=f,m"], closed=["age"]))


def test_what_covers_nobody_is_refused() -> None:
    with pytest.raises(RequestError, match="cover nobody"):
        tt.table(PEOPLE, levels=["county"], by=["sex=f,m"], unit="county", epsilon=1)
    with pytest.raises(RequestError, match="cells, more than"):
        tt.table(PEOPLE, by={f"a{n}": [str(v) for v in range(40)] for n in range(4)}, epsilon=1)


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    made = release()
    folder = made.save(tmp_path / "out")
    import pyarrow.parquet as pq

    rows = pq.read_table(folder / "counts.parquet")
    pq.write_table(rows.slice(1), folder / "counts.parquet")
    with pytest.raises(VerificationError):
        tt.load(folder).table()


def test_no_two_tables_ask_the_same_in_words() -> None:
    """Noise is drawn by a question's words: one that was asked before is refused."""
    texts = [*"xyzuvw"]
    names = ["a", "b", "a, b", "a in 3 classes", '"a, b"', 'a", "b']
    rows = pa.table({name: RNG.choice(texts, 20) for name in names})
    by = dict.fromkeys(names[:3], texts)
    made = tt.table(rows, by=by, rho=1, definition="zcdp")
    assert made.verify()
    tree, axes = made.hierarchy, axes_of(Values(tuple(names), ((*texts, "other"),) * len(names)))
    facts = PublicTable(tree, Values(tuple(names), ((*texts, "other"),) * len(names)))
    plan = dataclasses.replace(made.plan, facts=facts, axes=axes)
    asked = [query_name(plan, TableKey(0, parts)) for parts in product((0, 1), repeat=len(names))]
    assert len(set(asked)) == len(asked) == 2 ** len(names)


def test_counts_that_do_not_follow_from_the_noisy_answers_are_found(tmp_path: Path) -> None:
    """Forged so that they add up, under checksums of their own."""
    made = release()
    leaves = made.levels[-1]
    n = leaves.n.copy()
    n[:2] += np.array([4, 2])
    forged = table_release(made.plan, LevelCells(leaves.cell, n), made.manifest, made.noisy)
    forged.save(tmp_path / "forged")
    found = tt.verify(tmp_path / "forged")
    assert [check.name for check in found.checks if not check.passed] == [
        "counts follow from the noisy answers"
    ]


def test_counts_that_are_too_many_to_be_followed_are_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = release().save(tmp_path / "out")
    assert NOT_FOLLOWED not in tt.verify(folder).notes
    monkeypatch.setattr("tallytree.tables.release.MOST_FOLLOWED", 1)
    found = tt.verify(folder)
    assert found.passed
    assert NOT_FOLLOWED in found.notes


def test_all_values_are_told_from_a_value_called_all() -> None:
    texts = RNG.choice(["all", "x"], 50)
    rows = pa.table({"share": texts, "first": texts})
    by = {"share": ["all", "x"], "first": ["all", "x"]}
    made = tt.table(rows, by=by, closed=["share", "first"], epsilon=60, insecure_seed=1)
    of_all = int(np.count_nonzero(texts == "all"))
    reply = tt.ask(made)
    assert [row[:3] for row in reply.rows[:2]] == [
        ["all values", "all values", 50],
        ["all", "all values", of_all],
    ]
    (answer, _) = tt.ask(made, by=["share"], share=True).facts["answers"]
    assert (answer["share_"], answer["share"]) == ("all", of_all / 50)
    columns = tt.compare(made, made).table.column_names
    assert {"share", "first_", "first", "second", "difference"} <= set(columns)

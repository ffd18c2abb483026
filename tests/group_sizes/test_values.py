"""Tables of values: exact steps, what is left out, statistics beside brute force, words, verbs."""

import json
import math
from bisect import bisect_right
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.cli import main
from tallytree.errors import RequestError
from tallytree.group_sizes.values.release import ValuesRelease
from tallytree.group_sizes.values.report import values_payload
from tallytree.group_sizes.values.statistics import RegionValues, statistic_names, statistics_of
from tallytree.ingest.read import read_values
from tallytree.kinds.showing import report_html
from tallytree.model.scale import value_scale
from tallytree.options.exporting import ShapesOptions
from tallytree.options.values import ValuesOptions

HOW: dict[str, Any] = {"value": "v", "step": 10, "max": 1000, "levels": ["county"]}


def incomes(n: int = 3_000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "v": np.round(np.exp(5 + 0.6 * rng.standard_normal(n)), 2),
            "county": [f"c{number % 4}" for number in range(n)],
            "sex": ["f" if number % 3 else "m" for number in range(n)],
            "person": [number // 2 for number in range(n)],
        }
    )


def released(table: pa.Table | None = None, **options: Any) -> ValuesRelease:
    options = {**HOW, "epsilon": 2, "insecure_seed": 3, "intervals": 4} | options
    return tt.values(incomes() if table is None else table, **options)


def exact(values: Any, **options: Any) -> list[tuple[float, int]]:
    """The values that were counted, and how often."""
    table = pa.table({"v": values})
    asked = ValuesOptions(**({"value": "v", "step": 1, "max": 10} | options))
    counts = read_values(table, asked)
    scale = counts.public.scale
    assert scale is not None
    return [
        (scale.value(int(size)), int(count))
        for size, count in zip(counts.leaf_counts.size, counts.leaf_counts.count)
    ]


@pytest.mark.parametrize("step", ["0.1", "0.01", "0.3", "1/3", "7", "0.125", "1/7"])
def test_values_are_rounded_down_exactly(step: str) -> None:
    size = Fraction(step)
    borders = [float(number * size) for number in range(-30, 61)]
    beside = [np.nextafter(border, way) for border in borders for way in (-np.inf, np.inf)]
    values = [*borders, *beside, 0.1 + 0.2, 1.1 * 1.1]
    scale = value_scale("v", step=step, least=-20 * size, largest=50 * size)
    found = dict(exact(values, step=step, min=-20 * size, max=50 * size))
    slow: dict[float, int] = {}
    for value in values:
        number = min(max(bisect_right(borders, value) - 1, 10), 80)
        slow[borders[number]] = slow.get(borders[number], 0) + 1
    assert found == slow
    assert scale.steps(scale.values(np.arange(71))).tolist() == list(range(71))


def test_what_is_no_number_is_left_out_and_bounds_hold_without_a_word() -> None:
    values = [None, float("nan"), float("inf"), float("-inf"), -3.0, 4.99, 1e300]
    assert exact(values) == [(0, 2), (4, 1), (10, 2)]
    assert exact(["7", "x", "", None, "3.5", "1e400"]) == [(3, 1), (7, 1), (10, 1)]
    assert exact([None, None]) == []
    assert exact(pa.array([2, 3], pa.int32()), min=-5, step=5) == [(0, 2)]
    assert exact([-7.5, -0.1], min=-10) == [(-8, 1), (-1, 1)]


def test_so_many_rows_of_a_unit_count_and_which_follow_from_its_own_rows() -> None:
    def steps(table: pa.Table) -> np.ndarray:
        asked = ValuesOptions(**HOW, unit="person", contributions=2)
        return read_values(table, asked).leaf_counts.dense(100)

    rng = np.random.default_rng(1)
    rows = pa.table(
        {
            "v": np.append(rng.integers(0, 1000, 60).astype(float), [np.nan] * 4),
            "county": [f"c{number % 2}" for number in range(64)],
            "person": rng.integers(0, 12, 64),
        }
    )
    whole = steps(rows)
    people = rows["person"].to_numpy()
    for person in range(12):
        own = rows.filter(pa.array(people == person))
        n_own = int((~np.isnan(own["v"].to_numpy())).sum())
        without = steps(rows.filter(pa.array(people != person)))
        assert (whole - without).min() >= 0
        assert (whole - without).sum() == min(2, n_own)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.sampled_from(["1", "1/2", "10"]))
def test_statistics_are_those_of_the_rows(rows: list[int], step: str) -> None:
    scale = value_scale("v", step=step, least=0, largest=40 * Fraction(step))
    steps, count = np.unique(rows, return_counts=True)
    region = RegionValues("here", scale, steps, count)
    values = np.sort([number * float(Fraction(step)) for number in rows])
    found = dict(zip(statistic_names(scale), statistics_of(region)))
    assert found["rows"] == len(rows)
    np.testing.assert_allclose(found["sum"], values.sum())
    np.testing.assert_allclose(found["mean"], values.mean())
    for q, name in ((0.1, "quantile_0.1"), (0.5, "median"), (0.9, "quantile_0.9")):
        assert found[name] == values[max(1, math.ceil(q * len(rows))) - 1]
    pairs = sum(abs(a - b) for a, b in combinations(values, 2))
    gini = pairs / (len(rows) * values.sum()) if values.sum() else 0
    np.testing.assert_allclose(found["gini"], gini, atol=1e-9)
    # The top tenth, of which the last row may count in part.
    wanted, top = len(rows) / 10, 0.0
    for value in values[::-1]:
        top += value * min(1, wanted)
        wanted = max(0, wanted - 1)
    share = top / values.sum() if values.sum() else 0.1
    np.testing.assert_allclose(found["top_tenth_share"], share, atol=1e-9)
    assert region.at_least(values[0]) == len(rows)
    assert region.between(values[0], values[0]) == (values == values[0]).sum()


def test_a_region_without_rows_has_counts_and_sums_alone() -> None:
    scale = value_scale("v", step=1, least=-2, largest=3)
    none = RegionValues("nowhere", scale, np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert "gini" not in statistic_names(scale)
    assert statistics_of(none)[:2].tolist() == [0, 0]
    assert np.isnan(statistics_of(none)[2:]).all()
    with pytest.raises(RequestError, match="has no rows"):
        none.mean()
    one = RegionValues("here", scale, np.array([1]), np.array([1]))
    with pytest.raises(RequestError, match="below 0"):
        one.gini()


def test_a_release_is_kept_checked_and_estimated_again(tmp_path: Path) -> None:
    made = released(by={"sex": ["f", "m"]}, out=tmp_path / "out", closed=["sex"])
    loaded = tt.load(tmp_path / "out")
    assert loaded.table(by="sex").equals(made.table(by="sex"))
    assert loaded.statistics_table().equals(made.statistics_table())
    assert loaded.manifest["values"] == {
        "column": "v",
        "step": "10",
        "least": "0",
        "largest": "1000",
    }
    again = tt.re_estimate(tmp_path / "out")
    assert again.table(by="sex").equals(made.table(by="sex"))
    values = made.table()["value"].to_numpy()
    assert values.min() >= 0
    assert values.max() <= 1000
    assert not (values % 10).any()


def test_statistics_that_do_not_follow_are_refused(tmp_path: Path) -> None:
    made = released(intervals=0)
    made.statistics.value.flags.writeable = True
    made.statistics.value[0, 2] += 10
    assert not made.verify()
    made.save(tmp_path / "out")
    assert not tt.verify(tmp_path / "out")


def texts_in(facts: Any) -> list[str]:
    """All texts of JSON facts, without the names that programs know them by."""
    if isinstance(facts, dict):
        facts = list(facts.values())
    if isinstance(facts, list | tuple):
        return [text for one in facts for text in texts_in(one)]
    return [facts] if isinstance(facts, str) else []


def test_values_are_spoken_of_and_no_groups_or_sizes(tmp_path: Path) -> None:
    made = released(by={"sex": ["f", "m"]}, out=tmp_path / "out", insecure_seed=None)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["privacy"]["unit"].pop("group") is None
    tables = list(manifest["files"])
    texts = [
        json.dumps(manifest),
        *texts_in(values_payload(made)),
        repr(made),
        made._repr_html_(),
        *tables,
        *tt.ask(made, total=True, at_least=20).facts,
        *(check.name for check in tt.verify(tmp_path / "out").checks),
    ]
    for file in tables:
        texts += pa.parquet.read_table(tmp_path / "out" / file).column_names  # type: ignore[attr-defined]
    for path in (tmp_path / "export.csv", tmp_path / "sheet.json"):
        form = "csv" if path.suffix == ".csv" else "json-stat"
        texts.append(Path(tt.export(made, out=str(path), format=form)).read_text())
    texts += [file.read_text() for file in tt.card(tmp_path / "out")]
    for text in texts:
        assert "group" not in text.lower(), text[:200]
        assert " size" not in text.lower(), text[:200]
    assert "rounded down to a multiple of 10" in made.manifest["privacy"]["statement"]
    assert "from 0 to 1,000" in made.manifest["privacy"]["statement"]
    assert "alone in a region" in made.manifest["privacy"]["statement"]


def test_questions_have_answers_and_intervals() -> None:
    made = released(min=-20)
    region = made.region("total/c1")
    facts = tt.ask(made, region="total/c1", mean=True, total=True, quantile=0.25).facts
    assert facts["mean v"] == region.mean()
    assert facts["rows"] == region.n_rows
    assert facts["quantile 0.25 of v"] == region.quantile(0.25)
    asked = tt.ask(made, region=["total/c1", "total/c2"], at_least=100, share=True, copies=4)
    (words,) = asked.facts["intervals"]
    ends = asked.facts["intervals"][words]
    assert 0 <= ends["low"] <= ends["high"] <= 1
    everything = tt.ask(made).facts["statistics"]
    assert [one["statistic"] for one in everything] == list(made.statistics.names)
    assert all(one["low"] <= one["high"] for one in everything)
    both = tt.ask(made, region=["total/c1", "total/c2"]).facts["statistics"]
    assert "low" not in both[0]
    with pytest.raises(RequestError, match="have their intervals in the release"):
        tt.ask(made, copies=4)
    with pytest.raises(RequestError, match="share is one of rows"):
        tt.ask(made, share=True)


def test_the_other_verbs(tmp_path: Path) -> None:
    first, second = released(), released(incomes(seed=1), insecure_seed=4, intervals=0)
    errors = tt.evaluate(first, incomes())
    medians = {one.name: one for one in errors.levels if one.statistic == "median"}
    assert medians["total"].relative_error < 0.03
    assert errors.to_json()["warning"]
    predicted = tt.plan(first, epsilon=8, runs=1)
    assert [one.name for one in predicted.levels] == [one.name for one in errors.levels]
    changes = tt.compare(first, second, copies=2)
    assert changes.table.num_rows == 5 * len(first.statistics.names)
    assert "statistic" in changes.table.column_names
    with pytest.raises(RequestError, match="other steps or bounds"):
        tt.compare(first, released(step=20))
    assert "by v" in str(first.plot().content)
    assert "Gini" in json.dumps(values_payload(first), ensure_ascii=False)
    with pytest.raises(RequestError, match="--entity"):
        report_html(first, None, tt_page(group_name="x"))
    with pytest.raises(RequestError, match="--shapes"):
        tt.export(first, out=str(tmp_path / "x.geojson"), format="geojson")
    with pytest.raises(RequestError, match="repeat each row"):
        tt.microdata(first, out=tmp_path / "rows")


def tt_page(**look: Any) -> Any:
    from tallytree.options.asking import PageOptions

    return PageOptions(**look)


def test_medians_go_out_with_outlines(tmp_path: Path) -> None:
    square = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    shapes = {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "id": f"c{place}",
                "properties": {},
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [[[x + place, y] for x, y in square]],
                },
            }
            for place in range(4)
        ],
    }
    file = tmp_path / "counties.json"
    file.write_text(json.dumps(shapes))
    made, outlines = released(), ShapesOptions(shapes=str(file))
    written = tt.export(
        made, out=str(tmp_path / "m.geojson"), format="geojson", shapes=outlines.shapes
    )
    properties = json.loads(Path(written).read_text())["features"][0]["properties"]
    assert properties["median"] == made.region(properties["region"]).median()
    assert properties["median_low"] <= properties["median_high"]
    payload = values_payload(made, tt_page(shapes=str(file)))
    assert len(payload["outlines"]["members"]) == 4


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"step": 0}, "above 0"),
        ({"step": "x"}, "step= is a number"),
        ({"max": 1005}, "multiple of step="),
        ({"max": -10}, "max= is above min="),
        ({"step": "0.00001"}, "steps from min= to max="),
        ({"value": None}, "value= (--value) is missing"),
        ({"step": None}, "step= (--step) is missing"),
        ({"by": "sex"}, "give them, sex=VALUE,VALUE"),
        ({"by": "sex=f", "closed": "age"}, "closed= names 'age'"),
        ({"unit": "county", "contributions": 3}, "promise would cover nobody"),
        ({"unit": "group"}, "protects whole groups"),
        ({"root": ""}, "root= is the label"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message.replace("(", r"\(").replace(")", r"\)")):
        released(**wrong)


def test_a_table_of_regions_lists_those_without_rows() -> None:
    regions = pa.table({"county": [f"c{number}" for number in range(6)], "half": [*"aaabbb"]})
    made = released(hierarchy=regions)
    assert made.hierarchy.n_leaves == 6
    assert made.verify()
    rows = made.statistics_table().filter(
        pa.compute.equal(made.statistics_table()["region"], "total/b/c5")  # type: ignore[attr-defined]
    )
    assert rows["statistic"][0].as_py() == "rows"


def test_the_command_reads_writes_and_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pa.parquet.write_table(incomes(), tmp_path / "in.parquet")  # type: ignore[attr-defined]
    folder = str(tmp_path / "out")

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        assert int(end.value.code or 0) == 0
        return capsys.readouterr().out

    asked = "--value v --step 0.5 --min 0 --max 1000 --levels county --by sex=f,m --epsilon 1"
    source = str(tmp_path / "in.parquet")
    run("values", source, *asked.split(), "--intervals", "2", "--out", folder)
    assert json.loads(run("query", folder, "--mean", "--json"))["mean v"] > 0
    errors = json.loads(run("evaluate", folder, source, "--json"))
    assert errors["levels"][2]["statistic"] == "mean"
    planned = json.loads(run("plan", "--like", folder, "--epsilon", "2", "--runs", "1", "--json"))
    assert planned["predictions"][0]["levels"]


@pytest.mark.proof
def test_intervals_of_medians_and_means_hold_as_often_as_they_say() -> None:
    truth = read_values(incomes(40_000), ValuesOptions(**HOW))
    held: dict[str, list[bool]] = {"median": [], "mean": [], "sum": [], "gini": []}
    from tallytree.group_sizes.values.tables import statistics_of_all

    for seed in range(24):
        made = released(incomes(40_000), insecure_seed=seed, intervals=40)
        true = statistics_of_all(truth.leaf_counts, made.scale)
        own = made.statistics
        for name, found in held.items():
            place = own.names.index(name)
            leaves = slice(1, None)
            low, high = own.errors["low"][leaves, place], own.errors["high"][leaves, place]
            found += ((low <= true[:, place]) & (true[:, place] <= high)).tolist()
    for name, found in held.items():
        assert np.mean(found) >= 0.86, (name, np.mean(found))

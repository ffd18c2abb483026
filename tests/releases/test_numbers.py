"""Every number that a page shows, beside its value worked out by hand, at an ε so large that there
is no noise.
"""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.degree_sequences.report import degrees_payload
from tallytree.group_sizes import report
from tallytree.group_sizes.report import group_sizes_payload
from tallytree.kinds.showing import report_html
from tallytree.maps.report import map_payload
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.options.asking import PageOptions
from tallytree.ranges.report import histogram_payload
from tallytree.releases.report.words import plural
from tests.reference.group_sizes import counts_from_lists
from tests.releases.browsing import Visit

HUGE = 10**6
TREE = hierarchy_from_leaves(
    ["state", "county"], [("a", "a1"), ("a", "a2"), ("b", "b1")], root="land"
)


def counts(*sizes: list[int]) -> ConfidentialCounts:
    table = counts_from_lists(list(sizes))
    return ConfidentialCounts(PublicFacts(TREE), table, table.n_groups())


DATA = counts([1, 1, 2, 4], [4], [5, 5, 7, 9, 9])
OTHER = counts([1, 1, 2, 3], [8], [5, 5, 7, 9, 9])


def pairs(page: Any) -> dict[str, str]:
    """What a list of terms and values shows."""
    script = "rows => rows.map(row => [row.querySelector('dt').textContent, row.querySelector('dd').textContent])"
    return dict(page.eval_on_selector_all("#facts div", script))


@pytest.fixture(scope="module")
def land(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The owner's page of ten groups in three counties."""
    made = tt.release(
        DATA,
        epsilon=HUGE,
        mechanism="matching",
        view="cumulative",
        budget=["0.2", "0.3", "0.5"],
        max_size=10,
        insecure_seed=1,
    )
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(report_html(made, tt.evaluate(made, OTHER)), encoding="utf-8")
    visit = Visit(browser, file)
    yield visit.page
    visit.assert_clean()


def test_facts_of_a_region(land: Any) -> None:
    # 1 1 2 4 4 | 5 5 7 9 9: the fifth of ten is 4, as the fourth is; the sum 47; at 40 % it would
    # be 4, at 60 % 5.
    assert pairs(land) == {
        "groups": "10", "rows": "47", "mean size": "4.7", "median size": "4", "largest size": "9",
        "true error (EMD)": "5",  # 4 and 4 against 3 and 8
    }  # fmt: skip
    assert land.inner_text("#largest") == "9 (2 times), 7, 5 (2 times), 4 (2 times), 2, 1 (2 times)"
    land.click("#list li >> nth=1")
    # 5 5 7 9 9: the third of five is 7; at 40 % it is 5.
    assert pairs(land) == {
        "groups": "5", "rows": "35", "mean size": "7", "median size": "7", "largest size": "9", "true error (EMD)": "0",
    }  # fmt: skip
    land.keyboard.press("Backspace")
    listed = land.eval_on_selector_all(
        "#list li", "rows => rows.map(row => row.innerText.split('\\n').join(' '))"
    )
    assert [text.split() for text in listed] == [["a", "5"], ["b", "5"]]


def test_bars_curve_and_table_of_a_region(land: Any) -> None:
    titles = land.eval_on_selector_all("#bars rect title", "all => all.map(one => one.textContent)")
    by_size = [2, 1, 0, 2, 2, 0, 1, 0, 2]
    assert titles == [f"size {size}: {count}" for size, count in enumerate(by_size, start=1)]
    heights = land.eval_on_selector_all(
        "#bars rect", "all => all.map(one => Number(one.getAttribute('height')))"
    )
    assert heights == pytest.approx(
        [106.0 * count for count in by_size]
    )  # 260 less 36 and 12, for the largest count of 2
    rows = land.eval_on_selector_all(
        "#table tbody tr",
        "rows => rows.map(row => [...row.children].map(cell => cell.textContent))",
    )
    assert rows == [[str(size), str(count)] for size, count in enumerate(by_size, start=1) if count]
    path = land.get_attribute("#curve path.line", "d")
    ends = [float(part.split(",")[1].split()[0]) for part in path.replace("M", "L").split("L")[1:]]
    shares = [100 * (1 - (y - 12) / 192) for y in ends]  # 240 less 36 and 12
    reached = [20, 30, 50, 70, 80, 100]  # percent of ten groups up to 1, 2, 4, 5, 7, 9
    assert shares == pytest.approx(
        [0, *(value for pair in zip([0, *reached], reached) for value in pair), 100], abs=1e-6
    )


def test_compared_regions_are_shown_in_percent(land: Any) -> None:
    land.fill("#compare", "land / b")
    titles = land.eval_on_selector_all("#bars rect title", "all => all.map(one => one.textContent)")
    assert titles[:2] == ["size 1: 20 %", "size 1: 0 %"]
    assert titles[16:] == ["size 9: 20 %", "size 9: 40 %"]
    land.click("#clear")


def test_the_budget_is_drawn_as_it_was_spent(land: Any) -> None:
    texts = land.eval_on_selector_all("#budget > span", "all => all.map(one => one.textContent)")
    assert texts == ["land", "20 %", "states", "30 %", "counties", "50 %"]
    widths = land.eval_on_selector_all(
        "#budget .share div", "all => all.map(one => one.style.width)"
    )
    assert widths == ["20%", "30%", "50%"]
    details = land.eval_on_selector_all("#budget .share", "all => all.map(one => one.title)")
    assert [detail.split(",")[0] for detail in details] == [
        f"epsilon = {part * 10**5}" for part in (2, 3, 5)
    ]


def test_facts_of_a_histogram() -> None:
    values = [1] * 3 + [12] * 8 + [14] * 2 + [25] * 4
    made = tt.histogram(
        values,
        edges=[0, 10, 20, 30],
        mechanism="flat",
        epsilon=1,
        insecure_seed=1,
        nonnegative=False,
    )
    payload = histogram_payload(made, PageOptions())
    p = math.exp(-1.0)
    one = 2 * p / (1 - p) ** 2  # variance of one count (discrete Laplace)
    facts = dict(payload["facts"])
    assert facts["rows in all"] == f"{made.counts.sum():,}"
    assert float(facts["standard error of that"]) == pytest.approx(math.sqrt(3 * one), rel=0.005)
    assert facts["bins"] == "3"
    assert facts["fullest bin"] == "10 to 20"
    assert facts["median"] == f"{made.quantile(0.5).value:.4g}"
    errors = payload["regions"]["errors"]
    assert [len(row) for row in errors] == [3, 2, 1]
    assert errors[0] == pytest.approx([math.sqrt(n * one) for n in (1, 2, 3)], abs=0.001)
    exact = tt.histogram(
        values, edges=[0, 10, 20, 30], mechanism="flat", epsilon=HUGE, insecure_seed=1
    )
    # 3 lie below 10, 10 between 10 and 20: the 8.5th of 17 lies 5.5 tenths into the second bin.
    assert dict(histogram_payload(exact, PageOptions())["facts"])["median"] == "15.5"
    assert histogram_payload(exact, PageOptions())["regions"]["runs"] == [[0, 3, 1, 10, 2, 4]]
    assert sum(part["share"] for part in payload["budget"]) == pytest.approx(1)


def test_facts_of_degrees() -> None:
    nodes = degrees_payload(tt.degrees([1, 1, 2, 5], epsilon=HUGE, insecure_seed=1), PageOptions())
    assert nodes["regions"]["runs"] == [[1, 2, 2, 1, 5, 1]]
    assert "4 nodes" in nodes["lead"]


def test_facts_of_a_map() -> None:
    table = np.zeros((8, 4), dtype=np.int64)
    table[:2, 3] = 7
    made = tt.spatial(
        counts=table,
        box=[(0, 16), (0, 2)],
        mechanism="quadtree",
        depth=1,
        epsilon=HUGE,
        insecure_seed=1,
    )
    payload = map_payload(made, PageOptions())
    facts = dict(payload["facts"])
    assert facts[f"{plural(made.manifest)} in all"].startswith("14 ± ")
    assert facts["boxes counted"] == "4"
    assert facts["finest cell"] == "2 x 0.5"
    # The quarter with the points is 4 x 2 cells: 14 / 8 in each of them.
    grid = np.array(payload["counts"]).reshape(8, 4)
    np.testing.assert_allclose(grid, np.pad(np.full((4, 2), 14 / 8), ((0, 4), (2, 0))))
    assert [part["share"] for part in payload["budget"]] == [0.5, 0.5]


@pytest.mark.parametrize(("most", "tried"), [(10**9, [3]), (0, [3, 2, 1])])
def test_a_page_that_is_too_large_shows_fewer_levels(
    monkeypatch: pytest.MonkeyPatch, most: int, tried: list[int]
) -> None:
    tree = hierarchy_from_leaves(["state", "county"], [("GA", "Cobb"), ("NY", "Kings")], root="US")
    counts = counts_from_lists([[1, 2], [3]])
    made = tt.release(
        ConfidentialCounts(PublicFacts(tree), counts, counts.n_groups()), epsilon=1, insecure_seed=1
    )
    asked: list[int] = []

    def watched(*given: Any, n_levels: int) -> dict[str, Any]:
        asked.append(n_levels)
        return group_sizes_payload(*given, n_levels=n_levels)

    monkeypatch.setattr(report, "MOST_BYTES", most)
    monkeypatch.setattr(report, "group_sizes_payload", watched)
    assert "<html" in report.group_sizes_page(made)
    assert asked == tried


@pytest.fixture(scope="module")
def by_values(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Six people in four households of two states, by tenure and age."""
    rows = [
        (1, "a", "own", "child"),
        (1, "a", "own", "adult"),
        (2, "a", "rent", "adult"),
        (3, "b", "own", "adult"),
    ]
    rows += [(4, "b", "rent", "adult"), (4, "b", "rent", "child")]
    table = pa.table(dict(zip(("hh", "state", "tenure", "age"), map(list, zip(*rows)))))
    counts = tt.read(
        table,
        group="hh",
        levels=["state"],
        root="land",
        by=["tenure"],
        people={"age": ["child", "adult"]},
        public="cells",
    )
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(
        report_html(tt.release(counts, epsilon=HUGE, insecure_seed=1)), encoding="utf-8"
    )
    visit = Visit(browser, file)
    yield visit.page
    visit.assert_clean()


def cells(page: Any, table: str) -> list[list[str]]:
    script = "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    found: list[list[str]] = page.eval_on_selector_all(f"{table} tbody tr", script)
    return found


def test_values_of_attributes_and_people(by_values: Any) -> None:
    assert cells(by_values, "#by-table") == [["own", "2", "3", "1.5"], ["rent", "2", "3", "1.5"]]
    assert cells(by_values, "#people-table") == [["child", "2"], ["adult", "4"]]
    titles = "bars => bars.map(bar => bar.textContent)"
    assert by_values.eval_on_selector_all("#by-bars rect", titles) == [
        "own, size 1: 1", "rent, size 1: 1", "own, size 2: 1", "rent, size 2: 1",
    ]  # fmt: skip
    tops = "bars => bars.map(bar => Math.round(bar.getAttribute('y')))"
    stacked = by_values.eval_on_selector_all("#by-bars rect", tops)
    assert stacked[1] < stacked[0]
    by_values.select_option("#by-how", "beside")
    beside = by_values.eval_on_selector_all("#by-bars rect", tops)
    assert beside[1] == beside[0]
    by_values.uncheck("#by-values input >> nth=0")
    assert cells(by_values, "#by-table") == [["rent", "2", "3", "1.5"]]
    by_values.check("#by-values input >> nth=0")
    by_values.click("#list li >> nth=1")
    assert cells(by_values, "#by-table") == [["own", "1", "1", "1"], ["rent", "1", "2", "2"]]
    assert cells(by_values, "#people-table") == [["child", "1"], ["adult", "2"]]

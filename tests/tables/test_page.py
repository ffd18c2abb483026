"""The page of a table, in a browser."""

from pathlib import Path
from typing import Any

import tallytree as tt
from tallytree.kinds.showing import report_html
from tests.releases.browsing import Visit
from tests.tables.test_table import release


def test_a_page_has_a_pyramid_where_there_is_age_by_sex(browser: Any, tmp_path: Path) -> None:
    made = release()
    file = tmp_path / "report.html"
    file.write_text(report_html(made), encoding="utf-8")
    visit = Visit(browser, file)
    page = visit.page
    assert page.inner_text("#region") == "total"
    assert f"{made.count():,}" in page.inner_text("#facts")
    assert page.locator("#pyramid-section").is_visible()
    titles = page.eval_on_selector_all("#pyramid title", "all => all.map(one => one.textContent)")
    assert f"f, age 7: {made.count(sex='f', age='7'):,}" in titles
    assert len(titles) == 2 * len(made.attributes.values_of("age"))
    page.goto(f"{file.as_uri()}#total/GA")
    page.reload()
    page.wait_for_selector("body[data-ready=yes]")
    titles = page.eval_on_selector_all("#pyramid title", "all => all.map(one => one.textContent)")
    assert f"m, age 3: {made.count('total/GA', sex='m', age='3'):,}" in titles
    assert "group" not in page.inner_text("main").lower()
    visit.assert_clean()


def test_values_without_an_order_have_no_pyramid(browser: Any, tmp_path: Path) -> None:
    rows = [{"sex": "f", "work": "farm"}, {"sex": "m", "work": "mill"}] * 50
    made = tt.table(_arrow(rows), by=["work=farm,mill", "sex=f,m"], epsilon=1, insecure_seed=1)
    file = tmp_path / "report.html"
    file.write_text(report_html(made), encoding="utf-8")
    visit = Visit(browser, file)
    assert not visit.page.locator("#pyramid-section").is_visible()
    assert "median" not in visit.page.inner_text("#facts")
    visit.assert_clean()


def _arrow(rows: list[dict[str, str]]) -> Any:
    import pyarrow as pa

    return pa.Table.from_pylist(rows)

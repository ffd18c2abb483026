"""The report in a real browser: what a person would do with it."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from tallytree import degrees, evaluate, histogram, release, with_intervals
from tallytree.errors import RequestError
from tallytree.kinds.showing import report_html, write_report
from tallytree.options.asking import PageOptions
from tallytree.papers.housing import housing_counts
from tests.releases.browsing import Visit

TRUTH = housing_counts(200_000)
RELEASE = with_intervals(release(TRUTH, epsilon=1, insecure_seed=1, view="hybrid"), copies=2)


def test_search_click_down_to_a_leaf_and_read_the_chart(browser: Any, tmp_path: Path) -> None:
    RELEASE.save(tmp_path / "out")
    visit = Visit(browser, write_report(tmp_path / "out"))
    page = visit.page
    assert "NOT PRIVATE" in page.inner_text("#watermark")
    page.fill("#search", "georgia")
    page.click("#list li >> nth=0")
    assert page.inner_text("#region") == "US / Georgia"
    page.click("#list li >> nth=2")
    county = "US/Georgia/Georgia county 003"
    assert page.inner_text("#region") == county.replace("/", " / ")
    counts = RELEASE.region(county)
    assert f"{counts.n_groups:,}" in page.inner_text("#facts")
    tooltip = page.text_content(f"#bars rect >> nth={counts.size[1] - 1} >> title")
    assert tooltip is not None
    assert tooltip.startswith(f"size {counts.size[1]}: {counts.count[1]:,} (")
    assert page.locator("#bars .whisker").count() > 0
    visit.assert_clean()


def test_counts_of_zero_have_upper_ends(browser: Any, tmp_path: Path) -> None:
    """The page works the ends out itself, those of headline figures too; they are those that Python
    finds.
    """
    made = RELEASE.intervals
    assert made is not None
    file = tmp_path / "report.html"
    file.write_text(report_html(RELEASE), encoding="utf-8")
    visit = Visit(browser, file)
    compared = 0
    for index in range(1, 25):
        counts, path = RELEASE.counts.region(index), str(RELEASE.hierarchy.paths[index])
        largest = int(counts.size[-1])
        most_shown = largest + 4 if largest <= 30 else 9
        sizes = np.setdiff1d(np.arange(min(int(counts.size[0]), 1), most_shown + 1), counts.size)
        ends = np.minimum(
            made.zeros.of(counts, int(RELEASE.hierarchy.level_of[index]), sizes)[0],
            counts.n_groups()[0],
        )
        visit.page.goto(f"{file.as_uri()}#{quote(path)}")
        visit.page.reload()
        visit.page.wait_for_selector("body[data-ready=yes]")
        rows = visit.page.eval_on_selector_all(
            "#table tbody tr",
            "rows => rows.map(row => [...row.children].map(cell => cell.textContent))",
        )
        shown = [row for row in rows if row[1:2] == ["0"]]
        assert shown == [[f"{s:,}", "0", "0", f"{e:,}"] for s, e in zip(sizes, ends) if e > 0]
        compared += len(shown)
        people, level = (
            int((counts.size * counts.count).sum()),
            int(RELEASE.hierarchy.level_of[index]),
        )
        low, high = made.totals.of(level, int(counts.n_groups()[0])) or (0, 0)
        if low < high:
            assert f"{max(0, people + low):,} to {people + high:,}" in visit.page.inner_text(
                "#facts"
            )
    assert compared > 10
    visit.assert_clean()


def test_keyboard_breadcrumbs_and_comparison(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html(RELEASE), encoding="utf-8")
    visit = Visit(browser, file, color_scheme="dark")
    page = visit.page
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.inner_text("#region") == "US / Alaska"
    page.keyboard.press("Backspace")
    assert page.inner_text("#region") == "US"
    page.keyboard.press("/")
    page.keyboard.type("Vermont")
    page.keyboard.press("Enter")
    assert page.inner_text("#region") == "US / Vermont"
    page.fill("#compare", "US / Ohio")
    assert page.inner_text("#region") == "US / Vermont compared with US / Ohio"
    assert page.locator("#bars .bar.other").count() > 0
    page.click("#crumbs button >> nth=0")
    assert page.inner_text("#crumbs") == "US"
    visit.assert_clean()


def test_what_is_empty_says_so(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html(RELEASE), encoding="utf-8")
    visit = Visit(browser, file)
    visit.page.fill("#search", "no such place")
    assert visit.page.inner_text("#list") == "No region has this in its name."
    visit.page.fill("#search", "Georgia county 003")
    visit.page.keyboard.press("Enter")
    assert visit.page.inner_text("#list") == "No regions below this one."
    visit.page.keyboard.press("Enter")
    visit.assert_clean()


def test_a_link_opens_its_region(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html(RELEASE), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri() + "#US/Texas")
    page.wait_for_selector("body[data-ready=yes]")
    assert page.inner_text("#region") == "US / Texas"


def test_the_owners_copy_is_marked_and_kept_out_of_the_release(
    browser: Any, tmp_path: Path
) -> None:
    RELEASE.save(tmp_path / "out")
    errors = evaluate(RELEASE, TRUTH)
    with pytest.raises(RequestError, match="does not belong into the release folder"):
        write_report(tmp_path / "out", evaluation=errors)
    visit = Visit(
        browser, write_report(tmp_path / "out", tmp_path / "mine.html", evaluation=errors)
    )
    assert "CONFIDENTIAL" in visit.page.inner_text("#watermark")
    assert "true error" in visit.page.inner_text("#facts")
    visit.assert_clean()


def test_a_histogram_answers_ranges(browser: Any, tmp_path: Path) -> None:
    ages = histogram(
        [3, 4, 4, 18, 40, 41, 70] * 90, edges=list(range(0, 101, 10)), epsilon=1, insecure_seed=1
    )
    file = tmp_path / "histogram.html"
    file.write_text(report_html(ages), encoding="utf-8")
    visit = Visit(browser, file)
    page = visit.page
    assert not page.is_visible("nav")
    assert page.text_content("#bars rect >> nth=0 >> title").startswith(
        f"bin 0 to 10: {ages.counts[0]}"
    )
    page.focus("#from")
    page.keyboard.press("ArrowRight")
    answer = ages.range(10, 100)
    shown = page.inner_text("#range-answer")
    assert shown.startswith(f"10 to 100: {answer.estimate:,} ± ")
    assert float(shown.split(" ± ")[1].split()[0]) == pytest.approx(answer.std_error, abs=0.01)
    visit.assert_clean()


def test_categories_have_no_cumulative_curve(browser: Any, tmp_path: Path) -> None:
    colours = histogram(
        ["red", "red", "blue"] * 50, categories=["red", "blue", "green"], epsilon=1, insecure_seed=1
    )
    file = tmp_path / "categories.html"
    file.write_text(report_html(colours), encoding="utf-8")
    visit = Visit(browser, file)
    assert not visit.page.is_visible("#curve")
    assert not visit.page.is_visible("#range-section")
    assert "red" in visit.page.inner_text("#facts")
    visit.assert_clean()


def test_a_degree_sequence_has_a_page(browser: Any, tmp_path: Path) -> None:
    nodes = degrees([1, 1, 2, 2, 5] * 20, epsilon=1, insecure_seed=1)
    file = tmp_path / "degrees.html"
    file.write_text(report_html(nodes), encoding="utf-8")
    visit = Visit(browser, file)
    assert f"{nodes.total():,}" in visit.page.inner_text("#facts")
    assert visit.page.is_visible("#curve")
    visit.assert_clean()


def test_labels_cannot_break_out_of_the_page() -> None:
    page = report_html(RELEASE)
    assert page.count("<script") == 2
    assert "__DATA__" not in page


def test_a_title_is_a_title_whatever_it_says(browser: Any, tmp_path: Path) -> None:
    """The page is filled in once: names of its own parts, in a title, stay words."""
    title = "__DATA__ __SCRIPT__ __BODY__ <b>&amp;"
    file = tmp_path / "report.html"
    file.write_text(report_html(RELEASE, look=PageOptions(title=title)), encoding="utf-8")
    visit = Visit(browser, file)
    assert visit.page.inner_text("h1") == title
    visit.assert_clean()


def test_nothing_but_the_pages_own_script_runs(browser: Any, tmp_path: Path) -> None:
    page = report_html(RELEASE)
    assert "default-src 'none'" in page
    smuggled = "<script>document.title = 'smuggled'</script><img src=x onerror=\"document.title = 'smuggled'\">"
    fetched = "<img src='http://127.0.0.1:9/x.png'>"
    file = tmp_path / "report.html"
    file.write_text(page.replace("<noscript>", smuggled + fetched + "<noscript>"), encoding="utf-8")
    visit = Visit(browser, file)
    assert visit.page.title() != "smuggled"
    refused = [line for line in visit.problems if "Content Security Policy" in line]
    assert len(refused) >= 3
    assert visit.page.locator("#bars rect").count() > 0

"""The report in a real browser: what a person would do with it."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tallytree import degrees, evaluate, histogram, release, with_intervals
from tallytree.errors import RequestError
from tallytree.report.html import report_html, write_report
from tallytree.reproduce.housing import housing_counts

TRUTH = housing_counts(200_000)
RELEASE = with_intervals(release(TRUTH, epsilon=1, insecure_seed=1, view="hybrid"), copies=2)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="SKIPPED LOUDLY: playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on this machine: .ci/run installs it")
        pytest.skip("SKIPPED LOUDLY: no Chromium on this machine")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=arguments)
        yield chromium
        chromium.close()


class Visit:
    """A page opened from disk, with what went wrong on it and what it tried to fetch."""

    def __init__(self, browser: Any, file: Path, **context: Any) -> None:
        self.page = browser.new_context(viewport={"width": 1200, "height": 1000}, **context).new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("body[data-ready=yes]", timeout=30_000)

    def assert_clean(self) -> None:
        assert self.problems == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []


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
    tooltip = page.text_content("#bars rect >> nth=1 >> title")
    assert tooltip == f"size {counts.size[1]}: {counts.count[1]:,}"
    assert page.locator("#bars .whisker").count() > 0
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


def test_a_link_opens_its_region(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html(RELEASE), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri() + "#US/Texas")
    page.wait_for_selector("body[data-ready=yes]")
    assert page.inner_text("#region") == "US / Texas"


def test_the_owners_copy_is_marked_and_kept_out_of_the_release(browser: Any, tmp_path: Path) -> None:
    RELEASE.save(tmp_path / "out")
    errors = evaluate(RELEASE, TRUTH)
    with pytest.raises(RequestError, match="does not belong into the release folder"):
        write_report(tmp_path / "out", evaluation=errors)
    visit = Visit(browser, write_report(tmp_path / "out", tmp_path / "mine.html", evaluation=errors))
    assert "CONFIDENTIAL" in visit.page.inner_text("#watermark")
    assert "true error" in visit.page.inner_text("#facts")
    visit.assert_clean()


def test_histograms_and_degree_sequences_have_pages(browser: Any, tmp_path: Path) -> None:
    ages = histogram([3, 4, 4, 18, 40, 41, 70], edges=list(range(0, 101, 10)), epsilon=1, insecure_seed=1)
    nodes = degrees([1, 1, 2, 2, 5], epsilon=1, insecure_seed=1)
    for name, made in {"histogram": ages, "degrees": nodes}.items():
        file = tmp_path / f"{name}.html"
        file.write_text(report_html(made), encoding="utf-8")
        Visit(browser, file).assert_clean()


def test_labels_cannot_break_out_of_the_page() -> None:
    page = report_html(RELEASE)
    assert page.count("<script") == 2
    assert "__DATA__" not in page

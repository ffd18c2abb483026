"""The page of a comparison, and search in the documentation, in a browser from the file system."""

import csv
from pathlib import Path
from typing import Any

import tallytree as tt
from tallytree.group_sizes.changes import changes_page
from tests.group_sizes.test_comparison import released
from tests.releases.browsing import Visit

SHIM = Path(__file__).parents[2] / "docs" / "javascripts" / "iframe-worker.js"


def test_changes_can_be_searched_sorted_and_saved(browser: Any, tmp_path: Path) -> None:
    found = tt.compare(released(0.0, 1), released(0.2, 2))
    file = tmp_path / "changes.html"
    file.write_text(changes_page(found, "2012", "2014"), encoding="utf-8")
    visit = Visit(browser, file)
    page, rows = visit.page, found.table.to_pylist()
    assert page.inner_text("h1") == "2012 and 2014"
    assert page.locator("#changes tbody tr").count() == sum(row["clear"] for row in rows)
    page.uncheck("#clear")
    assert page.locator("#changes tbody tr").count() == len(rows)
    page.select_option("#level", "total")
    total = [row for row in rows if row["level"] == "total"]
    assert page.locator("#changes tbody tr").count() == len(total)
    page.click("#changes th:nth-child(5) button")
    shown = [
        int(text.replace(",", ""))
        for text in page.locator("#changes tbody td:nth-child(5)").all_inner_texts()
    ]
    assert shown == sorted((row["difference"] for row in total), key=abs, reverse=True)
    page.fill("#search", "nowhere")
    assert page.locator("#changes tbody tr").count() == 0
    page.fill("#search", "")
    with page.expect_download() as saving:
        page.click("#save")
    saving.value.save_as(tmp_path / "changes.csv")
    with (tmp_path / "changes.csv").open(newline="", encoding="utf-8") as opened:
        assert len(list(csv.DictReader(opened))) == len(total)
    visit.assert_clean()


def test_a_worker_works_from_the_file_system(browser: Any, tmp_path: Path) -> None:
    """What search in the documentation needs: messages go to the worker and come back, also those
    sent before it is there.
    """
    (tmp_path / "shim.js").write_text(SHIM.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "other.js").write_text("self.factor = 2;", encoding="utf-8")
    (tmp_path / "worker.js").write_text(
        "const ready = importScripts('other.js');"
        "addEventListener('message', async ({ data }) => { await ready; postMessage(data * "
        "factor); });",
        encoding="utf-8",
    )
    (tmp_path / "page.html").write_text(
        """<!doctype html><body><p>A page.</p><script src="shim.js"></script><script>
        const worker = new Worker("worker.js"), heard = [];
        worker.addEventListener("message", ({ data }) => {
          heard.push(data);
          if (heard.length === 2) { document.title = heard.join(); document.body.dataset.ready = "yes"; }
        });
        worker.postMessage(3); worker.postMessage(4);
        </script></body>""",
        encoding="utf-8",
    )
    visit = Visit(browser, tmp_path / "page.html")
    assert visit.page.title() == "6,8"
    visit.assert_clean()

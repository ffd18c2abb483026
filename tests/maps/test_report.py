"""The report of a map in a real browser."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.kinds.showing import report_html, write_report
from tallytree.maps import report as maps
from tests.releases.browsing import Visit

RNG = np.random.default_rng(1)
POINTS = np.concatenate(
    [
        RNG.normal((0.3, 2.5), (0.05, 0.2), size=(20_000, 2)),
        RNG.uniform((0, 0), (1, 4), size=(3000, 2)),
    ]
)
BOX = [(0, 1), (0, 4)]
MAP = tt.spatial(
    POINTS,
    columns=["east", "north"],
    box=BOX,
    outside="clip",
    resolution=128,
    epsilon=1,
    insecure_seed=1,
)


def opened(browser: Any, release: Any, folder: Path, **context: Any) -> Visit:
    file = folder / "map.html"
    file.write_text(report_html(release), encoding="utf-8")
    return Visit(browser, file, **context)


def numbers(text: str) -> tuple[float, float, float, float]:
    """Estimate, standard error and the ends of the interval, as the page says them."""
    found = re.match(r"([-\d.,]+) ± ([\d.,]+)\n95 % interval ([-\d.,]+) to ([-\d.,]+),", text)
    assert found, text
    return tuple(float(part.replace(",", "")) for part in found.groups())  # type: ignore[return-value]


def assert_says(text: str, answer: Any) -> None:
    estimate, error, low, high = numbers(text)
    assert estimate == pytest.approx(answer.estimate, abs=0.6)
    assert error == pytest.approx(answer.std_error, abs=0.6, rel=1e-3)
    assert low == pytest.approx(max(0, answer.estimate - 1.96 * answer.std_error), abs=0.6)
    assert high == pytest.approx(answer.estimate + 1.96 * answer.std_error, abs=0.6)
    area = re.search(r"([\d.,]+) of it by share of area", text)
    assert float(area[1].replace(",", "") if area else 0) == pytest.approx(answer.by_area, abs=0.6)


def ask(page: Any, ends: list[tuple[float, float]]) -> str:
    for axis, pair in enumerate(ends):
        for end, value in enumerate(pair):
            page.fill(f"#end-{axis}-{end}", str(value))
    page.keyboard.press("Enter")
    return str(page.inner_text("#answer"))


def test_a_saved_map_has_a_page_that_answers_boxes(browser: Any, tmp_path: Path) -> None:
    MAP.save(tmp_path / "out")
    file = write_report(tmp_path / "out")
    assert file.stat().st_size < 1_000_000
    visit = Visit(browser, file)
    page = visit.page
    assert "NOT PRIVATE" in page.inner_text("#watermark")
    assert_says(page.inner_text("#answer"), MAP.total())
    for ends in (
        [(0.25, 0.5), (2, 3)],
        [(0.1015625, 0.9921875), (0.09375, 3.5)],
        [(0.5, 0.5078125), (1, 1.03125)],
    ):
        assert_says(ask(page, ends), MAP.range(ends))
    assert "adaptive" in page.inner_text("#facts")
    assert "not split" in page.inner_text("#budget")
    assert page.locator("#checks .ok").count() == len(MAP.verify().checks)
    assert "evenly spread" in page.inner_text("#note")
    assert page.is_hidden("#coarse")
    visit.assert_clean()


def test_pointing_reads_a_cell_and_dragging_chooses_a_box(browser: Any, tmp_path: Path) -> None:
    visit = opened(browser, MAP, tmp_path)
    page = visit.page
    field = page.locator("#canvas").bounding_box()

    def to(east: float, north: float) -> None:
        page.mouse.move(
            field["x"] + field["width"] * east, field["y"] + field["height"] * (1 - north / 4)
        )

    to(0.3, 2.51)
    assert_says(page.inner_text("#cell"), MAP.range([(38 / 128, 39 / 128), (80 / 32, 81 / 32)]))
    assert "east 0.297 to 0.305, north 2.5 to 2.53" in page.inner_text("#cell")
    to(0.2501, 2.01)
    page.mouse.down()
    to(0.4, 2.5)
    to(0.49, 2.99)
    page.mouse.up()
    assert_says(page.inner_text("#answer"), MAP.range([(32 / 128, 63 / 128), (2, 3)]))
    assert page.is_visible("#chosen")
    to(0.9, 0.1)
    assert_says(page.inner_text("#answer"), MAP.range([(32 / 128, 63 / 128), (2, 3)]))
    visit.assert_clean()


def test_the_keyboard_reads_cells_and_draws_boxes(browser: Any, tmp_path: Path) -> None:
    visit = opened(browser, MAP, tmp_path, color_scheme="dark")
    page = visit.page
    page.focus("#field")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowDown", "Shift+ArrowLeft", "Shift+ArrowUp"):
        page.keyboard.press(key)
    assert_says(page.inner_text("#cell"), MAP.range([(62 / 128, 63 / 128), (2, 2 + 1 / 32)]))
    assert_says(page.inner_text("#answer"), MAP.range([(62 / 128, 64 / 128), (63 / 32, 65 / 32)]))
    page.keyboard.press("Escape")
    assert page.is_hidden("#chosen")
    assert_says(page.inner_text("#answer"), MAP.total())
    visit.assert_clean()


def pixel(page: Any, column: int, row: int) -> list[int]:
    script = "([x, y]) => Array.from(document.getElementById('canvas').getContext('2d').getImageData(x, y, 1, 1).data)"
    found: list[int] = page.evaluate(script, [column, row])
    return found[:3]


def test_the_picture_shows_where_points_are_in_light_dark_and_print(
    browser: Any, tmp_path: Path
) -> None:
    light, dark = (
        opened(browser, MAP, tmp_path, color_scheme=scheme).page for scheme in ("light", "dark")
    )
    town, land = (38, 127 - 80), (120, 5)
    assert sum(pixel(light, *town)) < 300 < 600 < sum(pixel(light, *land))
    assert sum(pixel(dark, *land)) < 300 < 500 < sum(pixel(dark, *town))
    on_paper = opened(browser, MAP, tmp_path, color_scheme="dark").page
    on_paper.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert sum(pixel(on_paper, *land)) > 600
    narrow = opened(browser, MAP, tmp_path).page
    narrow.set_viewport_size({"width": 390, "height": 800})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 390


def test_more_and_fewer_columns(browser: Any, tmp_path: Path) -> None:
    cube = tt.spatial(
        np.random.default_rng(2).uniform(size=(5000, 3)),
        box=[(0, 1)] * 3,
        resolution=16,
        epsilon=1,
        insecure_seed=1,
    )
    visit = opened(browser, cube, tmp_path)
    assert_says(
        ask(visit.page, [(0.25, 0.75), (0, 0.5)]), cube.range([(0.25, 0.75), (0, 0.5), (0, 1)])
    )
    visit.assert_clean()
    steps = np.repeat([40, 900, 0, 300], [20, 10, 50, 20])
    line = tt.spatial(counts=steps, mechanism="noisy-first", epsilon=0.1, insecure_seed=1)
    visit = opened(browser, line, tmp_path)
    assert_says(ask(visit.page, [(20, 35)]), line.range([(20, 35)]))
    visit.assert_clean()


def test_a_tree_too_large_is_cut_off_and_says_so(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "MOST_NODES", 100)
    visit = opened(browser, MAP, tmp_path)
    assert visit.page.is_visible("#coarse")
    # Whole boxes of the coarse tree have the same standard error as before.
    assert numbers(visit.page.inner_text("#answer"))[1] == pytest.approx(
        MAP.total().std_error, rel=1e-3
    )
    half = MAP.range([(0, 0.5), (0, 2)])
    assert numbers(ask(visit.page, [(0, 0.5), (0, 2)]))[:2] == pytest.approx(
        (half.estimate, half.std_error), rel=0.01
    )
    visit.assert_clean()


def test_names_cannot_break_out_of_the_page() -> None:
    odd = tt.spatial(
        POINTS,
        columns=["</script><b>", "__DATA__"],
        box=BOX,
        outside="clip",
        resolution=16,
        epsilon=1,
    )
    page = report_html(odd)
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "__STYLE__" not in page

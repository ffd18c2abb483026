"""The map and the table of regions in a real browser: drawn, linked to the page, sorted, saved."""

from __future__ import annotations

import csv
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tallytree.errors import RequestError
from tallytree.group_sizes.report import group_sizes_payload
from tallytree.kinds.showing import report_html
from tallytree.options.asking import PageOptions
from tallytree.releases.report.words import group_names
from tallytree.shapes.drawing import MOST_POINTS, draw_outlines
from tallytree.shapes.matching import ShapedLevel, match_outlines
from tallytree.shapes.outlines import read_outlines
from tests.group_sizes.test_comparison import released
from tests.ingest.test_classes import released as firms
from tests.kinds.test_kinds import MAKERS
from tests.releases.browsing import Visit


@cache
def homes() -> Any:
    return released(0.0, 1)


def outlines(place: Path) -> str:
    """Eight counties as a row of squares that share their sides."""
    features = [
        {
            "type": "Feature",
            "id": str(county),
            "geometry": {
                "type": "Polygon",
                "coordinates": [
                    [[county, 0], [county + 1, 0], [county + 1, 1], [county, 1], [county, 0]]
                ],
            },
        }
        for county in range(8)
    ]
    file = place / "counties.json"
    file.write_text(
        json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8"
    )
    return str(file)


def page_of(place: Path) -> Path:
    look = PageOptions(
        shapes=outlines(place),
        group_name="household/households",
        title="Homes",
        source_note="a survey",
        notes=("Two states.",),
        level_names=("county=district",),
    )
    file = place / "report.html"
    file.write_text(report_html(homes(), None, look), encoding="utf-8")
    return file


def test_the_map_is_linked_to_the_page(browser: Any, tmp_path: Path) -> None:
    visit = Visit(browser, page_of(tmp_path))
    page = visit.page
    assert page.locator("#map path").count() == 8
    # 8 degrees along the equator are 890 km; at most a fifth of the width, with its margins, is 100
    # km.
    assert page.text_content("#map .scale-bar text") == "100 km"
    x = [
        float(point.split(",")[0])
        for point in page.get_attribute("#map .scale-bar polyline", "points").split()
    ]
    sides = page.evaluate("document.querySelector('#map path').getBBox().width")
    assert (max(x) - min(x)) / sides == pytest.approx(100 / (math.pi / 180 * 6371), rel=0.01)
    mean = homes().region("total/0/3").mean()
    title = page.text_content("#map path[data-region='6'] title")
    assert title == f"total / 0 / 3: {mean:,.2f}".rstrip("0").rstrip(".")
    page.select_option("#measure", label="share of households with 2 entities")
    share = 100 * homes().region("total/0/3").of_size(2) / homes().region("total/0/3").n_groups
    assert f"{share:,.2f}".rstrip("0").rstrip(".") in str(
        page.text_content("#map path[data-region='6'] title")
    )
    page.click("#map path[data-region='6']")
    assert page.inner_text("#region") == "total / 0 / 3"
    assert page.locator("#map path.here").count() == 1
    visit.assert_clean()


def test_names_notes_and_how_to_read_are_there(browser: Any, tmp_path: Path) -> None:
    visit = Visit(browser, page_of(tmp_path))
    assert visit.page.inner_text("h1") == "Homes"
    assert (
        visit.page.inner_text("#lead")
        == "How many households have how many entities, in total and its parts: 2 states, 8 "
        "districts."
    )
    assert "districts add up to states" in visit.page.inner_text("#checks")
    assert "changed a little at random" in visit.page.inner_text("#read")
    assert visit.page.inner_text("#notes") == "Two states."
    assert visit.page.inner_text("#source-note") == "Source: a survey"
    assert visit.page.inner_text("#citation").startswith("Cite as: Homes. a survey.")
    visit.assert_clean()


def test_the_table_of_children_sorts_and_is_saved(browser: Any, tmp_path: Path) -> None:
    visit = Visit(browser, page_of(tmp_path))
    page = visit.page
    page.click("#list li >> nth=0")
    names = "#children tbody td:first-child"
    assert page.locator(names).all_inner_texts() == ["0", "1", "2", "3"]
    page.click("#children th:nth-child(2) button")
    groups = [homes().region(f"total/0/{county}").n_groups for county in range(4)]
    by_groups = sorted(range(4), key=lambda county: -groups[county])
    assert page.locator(names).all_inner_texts() == [str(county) for county in by_groups]
    with page.expect_download() as saving:
        page.click("#save-children")
    saving.value.save_as(tmp_path / "below.csv")
    with (tmp_path / "below.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["name"], int(row["households"])) for row in rows] == [
        (str(c), groups[c]) for c in by_groups
    ]
    visit.assert_clean()


def test_a_page_in_classes_names_them(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(report_html(firms()), encoding="utf-8")
    visit = Visit(browser, file)
    shown = visit.page.locator("#bars title").all_text_contents()
    assert [text.split(":")[0] for text in shown] == ["size 1-4", "size 5-9", "size 10+"]
    assert "mean" not in visit.page.inner_text("#facts")
    counts = [float(text.split(": ")[1].split(" ")[0].replace(",", "")) for text in shown]
    visit.page.check("#dense")
    shown = visit.page.locator("#bars title").all_text_contents()
    dense = [float(text.split(": ")[1].split(" ")[0].replace(",", "")) for text in shown]
    assert dense == pytest.approx([counts[0] / 4, counts[1] / 5, 0], abs=0.006)
    visit.assert_clean()


def test_codes_have_the_names_of_their_outlines(tmp_path: Path) -> None:
    file = Path(outlines(tmp_path))
    facts = json.loads(file.read_text(encoding="utf-8"))
    for place, feature in enumerate(facts["features"]):
        feature["properties"] = {**(feature.get("properties") or {}), "name": f"Place {place}"}
    file.write_text(json.dumps(facts), encoding="utf-8")
    labels = group_sizes_payload(homes(), None, PageOptions(shapes=str(file)))["regions"]["labels"]
    drawn = group_sizes_payload(homes(), None, PageOptions(shapes=str(file)))["outlines"]["members"]
    assert all(re.fullmatch(r"Place \d+ \(\d+\)", labels[region]) for region in drawn)
    assert labels[0] == "total"


def test_neighbours_share_their_border_after_rounding() -> None:
    rng = np.random.default_rng(2)
    border = np.stack(
        [np.linspace(5, 5.5, 400) + rng.normal(0, 0.01, 400), np.linspace(0, 1, 400)], axis=1
    )
    left = np.concatenate([[[4, 0]], border, [[4, 1], [4, 0]]])
    right = np.concatenate([border, [[7, 1], [7, 0]], border[:1]])
    drawn = draw_outlines(ShapedLevel(0, np.array([0, 1]), (((left,),), ((right,),)), 0))
    points = [
        {tuple(point) for point in np.cumsum(np.array(rings[0]).reshape(-1, 2), axis=0).tolist()}
        for rings in drawn.rings
    ]
    assert len(points[0] & points[1]) > 300
    assert sum(len(rings[0]) for rings in drawn.rings) < 2 * MOST_POINTS


@pytest.mark.data
def test_real_counties_fit_a_page(data_folder: Path) -> None:
    found = read_outlines(data_folder / "us_counties_shapes" / "counties-10m.json")
    states = read_outlines(data_folder / "us_counties_shapes" / "counties-10m.json", layer="states")
    assert len(found.polygons) > 3000
    assert len(states.polygons) < 60
    shapes = tuple(found.polygons.values())
    drawn = draw_outlines(ShapedLevel(1, np.arange(len(shapes)), shapes, 0))
    assert sum(len(ring) // 2 for rings in drawn.rings for ring in rings) <= MOST_POINTS
    assert all(rings for rings in drawn.rings)


def test_outlines_and_names_are_checked(tmp_path: Path) -> None:
    assert group_names("taxi") == ("taxi", "taxis")
    assert group_names(None) == ("group", "groups")
    with pytest.raises(RequestError, match="this release has no places"):
        report_html(MAKERS["degrees"](), None, PageOptions(shapes="x.json"))
    with pytest.raises(RequestError, match="named when it is released"):
        report_html(MAKERS["histogram"](), None, PageOptions(group_name="x"))
    shaped = match_outlines(read_outlines(outlines(tmp_path)), homes().hierarchy)
    with pytest.raises(RequestError, match="does not fit into this page"):
        group_sizes_payload(homes(), None, PageOptions(shapes=outlines(tmp_path)), n_levels=2)
    assert shaped.without == 0

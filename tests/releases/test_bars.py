"""Pictures for notebooks, every place in them worked out by hand."""

import xml.etree.ElementTree as ET

import pytest

from tallytree.releases.report.bars import (
    BOTTOM,
    HEIGHT,
    LEFT,
    MOST_BARS,
    TOP,
    WIDTH,
    Bars,
    bars_svg,
    ticks,
)

SVG = "{http://www.w3.org/2000/svg}"


def drawn(bars: Bars) -> ET.Element:
    return ET.fromstring(bars_svg(bars))


def places(element: ET.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (0.5, [0]),
        (1, [0, 1]),
        (6, [0, 1, 2, 3, 4, 5, 6]),
        (7, [0, 2, 4, 6]),
        (13, [0, 2.5, 5, 7.5, 10, 12.5]),
        (30, [0, 5, 10, 15, 20, 25, 30]),
        (61, [0, 20, 40, 60]),
        (1_000, [0, 200, 400, 600, 800, 1_000]),
        (999_999, [0, 200_000, 400_000, 600_000, 800_000]),
    ],
)
def test_ticks_are_round_and_few(top: float, expected: list[float]) -> None:
    assert ticks(top) == expected


def test_bars_stand_on_the_axis_and_are_as_high_as_their_counts() -> None:
    picture = drawn(Bars("Homes", "size", ["1", "2", "3", "4"], [10, 5, 0, 2.5]))
    rects = picture.findall(f"{SVG}rect")[1:]
    step = (WIDTH - LEFT - 12) / 4
    high = HEIGHT - BOTTOM - TOP
    for place, (rect, share) in enumerate(zip(rects, (1, 0.5, 0, 0.25), strict=True)):
        x, y, width, height = places(rect, "x", "y", "width", "height")
        assert x == pytest.approx(LEFT + (place + 0.1) * step, abs=0.06)
        assert width == pytest.approx(0.8 * step, abs=0.06)
        assert y == pytest.approx(TOP + high * (1 - share), abs=0.06)
        assert y + height == pytest.approx(HEIGHT - BOTTOM, abs=0.11)
    lines = picture.findall(f"{SVG}line")
    assert [places(line, "x1", "x2") for line in lines] == [[LEFT, WIDTH - 12]] * 6
    assert [places(line, "y1", "y2")[0] for line in lines] == pytest.approx(
        [236 - high * tick / 10 for tick in range(0, 11, 2)], abs=0.06
    )
    texts = {text.text: text for text in picture.findall(f"{SVG}text")}
    assert set(texts) == {"Homes", "0", "2", "4", "6", "8", "10", "1", "3", "size"}
    assert places(texts["10"], "x", "y") == [LEFT - 6, TOP + 4]
    assert places(texts["1"], "x", "y") == pytest.approx(
        [LEFT + step / 2, HEIGHT - BOTTOM + 16], abs=0.06
    )
    assert places(texts["size"], "x", "y") == [WIDTH - 12, HEIGHT - 8]


def test_thin_lines_show_intervals_from_zero_up_in_the_middle_of_their_bars() -> None:
    picture = drawn(Bars("Homes", "size", ["1", "2"], [4, 0], [2, -3], [8, 1]))
    whiskers = [
        line for line in picture.findall(f"{SVG}line") if line.attrib["x1"] == line.attrib["x2"]
    ]
    step = (WIDTH - LEFT - 12) / 2
    high = HEIGHT - BOTTOM - TOP
    assert [places(line, "x1")[0] for line in whiskers] == pytest.approx(
        [LEFT + step / 2, LEFT + 1.5 * step], abs=0.06
    )
    assert places(whiskers[0], "y1", "y2") == pytest.approx([TOP + high * 3 / 4, TOP], abs=0.06)
    assert places(whiskers[1], "y1", "y2") == pytest.approx(
        [TOP + high, TOP + high * 7 / 8], abs=0.06
    )
    assert [title.text for title in picture.iter(f"{SVG}title")] == [
        "1: 4, 2 to 8",
        "2: 0, -3 to 1",
    ]


def test_names_that_would_overlap_are_left_out_and_so_are_bars_beyond_the_most() -> None:
    many = [str(1_000 + place) for place in range(MOST_BARS + 5)]
    picture = drawn(Bars("Homes", "size", many, [1.0] * len(many)))
    assert len(picture.findall(f"{SVG}rect")) == 1 + MOST_BARS
    said = [text.text for text in picture.findall(f"{SVG}text")]
    assert said[-1] == "size, 5 more not drawn"
    # A name of four signs takes 36 points, and a bar has 5 whole ones.
    assert [name for name in said if name in many] == many[:MOST_BARS:8]

import xml.etree.ElementTree as ET

from tallytree.group_sizes.trade_off import trade_off_svg


def drawn(svg: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))


def test_more_privacy_lies_to_the_left_and_more_error_above() -> None:
    svg = trade_off_svg(
        {"county": {"default": [(0.5, 40.0), (1.0, 20.0), (2.0, 5.0)]}}, title="t", error="EMD"
    )
    circles = [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in drawn(svg, "circle")]
    assert circles == sorted(circles)
    assert [y for _, y in circles] == sorted(y for _, y in circles)
    # Logarithmic: a factor of 2 in epsilon is always the same step.
    assert abs((circles[1][0] - circles[0][0]) - (circles[2][0] - circles[1][0])) < 0.2


def test_no_error_has_no_place_on_a_logarithmic_axis() -> None:
    svg = trade_off_svg(
        {"a": {"x": [(1.0, 0.0)]}, "b": {"x": [(1.0, 0.0), (2.0, 3.0)]}}, title="t", error="EMD"
    )
    assert len(drawn(svg, "circle")) == 1
    assert "no error at any" in svg


def test_names_are_escaped_and_panels_wrap() -> None:
    panels = {f"<level {i}>": {"a & b": [(1.0, 2.0), (2.0, 1.0)]} for i in range(5)}
    svg = trade_off_svg(panels, title='"quoted"', error="EMD")
    assert len(drawn(svg, "polyline")) == 5
    assert {element.text for element in drawn(svg, "text")} >= {"<level 4>: EMD", "a & b"}

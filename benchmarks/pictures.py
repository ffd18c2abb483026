"""Make every picture of the documentation anew.

    python -m benchmarks.pictures [NAME …]

Pictures of pages need Chromium and playwright. Figures of accuracy and growth are drawn by the
benchmarks that measure them, which take hours: `python -m benchmarks.accuracy`, `python -m
benchmarks.growth`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tallytree as tt
from tallytree.group_sizes.accuracy import trade_off
from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
from tallytree.kinds.showing import report_html
from tallytree.options.asking import PageOptions
from tallytree.papers.housing import housing_counts

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"


def homes() -> tt.Release:
    """A made-up country of 51 states with intervals."""
    return tt.with_intervals(
        tt.release(housing_counts(400_000), epsilon=1, insecure_seed=1), copies=20
    )


def city() -> Any:
    """A made-up city: streets, a ring road, an airport."""
    rng = np.random.default_rng(6)
    streets = np.stack(
        [rng.integers(0, 40, 250_000) / 40 * 0.2 - 74.05, rng.uniform(40.68, 40.82, 250_000)],
        axis=1,
    )
    streets[::2] = np.stack(
        [rng.uniform(-74.05, -73.85, 125_000), rng.integers(0, 40, 125_000) / 40 * 0.14 + 40.68],
        axis=1,
    )
    angle = rng.uniform(0, 2 * np.pi, 120_000)
    ring = np.stack([-73.95 + 0.14 * np.cos(angle), 40.75 + 0.11 * np.sin(angle)], axis=1)
    airport = rng.normal((-73.78, 40.62), (0.012, 0.006), size=(51_000, 2))
    points = np.concatenate(
        [
            streets + rng.normal(0, 4e-4, streets.shape),
            ring + rng.normal(0, 1e-3, ring.shape),
            airport,
        ]
    )
    box = [(-74.15, -73.7), (40.55, 40.95)]
    return tt.spatial(
        points,
        columns=["longitude", "latitude"],
        box=box,
        epsilon=1,
        entity="trip",
        insecure_seed=1,
    )


def ages() -> Any:
    """A made-up histogram of ages."""
    values = np.random.default_rng(2).gamma(4, 10, 20_000)
    return tt.histogram(
        values,
        edges=list(range(0, 105, 5)),
        outside="clip",
        epsilon=0.5,
        entity="person",
        insecure_seed=1,
    )


def shot(
    release: Any, file: Path, look: PageOptions, *, width: int = 1280, dark: bool = False, **at: str
) -> None:
    """A page in a browser as a picture, at a region, or with another to compare with."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "page.html"
        # The mark of an insecure seed is true, and no part of what the picture is to show.
        page_file.write_text(report_html(release, None, look), encoding="utf-8")
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        scheme = "dark" if dark else "light"
        view = {"width": width, "height": width * 3 // 4}
        page = browser.new_context(viewport=view, color_scheme=scheme).new_page()
        page.goto(page_file.as_uri() + at.get("region", ""))
        page.wait_for_selector("body[data-ready=yes]")
        if "other" in at:
            page.fill("#compare", at["other"])
            page.dispatch_event("#compare", "change")
        page.evaluate("document.getElementById('watermark').hidden = true")
        page.screenshot(path=str(file))
        browser.close()


def plan_picture(file: Path) -> None:
    """Error against ε for several ways to release."""
    from tallytree.cli.plan import VARIANTS

    public = housing_counts(400_000)
    assumed = assumed_counts(public.hierarchy, public.n_groups, named_shape("households"))
    file.write_text(trade_off(assumed, VARIANTS, around=1, runs=1).svg(), encoding="utf-8")


HOMES = PageOptions(group_name="household/households", title="Households by size")
MADE: dict[str, Callable[[Path], Any]] = {
    "report.png": lambda file: shot(homes(), file, HOMES),
    "report-area.png": lambda file: shot(homes(), file, HOMES, dark=True, region="#US/Ohio"),
    "report-compare.png": lambda file: shot(homes(), file, HOMES, other="Ohio"),
    "report-histogram.png": lambda file: shot(ages(), file, PageOptions(title="Ages"), width=1100),
    "map-report.png": lambda file: shot(city(), file, PageOptions(title="Trips in a city")),
    "city-map.png": lambda file: city().picture(file),
    "plan.svg": plan_picture,
}


def main() -> None:
    """Make the named pictures, or all of them."""
    for name in sys.argv[1:] or MADE:
        MADE[name](PICTURES / name)
        print(f"wrote {PICTURES / name}")


if __name__ == "__main__":
    main()

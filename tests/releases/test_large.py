"""The report of large releases in a real browser: 3,108 counties, and 35,672 areas in five levels.

The data are made up in the same shape; with TALLYTREE_DATA, the real ones are taken.
"""

import csv
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tallytree import ConfidentialCounts, Release, release, with_intervals
from tallytree.group_sizes.plan.shapes import assumed_counts, named_shape
from tallytree.kinds.showing import write_report
from tallytree.model.count_of_counts import counts_from_dense
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves
from tallytree.model.unit import Unit
from tallytree.papers.datasets import county_housing
from tests.releases.browsing import Visit

DATA = os.environ.get("TALLYTREE_DATA")
MOST_BYTES = 15_000_000
# Seconds on a busy machine; a quiet one needs a tenth.
LOAD, SEARCH = 15.0, 2.0


def counties() -> ConfidentialCounts:
    if DATA:
        return county_housing(Path(DATA))
    leaves = [(f"State {i % 51:02d}", f"{i:05d}") for i in range(3_108)]
    tree = hierarchy_from_leaves(["state", "county"], leaves, root="US")
    n_groups = np.random.default_rng(1).lognormal(9, 1.4, len(leaves)).astype(np.int64) + 20
    return assumed_counts(tree, n_groups, named_shape("households"))


def small_areas() -> ConfidentialCounts:
    """England and Wales: 1 / 2 / 331 / 7,264 / 35,672 regions."""
    levels, root = ["country", "ltla", "msoa", "lsoa"], "England and Wales"
    if DATA:
        name = Path(DATA) / "ew2021_hhsize_lsoa" / "ew2021_hhsize_lsoa.csv.gz"
        with gzip.open(name, "rt", newline="", encoding="utf-8") as file:
            rows = sorted(
                csv.DictReader(file), key=lambda row: tuple(row[level] for level in levels)
            )
        table = np.array(
            [[0, *(int(row[f"hh{s}"]) for s in range(1, 8)), int(row["hh8plus"])] for row in rows]
        )
        counts = counts_from_dense(table)
        tree = hierarchy_from_leaves(
            levels, [tuple(row[level] for level in levels) for row in rows], root=root
        )
        return ConfidentialCounts(
            PublicFacts(tree, unit=Unit("person"), group="household"), counts, counts.n_groups()
        )
    leaves = []
    for leaf in range(35_672):
        middle = leaf * 7_264 // 35_672
        district = middle * 331 // 7_264
        country = "England" if district < 309 else "Wales"
        leaves.append(
            (
                country,
                f"District {district:03d}",
                f"District {district:03d} {middle:04d}",
                f"E{leaf:08d}",
            )
        )
    tree = hierarchy_from_leaves(levels, leaves, root=root)
    n_groups = np.random.default_rng(2).normal(695, 110, len(leaves)).clip(50).astype(np.int64)
    return assumed_counts(tree, n_groups, named_shape("households"))


def made(counts: ConfidentialCounts) -> Release:
    return with_intervals(release(counts, epsilon=1, insecure_seed=1), copies=2)


@pytest.mark.parametrize(("data", "n_leaves"), [(counties, 3_108), (small_areas, 35_672)])
@pytest.mark.slow
def test_a_large_report_is_small_quick_and_clean(
    browser: Any, tmp_path: Path, data: Callable[[], ConfidentialCounts], n_leaves: int
) -> None:
    published = made(data())
    tree = published.hierarchy
    assert tree.n_leaves == n_leaves
    published.save(tmp_path / "out")
    file = write_report(tmp_path / "out")
    assert file.stat().st_size < MOST_BYTES

    begun = time.perf_counter()
    visit = Visit(browser, file)
    load = time.perf_counter() - begun
    page = visit.page
    assert "Left out" not in page.inner_text("#use")

    leaf = tree.paths[-7]
    begun = time.perf_counter()
    page.fill("#search", leaf.split("/")[-1].upper())
    page.wait_for_selector("#list li[data-region]")
    search = time.perf_counter() - begun
    page.keyboard.press("Enter")
    assert page.inner_text("#region") == leaf.replace("/", " / ")

    page.click("#crumbs button >> nth=0")
    for _ in range(tree.n_levels - 1):
        page.click("#list li[data-region] >> nth=0")
    first = tree.paths[tree.level_slice(tree.n_levels - 1).start]
    assert page.inner_text("#region") == first.replace("/", " / ")
    counts = published.region(first)
    bar = page.text_content(
        f"#bars rect:has(title:text-matches('^size {counts.size[1]}:')) >> title"
    )
    assert bar.startswith(f"size {counts.size[1]}: {counts.count[1]:,} (")
    assert page.locator("#bars .whisker").count() > 0
    page.keyboard.press("Backspace")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#crumbs li").count() == tree.n_levels
    visit.assert_clean()
    assert load < LOAD
    assert search < SEARCH
    print(
        f"{n_leaves:,} leaves: {file.stat().st_size / 1e6:.2f} MB, load {load:.2f} s, search "
        f"{search:.3f} s"
    )

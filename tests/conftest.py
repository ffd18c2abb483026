"""Settings and fixtures that all tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import tallytree

# Kernels compile on their first call, so a deadline per example would measure the compiler, and how
# long examples take to draw the machine. The examples are the same in every run: what a change
# breaks is found, and luck finds nothing.
settings.register_profile(
    "tallytree",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples each time, and how to repeat one that fails: pytest --hypothesis-profile explore
settings.register_profile(
    "explore",
    settings.get_profile("tallytree"),
    max_examples=600,
    derandomize=False,
    print_blob=True,
)
settings.load_profile("tallytree")


# What shows by many runs that a promise holds: exact loss over all neighbours, attacks with real
# noise, kills and faults at every moment, edits of every value, fuzzers, how often intervals hold,
# the documents' tables. `make proofs` runs it; single tests elsewhere carry the mark themselves.
PROOFS = (
    "attacks/",
    "fuzz/",
    "golden/",
    "group_sizes/test_interval_settings.py",
    "group_sizes/test_intervals.py",
    "ledger/test_concurrency.py",
    "maps/test_evaluate.py",
    "maps/test_grids.py",
    "papers/test_dpbench.py",
    "papers/test_fioretto2021.py",
    "papers/test_hay2010.py",
    "papers/test_kuo2018.py",
    "papers/test_qardaji2013.py",
    "papers/test_slides.py",
    "ranges/test_range_accuracy.py",
    "releases/test_crashes.py",
    "releases/test_edited_values.py",
    "releases/test_faults.py",
    "releases/test_library_door.py",
    "releases/test_missing_keys.py",
    "releases/test_system_faults.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the folders and files above hold as proofs."""
    root = Path(__file__).parent
    for item in items:
        if item.path.relative_to(root).as_posix().startswith(PROOFS):
            item.add_marker(pytest.mark.proof)


def pytest_configure() -> None:
    """Forget compiled kernels that are older than the numbers they have frozen: Numba looks at a
    kernel's own file only.
    """
    package = Path(tallytree.__file__).parent
    tuned = max(file.stat().st_mtime for file in (package / "tuning").glob("*.py"))
    for compiled in (package / "group_sizes" / "kernels").glob("__pycache__/*.nb*"):
        if compiled.stat().st_mtime < tuned:
            compiled.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, named by TALLYTREE_DATA."""
    folder = os.environ.get("TALLYTREE_DATA")
    if not folder:
        pytest.skip(
            "SKIPPED LOUDLY: set TALLYTREE_DATA to the folder of real data to run this test"
        )
    return Path(folder)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Optimised strategies are cached in a folder of the tests, not of the user."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser that the tests of pages share."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="SKIPPED LOUDLY: playwright is not installed"
    )
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on this machine: .ci/run installs it")
        pytest.skip("SKIPPED LOUDLY: no Chromium on this machine")
    arguments = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=arguments)
        yield chromium
        chromium.close()

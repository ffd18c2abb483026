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


def pytest_configure() -> None:
    """Forget compiled kernels that are older than the numbers they have frozen: Numba looks at a
    kernel's own file only.
    """
    package = Path(tallytree.__file__).parent
    tuned = max(file.stat().st_mtime for file in (package / "tuning").glob("*.py"))
    for compiled in (package / "kernels").glob("__pycache__/staircase*.nb*"):
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

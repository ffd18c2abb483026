"""Settings and fixtures that all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Kernels compile on their first call, so a deadline per example would measure the compiler.
settings.register_profile("tallytree", deadline=None, max_examples=60)
settings.load_profile("tallytree")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data, named by TALLYTREE_DATA."""
    folder = os.environ.get("TALLYTREE_DATA")
    if not folder:
        pytest.skip("SKIPPED LOUDLY: set TALLYTREE_DATA to the folder of real data to run this test")
    return Path(folder)

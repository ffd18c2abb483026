"""Kernels are compiled when they are first called; others that they call become part of them."""

import gc
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

from tallytree.kernels.jit import telling

SOURCE = """
from tallytree.kernels.jit import serial

@serial
def add_one(values, place):
    values[place] += 1

@serial
def add_to_all(values):
    for place in range(len(values)):
        add_one(values, place)
"""


def fresh_kernels(folder: Path) -> ModuleType:
    """Kernels that no cache has, unless they were made in this folder before."""
    file = folder / "fresh_kernels.py"
    if not file.exists():
        file.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("fresh_kernels", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compiling_is_told_once_and_collects_no_garbage(tmp_path: Path) -> None:
    told: list[bool] = []
    kernels, values = fresh_kernels(tmp_path), np.zeros(3)
    with telling(lambda: told.append(gc.isenabled())):
        kernels.add_to_all(values)
        kernels.add_to_all(values)
    assert values.tolist() == [2.0, 2.0, 2.0]
    assert told == [False]
    assert gc.isenabled()
    kernels.add_to_all(np.zeros(3, dtype=np.int64))
    assert len(told) == 1


def test_what_was_compiled_before_is_not_told(tmp_path: Path) -> None:
    told: list[None] = []
    fresh_kernels(tmp_path).add_to_all(np.zeros(2))
    with telling(lambda: told.append(None)):
        fresh_kernels(tmp_path).add_to_all(np.zeros(2))
    assert told == []


def test_a_part_may_be_called_on_its_own_before_and_after(tmp_path: Path) -> None:
    kernels, values = fresh_kernels(tmp_path), np.zeros(2)
    kernels.add_one(values, 0)
    kernels.add_to_all(values)
    kernels.add_one(values, 1)
    assert values.tolist() == [2.0, 2.0]
    other, values = fresh_kernels(tmp_path), np.zeros(2)
    other.add_to_all(values)
    other.add_one(values, 1)
    assert values.tolist() == [1.0, 2.0]


def test_importing_kernels_does_not_load_numba() -> None:
    code = "import sys, tallytree.group_sizes.kernels.tree; print('numba' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "False"

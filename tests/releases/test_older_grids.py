"""Folders of the former kind of histograms in several dimensions, as the last version with that
kind wrote them.
"""

import json
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallytree as tt
from tallytree.errors import VerificationError
from tallytree.kinds.showing import write_report
from tallytree.releases.older_grids import nested_blocks
from tallytree.storage.folder import write_manifest

FOLDERS = Path(__file__).parents[1] / "fixtures" / "format-2"
EXPECTED = json.loads((FOLDERS / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_grid_loads_verifies_answers_and_reports(name: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDERS / name, tmp_path / name))
    made = tt.load(folder)
    tt.verify(folder).raise_if_failed()
    assert made.surface.density.ravel().tolist() == pytest.approx(EXPECTED[name]["counts"])
    for box in EXPECTED[name]["boxes"]:
        answer, wanted = made.range(list(zip(box["low"], box["high"]))), box["answer"]
        assert answer.std_error == pytest.approx(wanted["standard_error"])
        found = (answer.estimate, answer.low, answer.high)
        assert found == pytest.approx((wanted["estimate"], wanted["low"], wanted["high"]))
    assert write_report(folder).stat().st_size > 10_000


@pytest.mark.parametrize("name", EXPECTED)
def test_saved_again_it_is_the_same_map(name: str, tmp_path: Path) -> None:
    made = tt.load(FOLDERS / name)
    again = tt.load(made.save(tmp_path / "again"))
    assert again.manifest == made.manifest
    assert again.table().equals(made.table())
    assert again.axes == made.axes
    tt.verify(tmp_path / "again").raise_if_failed()
    if made.noisy is not None:
        estimated = tt.re_estimate(FOLDERS / name)
        assert np.abs(estimated.surface.density - made.surface.density).max() <= 1


def _other_share(manifest: dict[str, Any]) -> None:
    manifest["privacy"]["levels"][0]["scale"] = "1"


def _other_sensitivity(manifest: dict[str, Any]) -> None:
    for part in (manifest["privacy"]["levels"], manifest["privacy"]["composition"]["parts"]):
        part[0]["sensitivity"]["l1"] = 7


def _other_cells(manifest: dict[str, Any]) -> None:
    manifest["mechanism"]["shape"] = [7, 5]


@pytest.mark.parametrize("change", [_other_share, _other_sensitivity, _other_cells])
def test_figures_that_do_not_fit_are_refused(change: Any, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FOLDERS / "grid-least-squares", tmp_path / "grid"))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    change(manifest)
    write_manifest(folder, {name: value for name, value in manifest.items() if name != "sha256"})
    with pytest.raises(VerificationError):
        tt.load(folder)


@pytest.mark.parametrize("shape", [(5,), (4, 7), (3, 2, 5), (1, 1)])
@pytest.mark.parametrize("widths", [(1,), (2, 1), (3, 1), (4, 2, 1), (8, 4, 2, 1)])
def test_blocks_are_those_of_their_widths(shape: tuple[int, ...], widths: tuple[int, ...]) -> None:
    blocks = nested_blocks(shape, widths)
    assert blocks.tree.tiles()
    for width, nodes in zip(widths, blocks.levels):
        starts = product(*(range(0, size, width) for size in shape))
        ends = [tuple(min(a + width, size) for a, size in zip(start, shape)) for start in starts]
        assert [tuple(high) for high in blocks.tree.high[nodes].tolist()] == ends

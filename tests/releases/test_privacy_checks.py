"""An outsider recomputes the loss of a release from its manifest; whoever edits one figure is found
out.
"""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallytree as tt
from tallytree.cli import main
from tallytree.degree_sequences.publish import degrees
from tallytree.kinds.verbs import verify_privacy
from tallytree.ranges.publish import histogram
from tallytree.releases.checks import Check
from tallytree.releases.opening import open_folder
from tallytree.releases.privacy_checks import recomputed_loss
from tallytree.releases.rewriting import FOLLOWS, told_once
from tests.forging import forge

PEOPLE = pa.table({"household": [1, 1, 2, 3, 3, 3, 4, 5], "state": ["GA"] * 6 + ["NY"] * 2})
TRIPS = pa.table({"taxi": [1, 1, 2, 3], "city": ["A", "A", "A", "B"], "miles": [2, 9, 4, 1]})
FRIENDS = pa.table({"a": [1, 1, 2], "b": [2, 3, 3]})
VALUES = [1, 2, 3, 5, 8, 13, 21, 34]


def group_sizes(**options: Any) -> Any:
    return tt.release(
        tt.read(PEOPLE, group="household", levels=["state"], public="groups"),
        **({"epsilon": 1} | options),
    )


def private_groups(**options: Any) -> Any:
    counts = tt.read(PEOPLE, group="household", levels=["state"], public="regions")
    return tt.release(counts, **({"epsilon": 1} | options))


def quantities() -> Any:
    counts = tt.read(
        TRIPS, group="taxi", levels=["city"], quantity="miles", max_quantity=5, public="groups"
    )
    return tt.release(counts, epsilon="1/3", view=["sizes", "cumulative"], budget=["0.3", "0.7"])


def ranges(**options: Any) -> Any:
    return histogram(VALUES, bins=8, bounds=(0, 40), **({"epsilon": 1} | options))


RELEASES: dict[str, Callable[[], Any]] = {
    "matching, hybrid": group_sizes,
    "matching, naive": lambda: group_sizes(view="naive"),
    "matching, sizes": lambda: group_sizes(view="sizes", epsilon=0.1),
    "matching, cumulative": lambda: group_sizes(view="cumulative", max_size=10),
    "matching, zcdp": lambda: group_sizes(epsilon=None, rho="1/7", definition="zcdp"),
    "bottom-up": lambda: group_sizes(mechanism="bottom-up"),
    "chain": lambda: group_sizes(mechanism="chain", max_size=10),
    "tree-dp, zcdp": lambda: group_sizes(
        mechanism="tree-dp", max_size=10, epsilon=None, rho=1, definition="zcdp"
    ),
    "topdown": lambda: group_sizes(mechanism="topdown", max_size=10),
    "private groups": private_groups,
    "private groups, zcdp": lambda: private_groups(
        epsilon=None, rho=0.2, definition="zcdp", view="cumulative"
    ),
    "quantities": quantities,
    "flat": lambda: ranges(mechanism="flat"),
    "hierarchical": lambda: ranges(
        mechanism="hierarchical", branching=2, budget="geometric", contributions=3
    ),
    "wavelet, zcdp": lambda: ranges(
        mechanism="wavelet", epsilon=None, rho="0.1", definition="zcdp"
    ),
    "degrees of groups": lambda: degrees([3, 1, 4, 1, 5], epsilon=0.5, contributions=2),
    "degrees of a graph, zcdp": lambda: degrees(
        FRIENDS, edges=("a", "b"), rho=1, definition="zcdp", public="nodes"
    ),
    "matrix": lambda: ranges(mechanism=np.vstack([np.eye(8), np.ones((2, 8))])),
}


@pytest.fixture(scope="module", params=RELEASES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(RELEASES[request.param]().save(tmp_path_factory.mktemp("release") / "out"))


def edited(folder: Path, where: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of the release whose manifest was changed."""
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    where.mkdir()
    for file in folder.iterdir():
        (where / file.name).write_bytes(file.read_bytes())
    forge(where, manifest)
    return where


def test_every_mechanism_can_be_recomputed(folder: Path) -> None:
    assert verify_privacy(folder), verify_privacy(folder).checks
    privacy = json.loads((folder / "manifest.json").read_text())["privacy"]
    stated = Fraction(privacy["epsilon" if privacy["definition"] == "pure" else "rho"])
    assert recomputed_loss(open_folder(folder)).total == stated


def leaves(record: dict[str, Any]) -> list[dict[str, Any]]:
    return (
        [leaf for part in record["parts"] for leaf in leaves(part)]
        if "parts" in record
        else [record]
    )


def larger(text: str) -> str:
    return str(Fraction(text) * 2)


EDITS: dict[str, Callable[[dict[str, Any]], None]] = {
    "noise in the record": lambda privacy: scale(leaves(privacy["composition"])[-1]),
    "noise per level": lambda privacy: scale(
        next(one for one in privacy.get("levels", [privacy]) if "noise" in one)
    ),
    "loss of a measurement": lambda privacy: leaves(privacy["composition"])[0].update(
        loss="1/1000"
    ),
    "sensitivity": lambda privacy: leaves(privacy["composition"])[-1]["sensitivity"].update(
        l1=17, l2_squared=17
    ),
    "stated loss": lambda privacy: privacy.update(epsilon="1/1000", rho="1/1000"),
    "definition": lambda privacy: privacy.update(
        definition="pure" if privacy["definition"] == "zcdp" else "zcdp"
    ),
    "contributions": lambda privacy: privacy["unit"].update(
        contributions=privacy["unit"]["contributions"] + 1
    ),
    "statement": lambda privacy: privacy.update(
        statement=privacy["statement"].replace("e^1", "e^0.01") + " "
    ),
    "what is fixed": lambda privacy: privacy["fixed"].append("the weather"),
    "cost of replacing": lambda privacy: privacy.update(replacing={"epsilon": "1/100"}),
    "unit's name": lambda privacy: privacy["unit"].update(name="household"),
    "seed": lambda privacy: privacy.update(private=False),
    "no record": lambda privacy: privacy.pop("composition"),
    "broken record": lambda privacy: privacy.update(composition={"noise": "none"}),
    "fewer measurements": lambda privacy: (
        privacy["composition"].update(composition="parallel", parts=[]) or privacy["composition"]
    ),
}


def scale(facts: dict[str, Any]) -> None:
    name = next(name for name in ("scale", "sigma2", "variance") if name in facts)
    facts[name] = larger(facts[name])


@pytest.mark.parametrize("edit", EDITS)
def test_one_edited_figure_is_found(folder: Path, edit: str, tmp_path: Path) -> None:
    changed = edited(folder, tmp_path / "edited", lambda manifest: EDITS[edit](manifest["privacy"]))
    assert not verify_privacy(changed)


def test_the_command_tells_what_does_not_hold(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(group_sizes(mechanism="matching").save(tmp_path / "out"))

    def command(path: Path, *options: str) -> int:
        with pytest.raises(SystemExit) as end:
            main(["verify", "--privacy", str(path), *options])
        return int(end.value.code or 0)

    assert command(folder) == 0
    assert "the measurements cost at most epsilon = 1" in capsys.readouterr().err
    changed = edited(
        folder,
        tmp_path / "edited",
        lambda manifest: EDITS["noise in the record"](manifest["privacy"]),
    )
    assert command(changed, "--json") == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["passed"] is False
    assert any(
        "sensitivity and noise cost epsilon = 1/4, stated is 1/2" in check["detail"]
        for check in shown["checks"]
    )
    assert command(tmp_path / "nothing") == 2


def test_a_release_made_with_a_seed_does_not_pass(tmp_path: Path) -> None:
    folder = group_sizes(insecure_seed=1).save(tmp_path / "out")
    failed = [check.name for check in verify_privacy(folder).checks if not check.passed]
    assert failed == ["the noise came from secure randomness"]


def test_the_check_of_the_whole_manifest_is_told_where_no_other_failed() -> None:
    whole, good, bad = Check(FOLLOWS, False, "x differ."), Check("a", True), Check("b", False)
    assert told_once([good, whole]) == (good, whole)
    assert told_once([good, whole, bad]) == (good, bad)

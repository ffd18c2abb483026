"""Every kind shows itself in a notebook and has a card; verify compares the card with the manifest."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kinds.table import KINDS
from tallytree.storage.sealing import sealed
from tests.kinds.test_kinds import MAKERS, run


@pytest.mark.parametrize("name", KINDS)
def test_a_release_shows_itself_without_a_path(name: str, tmp_path: Path) -> None:
    made = MAKERS[name]()
    page = made.report(title="Of <all>", source_note="a survey", notes=["Mind the gap."])
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert "<title>Of &lt;all&gt;</title>" in page.html
    assert "&lt;title&gt;Of &amp;lt;all&amp;gt;" in page._repr_html_()
    assert page.save(tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    picture = made.plot(tmp_path / "picture")
    svg, png = picture._repr_svg_(), picture._repr_png_()
    assert (svg is None) == (name == "map")
    assert svg.startswith("<svg") if svg is not None else png.startswith(b"\x89PNG")
    assert (tmp_path / "picture").stat().st_size > 100


def test_bars_are_the_counts_with_their_intervals() -> None:
    made = tt.with_intervals(MAKERS["group-sizes"](), copies=2)
    svg = made.plot(region="total/GA")._repr_svg_()
    counts = made.region("total/GA")
    assert svg.count("<rect") == 1 + len(counts.size)
    for size, count in zip(counts.size.tolist(), counts.count.tolist()):
        assert f"<title>{size}: {count}, " in svg
    with pytest.raises(RequestError):
        made.plot(region="total/nowhere")


def test_one_column_of_a_map_is_drawn_as_bars() -> None:
    line = tt.spatial(counts=np.arange(40), epsilon=1, insecure_seed=1)
    assert line.plot()._repr_svg_().count("<rect") == 41


def test_evaluation_takes_a_table_and_how_to_read_it() -> None:
    people = pd.DataFrame({"household": [1, 1, 2, 3, 3, 3, 4], "state": ["GA"] * 6 + ["NY"]})
    made = MAKERS["group-sizes"]()
    errors = tt.evaluate(made, people, group="household", levels=["state"])
    read = tt.read(people, group="household", levels=["state"], public="groups")
    assert (
        errors == tt.evaluate(made, read) or errors.to_json() == tt.evaluate(made, read).to_json()
    )


@pytest.mark.parametrize("name", KINDS)
def test_the_card_says_what_the_manifest_says(name: str, tmp_path: Path) -> None:
    made, folder = MAKERS[name](), tmp_path / "out"
    made.save(folder)
    facts, text = tt.card(folder, name="A *thing*", curator=["An office"], sources=["one", "two"])
    deployment = json.loads(facts.read_text(encoding="utf-8"))["deployment"]
    privacy = made.manifest["privacy"]
    assert deployment["basic"]["name"] == "A *thing*"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1}
    assert deployment["privacy_loss"]["privacy_parameters_details"] == privacy["statement"]
    assert privacy["neighbours"] in deployment["privacy_loss"]["privacy_unit_details"]
    assert deployment["dp_variant"]["variant_name"] == "Pure DP"
    assert deployment["administrative"] == {"sources": "one\ntwo"}
    assert "NOT PRIVATE" in deployment["implementation"]["mechanisms"]
    assert "# A \\*thing\\*" in text.read_text(encoding="utf-8")
    verified = tt.verify(folder)
    assert verified
    assert "the card says what the manifest says" in [check.name for check in verified.checks]


def spoilt(folder: Path, what: str) -> None:
    card = folder / "card.json"
    facts: dict[str, Any] = json.loads(card.read_text(encoding="utf-8"))
    match what:
        case "another loss":
            facts["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.1
            card.write_text(
                sealed({name: facts[name] for name in facts if name != "sha256"}), encoding="utf-8"
            )
        case "another release":
            facts["release"]["manifest_sha256"] = "0" * 64
            card.write_text(
                sealed({name: facts[name] for name in facts if name != "sha256"}), encoding="utf-8"
            )
        case "no card":
            card.write_text(sealed({"format_version": 1}), encoding="utf-8")
        case "half":
            (folder / "card.md").unlink()
        case "text":
            text = (folder / "card.md").read_text(encoding="utf-8")
            (folder / "card.md").write_text(
                text.replace("epsilon = 1", "epsilon = 0"), encoding="utf-8"
            )
        case "bit":
            card.write_text(
                card.read_text(encoding="utf-8").replace("Central", "Local"), encoding="utf-8"
            )


@pytest.mark.parametrize(
    "what", ["another loss", "another release", "no card", "half", "text", "bit"]
)
def test_a_card_that_says_otherwise_is_found(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    MAKERS["histogram"]().save(folder)
    tt.card(folder)
    spoilt(folder, what)
    failed = [check.name for check in tt.verify(folder).checks if not check.passed]
    assert failed == ["the card says what the manifest says"]


def test_the_command_writes_a_card(tmp_path: Path) -> None:
    MAKERS["map"]().save(tmp_path / "out")
    assert (
        run("card", str(tmp_path / "out"), "--published", "2026-11-16", "--sector", "Government")
        == 0
    )
    assert "2026-11-16" in (tmp_path / "out" / "card.md").read_text(encoding="utf-8")
    assert run("verify", str(tmp_path / "out")) == 0

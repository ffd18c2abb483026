"""The card of every kind is what the registry of deployments takes.

The registry's schema is read from TALLYTREE_DATA/deployments_registry where it lies; its form
stands here in our own words too.
"""

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tallytree as tt
from tallytree.errors import RequestError
from tallytree.kinds.table import KINDS
from tallytree.options.card import CardOptions
from tallytree.releases.registry import record_yaml, slug_of
from tests.kinds.test_kinds import MAKERS, run

TEXT: dict[str, Any] = {}
# What each part of a deployment may say: a list of values, a type, or any text. "!" marks what is
# required.
FORM: dict[str, dict[str, Any]] = {
    "basic": {
        "name!": TEXT,
        "data_curators!": list,
        "description!": TEXT,
        "intended_use!": TEXT,
        "data_product_type!": [
            "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries",
        ],
        "data_product_region!": TEXT,
        "publication_date!": date,
        "data_product_sector": ["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"],
    },
    "dp_variant": {
        "variant_name": ["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"],
        "data_domain": TEXT,
        "unprotected_quantities": TEXT,
    },
    "privacy_loss": {
        "privacy_unit": TEXT,
        "privacy_unit_details": TEXT,
        "privacy_parameters": {"epsilon": float, "delta": float, "rho": float},
        "privacy_parameters_details": TEXT,
    },
    "deployment_model": {
        "model_name": ["Local", "Central", "Shuffle", "Federated", "Varies"],
        "model_name_details": TEXT,
        "actors": TEXT,
        "release_type": ["One release", "Many releases"],
        "release_type_details": TEXT,
        "data_source_type": ["Static", "Dynamic"],
        "data_source_type_details": TEXT,
        "access_type": ["Interactive", "Non-interactive"],
        "access_type_details": TEXT,
    },
    "accounting": {"post_processing": TEXT, "composition": TEXT},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": TEXT, "mechanisms": TEXT, "justification": TEXT,
    },
    "administrative": {"sources": TEXT, "notes": TEXT, "registry_authors!": list},
}  # fmt: skip
STATES = [
    "Converted", "Draft", "Pending", "Changes Required", "Approved", "Approved (Update Requested)", "Approved (Pending)",
]  # fmt: skip
SAID: dict[str, Any] = {
    "name": "Homes of Québec: 2026\u2028“so”\x85 \\n # - {a}",
    "curator": ["Statistics Office", "- [b]"],
    "intended_use": "yes",
    "region": "Canada",
    "published": "2026-11-16",
    "sector": "Government",
    "data": "One row per person: 😀",
    "justification": "null",
    "sources": ["https://example.org/#a: b", "12"],
    "authors": ["~"],
}
WORDS = [
    word
    for name, said in SAID.items()
    for one in (said if isinstance(said, list) else [said])
    for word in (f"--{name.replace('_', '-')}", one)
]


def wrong(record: dict[str, Any]) -> list[str]:
    """What the registry would not take in a record, in our own words."""
    problems = [] if set(record) == {"url_slug", "status", "tier", "deployment"} else ["top"]
    problems += [
        name
        for name, known in (("status", STATES), ("tier", [1, 2, 3]))
        if record.get(name) not in known
    ]
    problems += [part for part in record["deployment"] if part not in FORM]
    problems += [] if "basic" in record["deployment"] else ["basic"]
    for part, fields in FORM.items():
        facts = record["deployment"].get(part)
        if facts is None:
            continue
        kinds = {name.rstrip("!"): kind for name, kind in fields.items()}
        problems += [
            f"{part}.{name[:-1]}"
            for name in fields
            if name.endswith("!") and name[:-1] not in facts
        ]
        problems += [
            f"{part}.{name}" for name, value in facts.items() if not fits(value, kinds.get(name))
        ]
    return problems


def fits(value: Any, kind: Any) -> bool:
    if kind is None:
        return False
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is list:
        return (
            isinstance(value, list)
            and bool(value)
            and all(isinstance(entry, str) for entry in value)
        )
    if kind is date:
        return isinstance(value, str) and is_day(value)
    if isinstance(kind, list):
        return value in kind
    if kind == TEXT:
        return isinstance(value, str)
    return isinstance(value, dict) and all(
        fits(entry, kind.get(name)) for name, entry in value.items()
    )


def is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def read_yaml(text: str) -> dict[str, Any]:
    yaml = pytest.importorskip(
        "yaml", reason="SKIPPED LOUDLY: install PyYAML to read the record back"
    )
    facts: dict[str, Any] = yaml.safe_load(text)
    return facts


@pytest.fixture(scope="module")
def registry() -> Path:
    folder = Path(os.environ.get("TALLYTREE_DATA", "")) / "deployments_registry"
    if not os.environ.get("TALLYTREE_DATA") or not folder.is_dir():
        pytest.skip(
            "SKIPPED LOUDLY: no deployments_registry in TALLYTREE_DATA, so the registry's schema "
            "was not read"
        )
    return folder


def by_schema(registry: Path, record: dict[str, Any]) -> list[str]:
    draft7 = pytest.importorskip("jsonschema").Draft7Validator
    schema = read_yaml((registry / "deployments-schema.yaml").read_text(encoding="utf-8"))
    return [
        error.message
        for error in draft7(schema, format_checker=draft7.FORMAT_CHECKER).iter_errors(record)
    ]


def released(kind: str, folder: Path) -> dict[str, Any]:
    MAKERS[kind]().save(folder)
    _, _, file = tt.card(folder, yaml=True, **SAID)
    return read_yaml(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_of_every_kind_is_what_the_registry_takes(kind: str, tmp_path: Path) -> None:
    """Five violations in ``deployment`` and three absent fields before."""
    record = released(kind, tmp_path / "out")
    assert wrong(record) == []
    card = json.loads((tmp_path / "out" / "card.json").read_text(encoding="utf-8"))
    assert {name: card[name] for name in record} == record
    assert record["deployment"]["basic"]["name"] == SAID["name"]
    assert record["tier"] == 3
    assert record["url_slug"] == "homes_of_quebec_2026_so_n_a"
    assert tt.verify(tmp_path / "out")


@pytest.mark.data
@pytest.mark.parametrize("kind", KINDS)
def test_the_record_of_every_kind_is_valid_by_the_schema(
    kind: str, tmp_path: Path, registry: Path
) -> None:
    assert by_schema(registry, released(kind, tmp_path / "out")) == []


# What the registry's own examples of bad records do, each to a good one.
SPOILS: dict[str, Any] = {
    "no status": lambda record: record.pop("status"),
    "no slug": lambda record: record.pop("url_slug"),
    "tier 0": lambda record: record.update(tier=0),
    "surprise": lambda record: record.update(surprise=1),
    "part surprise": lambda record: record["deployment"].update(product={}),
    "date": lambda record: record["deployment"]["basic"].update(publication_date="1/1/2026"),
    "no date": lambda record: record["deployment"]["basic"].pop("publication_date"),
    "type": lambda record: record["deployment"]["basic"].update(data_product_type="surprise"),
    "authors": lambda record: record["deployment"]["administrative"].pop("registry_authors"),
    "no curator": lambda record: record["deployment"]["basic"].update(data_curators=[]),
    "loss as text": lambda record: record["deployment"]["privacy_loss"][
        "privacy_parameters"
    ].update(epsilon="1/3"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_our_words_refuse_what_the_registry_refuses(spoil: str, tmp_path: Path) -> None:
    record = released("histogram", tmp_path / "out")
    SPOILS[spoil](record)
    assert wrong(record)


@pytest.mark.data
def test_the_schema_and_our_words_say_the_same(registry: Path, tmp_path: Path) -> None:
    schema = read_yaml((registry / "deployments-schema.yaml").read_text(encoding="utf-8"))[
        "properties"
    ]
    assert schema["status"]["enum"] == STATES
    parts = schema["deployment"]["properties"]
    assert set(parts) == set(FORM)
    for part, fields in FORM.items():
        assert {name.rstrip("!") for name in fields} == set(parts[part]["properties"])
        assert {name[:-1] for name in fields if name.endswith("!")} == set(
            parts[part].get("required", ())
        )
        lists = {name.rstrip("!"): kind for name, kind in fields.items() if isinstance(kind, list)}
        there = {
            name: facts["enum"]
            for name, facts in parts[part]["properties"].items()
            if "enum" in facts
        }
        assert lists == there
    for spoil in SPOILS.values():
        record = released("histogram", tmp_path / "out")
        spoil(record)
        assert by_schema(registry, record)
        for file in (tmp_path / "out").iterdir():
            file.unlink()
        (tmp_path / "out").rmdir()
    for good in (registry / "good").glob("*.yaml"):
        assert wrong(read_yaml(good.read_text(encoding="utf-8"))) == [], good.name


def test_the_command_prints_the_record_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    MAKERS["map"]().save(tmp_path / "out")
    assert run("card", str(tmp_path / "out"), "--yaml", *WORDS) == 0
    printed = capsys.readouterr().out
    assert printed == (tmp_path / "out" / "card.yaml").read_text(encoding="utf-8")
    assert wrong(read_yaml(printed)) == []
    assert run("verify", str(tmp_path / "out")) == 0


def test_what_the_registry_requires_and_nobody_said_is_named(tmp_path: Path) -> None:
    MAKERS["stream"]().save(tmp_path / "out")
    with pytest.raises(RequestError, match=r"Add --curator, --intended-use, --region, --authors\."):
        tt.card(tmp_path / "out", yaml=True, name="A", published="2026-11-16", sources=["a"])
    with pytest.raises(RequestError, match="a Latin letter or a digit"):
        tt.card(tmp_path / "out", yaml=True, **SAID | {"name": "世帯"})
    assert not (tmp_path / "out" / "card.json").exists()


@pytest.mark.parametrize("published", ["16.11.2026", "20261116", "2026-13-01", "2026-W47-1"])
def test_a_day_is_written_in_one_way(published: str) -> None:
    with pytest.raises(RequestError, match="YYYY-MM-DD"):
        CardOptions(published=published)


def test_a_sector_is_one_of_the_list() -> None:
    with pytest.raises(RequestError, match="Choose one of: Technology, Healthcare"):
        CardOptions.told({"sector": "Other"})


def test_a_changed_or_left_over_record_is_found(tmp_path: Path) -> None:
    released("histogram", tmp_path / "out")
    file = tmp_path / "out" / "card.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("epsilon: 1", "epsilon: 0.1"), encoding="utf-8"
    )
    failed = [check for check in tt.verify(tmp_path / "out").checks if not check.passed]
    assert [check.name for check in failed] == ["the card says what the manifest says"]
    assert "card.yaml" in failed[0].detail
    tt.card(tmp_path / "out")
    assert not file.exists()
    assert tt.verify(tmp_path / "out")


def test_a_stated_loss_is_a_number_and_never_rounded_down(tmp_path: Path) -> None:
    for loss, epsilon, more in (
        ("1/3", 0.33333333333333337, " Exactly, epsilon = 1/3."),
        ("0.1", 0.1, ""),
    ):
        tt.histogram([3, 1], insecure_seed=1, epsilon=loss).save(tmp_path / "out", overwrite=True)
        facts, _ = tt.card(tmp_path / "out")
        stated = json.loads(facts.read_text(encoding="utf-8"))["deployment"]["privacy_loss"]
        assert stated["privacy_parameters"] == {"epsilon": epsilon}
        assert stated["privacy_parameters_details"].endswith(f".{more}")
    tt.histogram([3, 1], insecure_seed=1, epsilon=1, delta="1e-9").save(tmp_path / "other")
    _, _, file = tt.card(tmp_path / "other", yaml=True, **SAID)
    record = read_yaml(file.read_text(encoding="utf-8"))
    assert wrong(record) == []
    assert record["deployment"]["dp_variant"]["variant_name"] == "Approximate DP"
    assert record["deployment"]["privacy_loss"]["privacy_parameters"]["delta"] == 1e-9


def test_any_text_and_any_number_read_back() -> None:
    texts = [
        "",
        "a: b # c",
        "\x00\x1f\x7f\x80\x85\u2028\ufeff\ufffe",
        "'\"\\/",
        "\t- x\n\n y ",
        "😀é",
        "1e-09",
        "\ud83d",
    ]
    record = {"texts": texts, "numbers": [0.1, 1e-9, 1e22, 3, 2.5e-300], "a": {"b": "c"}}
    assert read_yaml(record_yaml(record)) == record
    assert slug_of("  Äpfel & Birnen! ") == "apfel_birnen"


def test_words_that_are_no_text_are_refused(tmp_path: Path) -> None:
    MAKERS["histogram"]().save(tmp_path / "out")
    for said in ({"name": "a\udcff"}, {"curator": ["a", "\udcff"]}):
        with pytest.raises(RequestError, match="no text in UTF-8"):
            tt.card(tmp_path / "out", **said)

"""The card of a deployment: what a release is and promises, in the manifest's words, in the form of
the Differential Privacy Deployments Registry.

What the manifest does not know, such as who publishes, its owner says. What nobody said is left
out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tallytree.errors import TallytreeError
from tallytree.options.card import CardOptions
from tallytree.privacy.guarantee import budget_of
from tallytree.releases.notes import notes_of
from tallytree.releases.registry import RECORD, number_above, record_of, record_yaml
from tallytree.storage.folder import (
    CARD,
    CARD_TEXT,
    CARD_YAML,
    MANIFEST,
    Manifest,
    has_own_digest,
    lasting_digest,
    read_facts,
)

FORMAT_VERSION = 1
# What a card is filled in with: the option, and where in the registry's form it stands.
SAID = {
    "name": ("basic", "name"),
    "description": ("basic", "description"),
    "curator": ("basic", "data_curators"),
    "intended_use": ("basic", "intended_use"),
    "region": ("basic", "data_product_region"),
    "sector": ("basic", "data_product_sector"),
    "published": ("basic", "publication_date"),
    "data": ("dp_variant", "data_domain"),
    "justification": ("implementation", "justification"),
    "sources": ("administrative", "sources"),
    "authors": ("administrative", "registry_authors"),
}
PRODUCTS = {
    "group-sizes": "how many groups of each size every region has",
    "values": "how a value is distributed in every region: sums, means, quantiles",
    "histogram": "how many rows fall into each bin of a column",
    "map": "how many rows lie in any box",
    "degrees": "how many nodes have each degree",
    "stream": "how many rows came so far, step by step",
}
NOISE = {
    "discrete-laplace": "discrete Laplace (geometric) noise, drawn exactly",
    "discrete-gaussian": "discrete Gaussian noise, drawn exactly",
}
POST_PROCESSING = (
    "Published numbers are worked out from the noisy answers alone, "
    "without a further look at the data."
)
OPTIONS_CHOSEN = (
    "Options are taken to have been chosen without a look at the "
    "data; what a mechanism chooses by them is paid for."
)
ACTORS = (
    "Whoever runs the release, and the machine, see the data and are trusted with them. Readers of "
    "the release are trusted "
    "with nothing, and may know everything but the noise."
)
STREAMED = "Numbers are added step by step; the loss is that of all steps together."
HEADINGS = {
    "basic": "The product",
    "dp_variant": "Differential privacy",
    "privacy_loss": "Privacy loss",
    "deployment_model": "Model",
    "accounting": "Accounting",
    "implementation": "Implementation",
    "administrative": "Resources",
}


def card_json(manifest: Manifest, options: CardOptions, digest: str) -> dict[str, Any]:
    """The card as facts, without its checksum; ``digest`` is that of the manifest."""
    deployment = _derived(manifest)
    for name, (part, field) in SAID.items():
        said = getattr(options, name)
        if said:
            deployment.setdefault(part, {})[field] = _entry(name, said)
    ordered = {part: deployment[part] for part in HEADINGS if deployment.get(part)}
    return {
        "format_version": FORMAT_VERSION,
        **record_of(ordered),
        "release": {"manifest_sha256": digest},
    }


def _entry(name: str, said: Any) -> Any:
    """What was said as the registry's form takes it: sources are one text, a line for each."""
    if name == "sources":
        return "\n".join(said)
    return list(said) if isinstance(said, list | tuple) else said


def _said(name: str, entry: Any) -> Any:
    """The inverse of :func:`_entry`."""
    return entry.split("\n") if name == "sources" else entry


def _derived(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """What follows from the manifest alone."""
    privacy = manifest["privacy"]
    unit, budget = privacy["unit"], budget_of(privacy)
    pure = budget.definition == "pure"
    exact = {"epsilon": budget.total} if pure else {"rho": budget.total}
    if budget.asked is not None:
        exact = {"epsilon": budget.asked[0], "delta": budget.asked[1], **exact}
    variant = (
        "Pure DP"
        if pure
        else "Approximate DP"
        if budget.asked is not None
        else "Zero-concentrated DP"
    )
    stream, notes = manifest["kind"] == "stream", notes_of(manifest)
    return {
        "basic": {
            "data_product_type": "Summary statistics",
            "description": f"Table of {PRODUCTS.get(manifest['kind'], manifest['kind'])}.",
        },
        "dp_variant": {
            "variant_name": variant,
            "unprotected_quantities": _sentences([*privacy["fixed"], *notes.public.values()])
            or "None.",
        },
        "privacy_loss": {
            "privacy_unit": unit["name"],
            "privacy_unit_details": _unit_details(privacy),
            "privacy_parameters": {name: number_above(loss) for name, loss in exact.items()},
            "privacy_parameters_details": " ".join([privacy["statement"], *_rounded(exact)]),
        },
        "deployment_model": {
            "model_name": "Central",
            "actors": ACTORS,
            "release_type": "Many releases" if stream else "One release",
            **({"release_type_details": STREAMED} if stream else {}),
            "data_source_type": "Dynamic" if stream else "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": _composition(manifest),
            "post_processing": POST_PROCESSING,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": " ".join(
                [
                    *([_sentences(list(notes.counting.values()))] if notes.counting else []),
                    OPTIONS_CHOSEN,
                ]
            ),
            "mechanisms": _mechanisms(manifest),
        },
    }


def _unit_details(privacy: Mapping[str, Any]) -> str:
    unit = privacy["unit"]["words"] + (f" ({privacy['adds']})" if privacy["adds"] else "")
    return f"The unit is {unit}. Neighbouring data: {privacy['neighbours']}."


def _rounded(exact: Mapping[str, Fraction]) -> list[str]:
    """A sentence for each loss that no decimal number of a machine is: its exact value, which is
    not above the number.
    """
    return [
        f"Exactly, {name} = {loss}."
        for name, loss in exact.items()
        if Fraction(str(number_above(loss))) != loss
    ]


def _composition(manifest: Manifest) -> str:
    """How the losses of single questions add up, with each of them."""
    privacy = manifest["privacy"]
    symbol = budget_of(privacy).symbol
    asked = [
        *privacy.get("side_queries", ()),
        *privacy.get("levels", ()),
        *privacy.get("steps", ()),
    ]
    parts = [f"{_called(one)}: {symbol} = {one[symbol]}" for one in asked if symbol in one]
    told = privacy["composition"]
    way = (
        told.get("meaning")
        or "the losses of all questions add up; regions of one level share theirs"
    )
    paid = manifest.get("ledger")
    account = (
        "A ledger paid for the release; what else was paid from the same account adds to it."
        if paid
        else (
            "No ledger is named: the losses of all releases from the same data add up, and nobody "
            "keeps the sum here."
        )
    )
    return " ".join(
        [f"{way[0].upper()}{way[1:]}.", *([f"{'; '.join(parts)}."] if parts else []), account]
    )


def _called(question: Mapping[str, Any]) -> str:
    """What a paid question is called: its level, else what it asked."""
    return str(
        next(
            (question[name] for name in ("name", "query", "level") if name in question), "question"
        )
    )


def _mechanisms(manifest: Manifest) -> str:
    names = sorted(set(_named(manifest["privacy"], "noise")))
    noise = [NOISE.get(name, name) for name in names]
    versions = manifest["versions"]
    made = f"Made with tallytree {versions.get('tallytree', '')}".rstrip()
    random = (
        "Noise comes from the system's secure randomness."
        if manifest["privacy"]["private"]
        else ("NOT PRIVATE: the noise came from an insecure seed.")
    )
    used = [f"Mechanism {manifest['mechanism']['name']!r}, {' and '.join(noise)}."] if noise else []
    return " ".join([*used, random, f"{made}."])


def _named(facts: Any, name: str) -> list[str]:
    """Every text under a name, at any depth."""
    if isinstance(facts, Mapping):
        own = [facts[name]] if isinstance(facts.get(name), str) else []
        return own + [found for value in facts.values() for found in _named(value, name)]
    return (
        [found for value in facts for found in _named(value, name)]
        if isinstance(facts, list)
        else []
    )


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts)


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card for people to read, under the same headings."""
    deployment = card["deployment"]
    title = deployment["basic"].get("name") or "A differentially private release"
    lines = [f"# {_escaped(title)}", ""]
    for part, heading in HEADINGS.items():
        facts = {
            name: value
            for name, value in deployment.get(part, {}).items()
            if (part, name) != ("basic", "name")
        }
        if facts:
            lines += [f"## {heading}", ""]
            lines += [
                f"- **{name.replace('_', ' ').capitalize()}**: {_shown(value)}"
                for name, value in facts.items()
            ]
            lines.append("")
    lines.append(
        "Card of the release whose manifest has the SHA-256 "
        f"`{card['release']['manifest_sha256']}`."
    )
    return "\n".join(lines)


def card_yaml(card: Mapping[str, Any]) -> str:
    """The card as the registry takes it; a comment names the release."""
    comment = f"# Record of the release whose manifest has the SHA-256 {card['release']['manifest_sha256']}.\n"
    return comment + record_yaml({name: card[name] for name in RECORD if name in card})


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} = {_escaped(str(one))}" for name, one in value.items())
    if isinstance(value, list):
        return "; ".join(_escaped(str(one)) for one in value)
    return _escaped(str(value))


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    plain = " ".join(text.split())
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|" else letter for letter in plain)


def card_problems(folder: str | Path, manifest: Manifest) -> list[str]:
    """What is wrong with the card in a folder, one sentence each: damaged, of another release, or
    saying otherwise than it.
    """
    place = Path(folder)
    there = [name for name in (CARD, CARD_TEXT, CARD_YAML) if (place / name).exists()]
    if not there:
        return []
    absent = [name for name in (CARD, CARD_TEXT) if name not in there]
    if absent:
        return [f"Of the card there is only {' and '.join(there)}; write it again."]
    try:
        card = read_facts(place / CARD, "a card", newest=FORMAT_VERSION)
        entries = {
            name: card["deployment"].get(part, {}).get(field)
            for name, (part, field) in SAID.items()
        }
        said = {name: _said(name, entry) for name, entry in entries.items() if entry is not None}
        again = card_json(
            manifest, CardOptions(**said), lasting_digest((place / MANIFEST).read_bytes())
        )
    except TallytreeError as error:
        return [str(error)]
    except (KeyError, TypeError, AttributeError):
        return [f"{CARD} is no card; write it again."]
    own = {name: value for name, value in card.items() if name != "sha256"}
    problems = [] if own == again else [f"{CARD} says otherwise than the manifest; write it again."]
    text = (place / CARD_TEXT).read_bytes().decode(errors="replace")
    if not has_own_digest(place / CARD_TEXT) or not text.startswith(card_markdown(again)):
        problems.append(f"{CARD_TEXT} was changed, or belongs to another release; write it again.")
    if CARD_YAML in there and (place / CARD_YAML).read_bytes() != card_yaml(again).encode():
        problems.append(f"{CARD_YAML} was changed, or belongs to another release; write it again.")
    return problems

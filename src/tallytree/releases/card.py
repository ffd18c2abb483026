"""The card of a deployment: what a release is and promises, in the manifest's words, under the headings that the Differential
Privacy Deployments Registry asks for (product, variant, privacy loss, model, accounting, implementation, resources).

What the manifest does not know, such as who publishes, its owner says. What nobody said is left out, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from tallytree.errors import TallytreeError
from tallytree.options.card import CardOptions
from tallytree.privacy.guarantee import NEIGHBOURS, budget_of
from tallytree.releases.notes import notes_of
from tallytree.storage.folder import CARD, CARD_TEXT, MANIFEST, Manifest, has_own_digest, lasting_digest, read_facts

FORMAT_VERSION = 1
# What a card is filled in with: the option, and where in the registry's form it stands.
SAID = {
    "name": ("product", "name"),
    "description": ("product", "description"),
    "curator": ("product", "data_curators"),
    "intended_use": ("product", "intended_use"),
    "region": ("product", "data_product_region"),
    "sector": ("product", "data_product_sector"),
    "published": ("product", "publication_date"),
    "data": ("dp_variant", "data_domain"),
    "justification": ("implementation", "justification"),
    "sources": ("resources", "sources"),
    "authors": ("resources", "registry_authors"),
}
PRODUCTS = {
    "group-sizes": "how many groups of each size every region has",
    "histogram": "how many rows fall into each bin of a column",
    "map": "how many rows lie in any box",
    "degrees": "how many nodes have each degree",
    "stream": "how many rows came so far, step by step",
}
NOISE = {
    "discrete-laplace": "discrete Laplace (geometric) noise, drawn exactly",
    "discrete-gaussian": "discrete Gaussian noise, drawn exactly",
}
POST_PROCESSING = "Published numbers are worked out from the noisy answers alone, without a further look at the data."
HEADINGS = {
    "product": "The product",
    "dp_variant": "Differential privacy",
    "privacy_loss": "Privacy loss",
    "model": "Model",
    "accounting": "Accounting",
    "implementation": "Implementation",
    "resources": "Resources",
}


def card_json(manifest: Manifest, options: CardOptions, digest: str) -> dict[str, Any]:
    """The card as facts, without its checksum; ``digest`` is that of the manifest."""
    deployment = _derived(manifest)
    for name, (part, field) in SAID.items():
        said = getattr(options, name)
        if said:
            deployment.setdefault(part, {})[field] = list(said) if isinstance(said, list | tuple) else said
    ordered = {part: deployment[part] for part in HEADINGS if deployment.get(part)}
    return {"format_version": FORMAT_VERSION, "deployment": ordered, "release": {"manifest_sha256": digest}}


def _derived(manifest: Manifest) -> dict[str, dict[str, Any]]:
    """What follows from the manifest alone."""
    privacy = manifest["privacy"]
    unit, budget = privacy["unit"], budget_of(privacy)
    pure = budget.definition == "pure"
    losses = {"epsilon": _number(budget.total)} if pure else {"rho": _number(budget.total)}
    if budget.asked is not None:
        losses = {"epsilon": _number(budget.asked[0]), "delta": _number(budget.asked[1]), **losses}
    variant = "Pure DP" if pure else "Approximate DP" if budget.asked is not None else "Zero-concentrated DP"
    stream, notes = manifest["kind"] == "stream", notes_of(manifest)
    return {
        "product": {
            "data_product_type": "Summary statistics",
            "description": f"Table of {PRODUCTS.get(manifest['kind'], manifest['kind'])}.",
        },
        "dp_variant": {
            "variant_name": variant,
            "input_metric": f"{NEIGHBOURS}; the unit is {unit['words']}",
            "bound_on_input_distance": 1,
            "output_measure": "max divergence" if pure else "zero-concentrated divergence",
            "bound_on_output_distance": _number(budget.total),
            "unprotected_quantities": _sentences([*privacy["fixed"], *notes.public.values()]) or "None.",
        },
        "privacy_loss": {
            "privacy_unit": unit["name"],
            "privacy_unit_description": unit["words"] + (f" ({privacy['adds']})" if privacy["adds"] else ""),
            "privacy_parameters": losses,
            "privacy_parameters_description": privacy["statement"],
        },
        "model": {
            "model_name": "Central",
            "release_type": "Continual release" if stream else "One release",
            "data_source_type": "Dynamic" if stream else "Static",
            "access_type": "Non-interactive",
        },
        "accounting": {
            "composition": _composition(manifest),
            "post_processing": POST_PROCESSING,
        },
        "implementation": {
            **({"pre_processing": _sentences(list(notes.counting.values()))} if notes.counting else {}),
            "mechanisms": _mechanisms(manifest),
        },
    }


def _composition(manifest: Manifest) -> str:
    """How the losses of single questions add up, with each of them."""
    privacy = manifest["privacy"]
    symbol = budget_of(privacy).symbol
    asked = [*privacy.get("side_queries", ()), *privacy.get("levels", ()), *privacy.get("steps", ())]
    parts = [f"{_called(one)}: {symbol} = {one[symbol]}" for one in asked if symbol in one]
    told = privacy["composition"]
    way = told.get("meaning") or "the losses of all questions add up; regions of one level share theirs"
    paid = manifest.get("ledger")
    account = (
        "A ledger paid for the release; what else was paid from the same account adds to it."
        if paid
        else (
            "No ledger is named: the losses of all releases from the same data add up, and nobody keeps the sum here."
        )
    )
    return " ".join([f"{way[0].upper()}{way[1:]}.", *([f"{'; '.join(parts)}."] if parts else []), account])


def _called(question: Mapping[str, Any]) -> str:
    """What a paid question is called: its level, else what it asked."""
    return str(next((question[name] for name in ("name", "query", "level") if name in question), "question"))


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
    return [found for value in facts for found in _named(value, name)] if isinstance(facts, list) else []


def _sentences(texts: Sequence[str]) -> str:
    return " ".join(f"{text[0].upper()}{text[1:]}." for text in texts)


def _number(value: Fraction) -> float | int | str:
    """A number that people read; exact text where a decimal would not be."""
    plain = int(value) if value.denominator == 1 else float(value)
    return plain if Fraction(str(plain)) == value else str(value)


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card for people to read, under the same headings."""
    deployment = card["deployment"]
    title = deployment["product"].get("name") or "A differentially private release"
    lines = [f"# {_escaped(title)}", ""]
    for part, heading in HEADINGS.items():
        facts = {name: value for name, value in deployment.get(part, {}).items() if (part, name) != ("product", "name")}
        if facts:
            lines += [f"## {heading}", ""]
            lines += [f"- **{name.replace('_', ' ').capitalize()}**: {_shown(value)}" for name, value in facts.items()]
            lines.append("")
    lines.append(f"Card of the release whose manifest has the SHA-256 `{card['release']['manifest_sha256']}`.")
    return "\n".join(lines)


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
    """What is wrong with the card in a folder, one sentence each: damaged, of another release, or saying otherwise than it."""
    place = Path(folder)
    there = [name for name in (CARD, CARD_TEXT) if (place / name).exists()]
    if not there:
        return []
    if len(there) == 1:
        return [f"Of the card there is only {there[0]}; write it again."]
    try:
        card = read_facts(place / CARD, "a card", newest=FORMAT_VERSION, sealed_from=1)
        said = {name: card["deployment"].get(part, {}).get(field) for name, (part, field) in SAID.items()}
        options = CardOptions(**{name: value for name, value in said.items() if value is not None})
        again = card_json(manifest, options, lasting_digest((place / MANIFEST).read_bytes()))
    except TallytreeError as error:
        return [str(error)]
    except (KeyError, TypeError, AttributeError):
        return [f"{CARD} is no card; write it again."]
    own = {name: value for name, value in card.items() if name != "sha256"}
    problems = [] if own == again else [f"{CARD} says otherwise than the manifest; write it again."]
    text = (place / CARD_TEXT).read_bytes().decode(errors="replace")
    if not has_own_digest(place / CARD_TEXT) or not text.startswith(card_markdown(again)):
        problems.append(f"{CARD_TEXT} was changed, or belongs to another release; write it again.")
    return problems

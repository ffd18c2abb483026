"""The words of a page: what groups, levels and entities are called, what is protected, how to read
and to cite it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tallytree.errors import RequestError
from tallytree.privacy.guarantee import budget_of, weak_promise


def several(word: str) -> str:
    """A word for several things, from the word for one.

    Examples
    --------
    >>> [several(word) for word in ("person", "county", "day", "class", "branch", "fips", "state")]
    ['people', 'counties', 'days', 'classes', 'branches', 'fips', 'states']
    """
    if word == "person":
        return "people"
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u"):
        return f"{word[:-1]}ies"
    if word.endswith(("ss", "x", "ch", "sh")):
        return f"{word}es"
    return (
        word if word.endswith("s") else f"{word}s"
    )  # names of columns are often words for several things


def plural(manifest: dict[str, Any]) -> str:
    """What is counted, from what one entity is called: ``person`` gives ``people``."""
    return several(str(manifest["privacy"]["unit"]["entity"]))


def units(manifest: dict[str, Any]) -> str:
    """What is protected, several of it: households, customers, or what an entity is called."""
    unit = manifest["privacy"]["unit"]
    return several(str(unit["group"] or unit["column"] or unit["entity"]))


def one_and_many(told: str) -> tuple[str, str]:
    """What one thing and several are called, from ``household/households`` or ``household``."""
    one, _, many = told.partition("/")
    return one.strip(), many.strip() or several(one.strip())


def group_names(told: str | None) -> tuple[str, str]:
    """What one group and several are called, from ``household/households``."""
    return one_and_many(told or "group/groups")


def level_words(told: Sequence[str], level_names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """What one region and several of each level are called: as told (``fips=county/counties``),
    else after its column.

    Examples
    --------
    >>> level_words(["fips=county"], ["US", "home_state", "fips"])["fips"]
    ('county', 'counties')
    >>> level_words([], ["US", "home_state"])["home_state"]
    ('home state', 'home states')
    """
    root, *below = level_names
    called = {root: (root, root)} | {name: one_and_many(name.replace("_", " ")) for name in below}
    for text in told:
        name, equals, words = text.partition("=")
        if name.strip() not in called or not equals or not words.strip():
            raise RequestError(
                f"The level name {text!r} is not understood. Write LEVEL=ONE/MANY, for example "
                f"{level_names[-1]}=county/counties; levels are {', '.join(level_names)}."
            )
        called[name.strip()] = one_and_many(words)
    return called


def counted(n: int, words: tuple[str, str]) -> str:
    """A number of things: ``1 county``, ``3,108 counties``."""
    return f"{n:,} {words[0] if n == 1 else words[1]}"


def reading(drawn: str, protected: str, *, whiskers: bool, adds_up: bool) -> list[str]:
    """How to read the page, for people who have never heard of noise in numbers."""
    ends = " The thin line on a bar shows how far off it may be." if whiskers else ""
    return [
        f"{drawn}{ends}",
        "To protect privacy, every number was changed a little at random. Whether any one of the "
        f"{protected} is in the "
        "data or not, the numbers would look about the same.",
        "Large numbers are hardly affected, small ones can be far off: a 3 may have been a 0 or a "
        "9. Prefer larger "
        "numbers where you can.",
        *(["Numbers fit together: parts add up to the whole."] if adds_up else []),
    ]


def citation(title: str, source: str | None, manifest: dict[str, Any]) -> str:
    """How to cite the release."""
    privacy = manifest["privacy"]
    budget = budget_of(privacy)
    kept = f"{budget.symbol} = {budget.total}" if privacy["private"] else "not private"
    made = f"differentially private release ({kept}), made with tallytree {manifest['versions'].get('tallytree', '')}".rstrip()
    return f"Cite as: {title}. {source.rstrip('.') + '. ' if source else ''}{made[0].upper()}{made[1:]}."


# What checks and notes are called on pages, where their own names are those of the program.
_CHECKS = {
    "counts are nonnegative integers": "counts are whole numbers, none below zero",
    "numbers of people are nonnegative integers": "numbers of people are whole numbers, none below "
    "zero",
    "group totals hold": "every region has as many groups as it should",
}
_NOTES = {"hierarchy": "regions", "group_totals": "numbers of groups"}
_GROUPS, _OPTIONS = re.compile(r"\bgroups\b"), re.compile(r" \(\w+=[^)]*\)")


def check_in_words(name: str, called: Mapping[str, tuple[str, str]], groups: str = "groups") -> str:
    """What a check is called on a page; levels and groups as the page calls them.

    Examples
    --------
    >>> check_in_words("fips adds up to state", {"state": ("state", "states"), "fips": ("county", "counties")})
    'counties add up to states'
    """
    parts = name.split(" adds up to ")
    if len(parts) == 2 and all(part in called for part in parts):
        return " add up to ".join(called[part][1] for part in parts)
    return _GROUPS.sub(lambda _: groups, _CHECKS.get(name, name))


def note_sentences(notes: Mapping[str, str], groups: str = "groups") -> list[str]:
    """Notes of a manifest for a page, groups as it calls them, without the options of the program
    that they name.
    """
    plain = {_NOTES.get(name, name): _OPTIONS.sub("", text) for name, text in notes.items()}
    found = [f"{name.replace('_', ' ').capitalize()}: {text}." for name, text in plain.items()]
    return [_GROUPS.sub(lambda _: groups, text) for text in found]


def protection(privacy: dict[str, Any]) -> str:
    """What is protected, in plain words, for the head of the page."""
    weak = weak_promise(budget_of(privacy))
    if weak:
        return f"Differential privacy with a weak promise about {_any(privacy)}: {weak}"
    return (
        "Protected by differential privacy: chance had a hand in every number, so that hardly "
        "anything can be learnt here "
        f"about {_any(privacy)}."
    )


def _any(privacy: dict[str, Any]) -> str:
    return str(privacy["unit"]["words"]).replace("one ", "any one ", 1)


def in_full(privacy: dict[str, Any]) -> list[str]:
    """How strong the protection is: as a bet that anyone can picture where the definition allows
    that, then to the letter.
    """
    budget = budget_of(privacy)
    bet = []
    if budget.definition == "pure" and not budget.replacing:
        # Bayes: with even odds before, the odds are at most e^ε afterwards.
        won = 1 / (1 + math.exp(-float(budget.total)))
        bet.append(
            f"Take {_any(privacy)}: whoever bets on whether the data include that wins half of the "
            "time without these numbers, "
            f"and at most {100 * won:.3g} % of the time with them."
        )
    return [*bet, f"To the letter: {privacy['statement']}"]

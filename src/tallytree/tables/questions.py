"""What may be asked of a table: how many rows regions have, of some values, or value by value."""

from __future__ import annotations

from itertools import product
from typing import Any

from tallytree.errors import RequestError
from tallytree.model.attributes import names_beside
from tallytree.releases.export.placed import all_of
from tallytree.releases.questions import Question, Reply
from tallytree.tables.release import TableRelease

# Answers that are given at once; larger tables are exported.
MOST_ANSWERS = 100_000
COLUMNS = ("count", "std_error", "low", "high")


def table_reply(release: TableRelease, question: Question) -> Reply:
    """Counts with standard errors and intervals: of the values that are asked about, and for every
    value of the attributes under ``by``. Without a question, of every attribute by itself.
    """
    paths = question.paths(release.root)
    where = where_of(question)
    confidence = 0.95 if question.confidence is None else question.confidence
    by = list(question.by)
    plain = not by and not where and not question.total and not question.share
    choices = _alone(release) if plain else _combined(release, by, where)
    found = release.answers_of(paths, [{**where, **one} for one in choices], confidence=confidence)
    names = list(dict.fromkeys(name for one in choices for name in one))
    all_values = {name: all_of(release.attributes.values_of(name)) for name in names}
    numbers_of = (*COLUMNS, *(["share"] if question.share else []))
    columns = (*names_beside(names, numbers_of), *numbers_of)
    rows, answers = [], []
    whole = release.answers_of(paths, [{}], confidence=confidence)[0].estimate
    for one, answer in zip(choices, found):
        shares = [answer.estimate / max(whole, 1)] if question.share else []
        numbers = [answer.estimate, round(answer.std_error, 2), answer.low, answer.high, *shares]
        rows.append([*(one.get(name, all_values[name]) for name in names), *numbers])
        answers.append(dict(zip(columns, rows[-1])))
    facts: dict[str, Any] = {
        "region": paths[0] if len(paths) == 1 else paths,
        "where": where,
        "confidence": confidence,
        "answers": answers,
    }
    title = ", ".join([*paths, *(f"{name} {value}" for name, value in where.items())])
    return Reply(title, columns, rows, facts)


def where_of(question: Question) -> dict[str, str]:
    """The values that a question is about, by attribute."""
    found: dict[str, str] = {}
    for text in question.where:
        name, equals, value = text.partition("=")
        if not equals or name.strip() in found:
            raise RequestError(
                f"--where takes ATTRIBUTE=VALUE, each attribute once; got {text!r}. Ranges of an "
                "ordered attribute are written age=16-64."
            )
        found[name.strip()] = value.strip()
    return found


def _alone(release: TableRelease) -> list[dict[str, str]]:
    """All rows, then each value of each attribute."""
    attributes = release.attributes
    values = zip(attributes.names, attributes.values)
    return [{}, *({name: value} for name, known in values for value in known)]


def _combined(release: TableRelease, by: list[str], where: dict[str, str]) -> list[dict[str, str]]:
    """All combinations of values of some attributes."""
    places = release.attributes.chosen(by)
    for name in by:
        if name in where:
            raise RequestError(f"{name!r} is under --by and under --where; leave one of them out.")
    attributes = release.attributes.margin(places)
    if attributes.n_cells > MOST_ANSWERS:
        raise RequestError(
            f"There are {attributes.n_cells:,} combinations; ask about fewer attributes, or export "
            "the release."
        )
    return [dict(zip(attributes.names, values)) for values in product(*attributes.values)]

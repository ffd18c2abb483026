"""Whether a text is one query that only reads. Databases have the last word; this says beforehand
what is wrong.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from sqlglot import Dialect, TokenType, exp
from sqlglot.errors import SqlglotError

from tallytree.errors import RequestError

FIRST_WORDS = ("SELECT", "WITH", "VALUES", "TABLE", "FROM", "(")
WRITING = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Into)


def refuse_all_but_one_query(sql: str, dialect: Any, *, strict: bool = False) -> None:
    """Refuse what is not exactly one SELECT, VALUES, TABLE or WITH … SELECT.

    A query that sqlglot cannot read is left to the database, unless ``strict``: databases know more
    than their dialects here.
    """
    dialect = Dialect.get_or_raise(dialect)
    try:
        tokens = dialect.tokenize(sql)
        wrong = _wrong_statements(tokens) or _wrong_inside(dialect.parser().parse(tokens, sql))
    except (SqlglotError, RecursionError):
        wrong = "this cannot be read as one" if strict else ""
    if wrong:
        raise RequestError(
            "sql= takes one query that only reads, SELECT, VALUES, TABLE or WITH … SELECT; "
            f"{wrong}. "
            "Leave out everything but the query."
        )


def _wrong_statements(tokens: list[Any]) -> str:
    """More or less than one statement, or one that begins with another word."""
    kinds = [TokenType.SEMICOLON, *(token.token_type for token in tokens)]
    first = [two for one, two in pairwise(kinds) if one is TokenType.SEMICOLON and two is not one]
    if len(first) != 1:
        return f"this has {len(first) or 'no'} statement{'s' if first else ''}"
    word = next(token.text for token in tokens if token.token_type is not TokenType.SEMICOLON)
    return "" if word.upper() in FIRST_WORDS else f"this begins with {word.upper()[:30]}"


def _wrong_inside(statements: list[Any]) -> str:
    """A query that writes: ``WITH gone AS (DELETE …)``, ``SELECT … INTO``."""
    found = next(
        (node for one in statements if one is not None for node in one.find_all(*WRITING)), None
    )
    return "" if found is None else f"this holds {_article(type(found).__name__.upper())}"


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'AEIOU' else 'a'} {word}"

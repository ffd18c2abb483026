"""From text, as typed on a command line or written in a TOML file, to the value of an option.

Each function takes the text and the option's flag, for the message.
"""

from __future__ import annotations

from typing import Any

from tallytree.errors import RequestError


def comma_names(text: str, flag: str = "") -> tuple[str, ...]:
    """Names, comma-separated."""
    return tuple(name.strip() for name in text.split(","))


def one_entry(text: str, flag: str = "") -> tuple[str, ...]:
    """The only entry of a list whose flag may be repeated."""
    return (text,)


def one_or_many(text: str, flag: str = "") -> str | tuple[str, ...]:
    """A single word as it is, several comma-separated ones as a tuple."""
    return comma_names(text) if "," in text else text


def numbers(text: str, flag: str) -> tuple[float, ...]:
    """Numbers, comma-separated."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise RequestError(f"{flag} takes numbers, comma-separated; got {text!r}.") from None


def lists(text: str, flag: str) -> tuple[tuple[float, ...], ...]:
    """Lists of numbers, comma-separated, with semicolons between the lists."""
    return tuple(numbers(part, flag) for part in text.split(";"))


def whole_or_word(text: str, flag: str) -> int | str:
    """A whole number, or a word such as ``auto``, which is checked later."""
    try:
        return int(text)
    except ValueError:
        return text


def whole_or_numbers(text: str, flag: str) -> int | tuple[float, ...]:
    """One whole number, or several numbers, comma-separated."""
    try:
        return int(text)
    except ValueError:
        return numbers(text, flag)


def sizes(text: str, flag: str) -> dict[str, str]:
    """Columns and the size or class that each counts, written ``hh1=1,hh2=2,hh7plus=7+``."""
    found: dict[str, str] = {}
    for part in text.split(","):
        column, equals, size = part.rpartition("=")
        if not equals or not column.strip() or column.strip() in found:
            raise RequestError(
                f"{flag} takes COLUMN=SIZE, comma-separated, each column once; got {text!r}."
            )
        found[column.strip()] = size.strip()
    return found


def cells(text: str, flag: str) -> int | tuple[int, ...]:
    """One whole number, or several, comma-separated."""
    try:
        found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise RequestError(f"{flag} takes whole numbers, comma-separated; got {text!r}.") from None
    return found[0] if len(found) == 1 else found


def box(text: str, flag: str) -> tuple[tuple[float, float], ...]:
    """A box written ``LOW:HIGH,LOW:HIGH``, one range per column."""
    sides = []
    for part in text.split(","):
        low, _, high = part.partition(":")
        try:
            sides.append((float(low), float(high)))
        except ValueError:
            raise RequestError(
                f"{flag} takes one LOW:HIGH per column, comma-separated; got {text!r}."
            ) from None
    return tuple(sides)


def value_range(text: str, flag: str = "") -> tuple[Any, Any]:
    """A range written ``LOW:HIGH``; numbers where both ends are, names of categories otherwise."""
    low, colon, high = text.partition(":")
    if not colon or not low.strip() or not high.strip():
        raise RequestError(f"A range is written LOW:HIGH, such as 18:65; got {text!r}.")
    try:
        return float(low), float(high)
    except ValueError:
        return low.strip(), high.strip()


def workload(text: str, flag: str = "") -> str | tuple[tuple[Any, Any], ...]:
    """The name of a workload, or ranges ``LOW:HIGH``, comma-separated."""
    return tuple(value_range(part) for part in text.split(",")) if ":" in text else text

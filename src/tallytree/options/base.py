"""What an option is: a field of a frozen dataclass that carries how it is spelled on the command
line.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, get_type_hints

from tallytree.errors import RequestError
from tallytree.options.checks import problem_with
from tallytree.options.late import Array, ArrayBool, ArrayInteger

T = TypeVar("T")
Self = TypeVar("Self", bound="Options")

METADATA = "option"


@dataclass(frozen=True)
class Spelling:
    """How an option is written outside Python.

    Attributes
    ----------
    help
        One line for the command line.
    text
        From text, as typed or as in a TOML file, to the value; None where text is the value.
    metavar
        What stands for the value in the help.
    flag
        The flag's name where it is not the field's.
    alias
        A second flag for the same.
    flips
        The flag says the opposite of the field: ``--real`` is ``integers=False``.
    envvar
        Environment variable that gives the value where no flag does.
    least
        Smallest number accepted.
    repeats
        The flag may be given several times.
    recorded
        Whether the option is part of the request that a manifest records. Who pays, and with which
        seed, is not.
    panel
        The question that the option answers, one of :data:`tallytree.options.panels.PANELS`; that
        of its class where None.
    rare
        Few need it: a long help leaves it out, like all of the experts' options.
    needed
        When it must be given, in words that follow "needed": ``"unless with --rho"``.
    """

    help: str
    text: Callable[[str, str], Any] | None = None
    metavar: str | None = None
    flag: str | None = None
    alias: str | None = None
    flips: bool = False
    envvar: str | None = None
    least: float | None = None
    repeats: bool = False
    recorded: bool = True
    panel: str | None = None
    rare: bool = False
    needed: str | None = None


def option(default: T, *, help: str, **spelling: Any) -> T:  # noqa: A002
    """A field of an :class:`Options` class; keywords as the attributes of :class:`Spelling`."""
    metadata = {METADATA: Spelling(help, **spelling)}
    made: T = dataclasses.field(default=default, metadata=metadata)
    return made


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options:
    """Base of all groups of options: checked once, when made.

    A class of options says which question they answer: ``class Loss(Options, panel=PRIVACY)``.
    """

    _panel: ClassVar[str | None] = None

    def __init_subclass__(cls, *, panel: str | None = None, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._panel = panel

    def __post_init__(self) -> None:
        types = types_of(type(self))
        for field in fields(self):
            value: Any = getattr(self, field.name)
            spelling = spelling_of(field)
            problem = problem_with(field.name, value, types[field.name], spelling.least)
            if problem is not None:
                raise RequestError(problem)
            # Plain numbers, so that later checks and JSON need not know.
            if isinstance(value, ArrayInteger | ArrayBool):
                object.__setattr__(self, field.name, getattr(self, field.name).item())

    @classmethod
    def told(cls: type[Self], facts: Mapping[str, Any]) -> Self:
        """Options as a command line, a TOML file or a manifest tells them: text is read, lists
        become tuples.

        Facts that are no options of this class are left aside.
        """
        values = {
            field.name: read_value(field, facts[field.name])
            for field in fields(cls)
            if field.name in facts
        }
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """What was asked for beyond the defaults, as JSON-ready facts from which :meth:`told` makes
        the same request.
        """
        return {
            name: value if isinstance(value, int) else _plain(value)
            for name, value in self._asked(recorded=True)
        }

    def given(self) -> dict[str, Any]:
        """The options that differ from their defaults."""
        return dict(self._asked(recorded=False))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(
            _is_same(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash(type(self))  # values may be lists or arrays

    def __repr__(self) -> str:
        asked = ", ".join(
            f"{name}={value!r}" for name, value in self._asked(recorded=False) if name != "ledger"
        )
        return f"{type(self).__name__}({asked})"

    def _asked(self, *, recorded: bool) -> list[tuple[str, Any]]:
        given = [
            (field, getattr(self, field.name))
            for field in fields(self)
            if spelling_of(field).recorded or not recorded
        ]
        return [(field.name, value) for field, value in given if not _is_same(value, field.default)]


_types: dict[type, dict[str, Any]] = {}


def types_of(group: type[Options]) -> dict[str, Any]:
    """The type of each field of a group of options; worked out once per group."""
    if group not in _types:
        _types[group] = get_type_hints(group)
    return _types[group]


def fields_of(group: type[Options]) -> tuple[dataclasses.Field[Any], ...]:
    """The fields of a group, those that belong to it alone first, then those that it shares with
    others.
    """
    declared = [name for part in group.__mro__ for name in inspect.get_annotations(part)]
    by_name = {field.name: field for field in fields(group)}
    return tuple(by_name[name] for name in dict.fromkeys(declared) if name in by_name)


def spelling_of(field: dataclasses.Field[Any]) -> Spelling:
    """How a field is written outside Python."""
    spelling: Spelling = field.metadata[METADATA]
    return spelling


def panel_of(group: type[Options], field: dataclasses.Field[Any]) -> str | None:
    """The question that an option answers: its own, or that of the class that declares it."""
    declaring = next(part for part in group.__mro__ if field.name in inspect.get_annotations(part))
    return spelling_of(field).panel or getattr(declaring, "_panel", None)


def read_value(field: dataclasses.Field[Any], value: Any) -> Any:
    """The value of an option, from text or a list as from anything else."""
    text = spelling_of(field).text
    if isinstance(value, str) and text is not None:
        return text(value, f"--{field.name.replace('_', '-')}")
    return tuple(value) if isinstance(value, list) else value


def _is_same(value: Any, default: Any) -> bool:
    if isinstance(value, Array) or isinstance(default, Array):
        from numpy import array_equal  # loaded already, or there were no array

        return array_equal(value, default)
    return bool(value is default or value == default)


def _plain(value: Any) -> Any:
    return (
        str(value)
        if isinstance(value, str) or not isinstance(value, Sequence)
        else [str(entry) for entry in value]
    )

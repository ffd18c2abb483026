"""Functions whose options may be passed as one object or spelled as keywords, to people and to type
checkers alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, get_type_hints, overload

from tallytree.options.base import Options, fields_of, types_of
from tallytree.options.choices import did_you_mean

Whole = ParamSpec("Whole")
Keywords = ParamSpec("Keywords")
Data = TypeVar("Data", contravariant=True)
Result = TypeVar("Result", covariant=True)


class Spelled(Protocol[Data, Whole, Keywords, Result]):
    """A function of data and options: the options as one object, or each as a keyword."""

    @overload
    def __call__(self, data: Data, /, *whole: Whole.args, **extras: Whole.kwargs) -> Result: ...
    @overload
    def __call__(
        self, data: Data, /, *none: Keywords.args, **keywords: Keywords.kwargs
    ) -> Result: ...


class SpelledAlone(Protocol[Whole, Keywords, Result]):
    """The same where the data may be left out, because a keyword gives them in another form."""

    @overload
    def __call__(self, data: Any, /, *whole: Whole.args, **extras: Whole.kwargs) -> Result: ...
    @overload
    def __call__(
        self, data: Any = None, /, *none: Keywords.args, **keywords: Keywords.kwargs
    ) -> Result: ...


def spelled(
    keywords: Callable[Keywords, Options],
) -> Callable[[Callable[Concatenate[Data, Whole], Result]], Spelled[Data, Whole, Keywords, Result]]:
    """Let a function ``f(data, options, *, extras)`` be called as ``f(data, epsilon=1, …)`` too.

    Parameters
    ----------
    keywords
        A class of options with every keyword: the class that the function takes, or one derived
        from it that adds the function's extras (a callback, data in another form), which are no
        options.
    """
    return lambda function: _spell(function, alone=False)


def spelled_alone(
    keywords: Callable[Keywords, Options],
) -> Callable[[Callable[Concatenate[Any, Whole], Result]], SpelledAlone[Whole, Keywords, Result]]:
    """As :func:`spelled`, for a function whose data are None where they are left out."""
    return lambda function: _spell(function, alone=True)


def _spell(function: Callable[..., Any], *, alone: bool) -> Any:
    subject, whole, *extras = inspect.signature(function).parameters.values()
    subject = subject.replace(default=None) if alone else subject
    group: type[Options] = get_type_hints(function)[whole.name]
    known = [field.name for field in fields_of(group)] + [extra.name for extra in extras]

    @wraps(function)
    def call(*given: Any, **keywords: Any) -> Any:
        if len(given) > 2:
            raise TypeError(
                f"{function.__name__}() takes {subject.name} and {whole.name}; spell all else as "
                "keywords."
            )
        named = dict(zip((subject.name, whole.name), given))
        for name in (subject.name, whole.name):
            if name in keywords and name not in known:
                named[name] = keywords.pop(name)
        named |= {
            extra.name: keywords.pop(extra.name) for extra in extras if extra.name in keywords
        }
        for name in keywords:
            if name not in known:
                hint = did_you_mean(name, known)
                raise TypeError(
                    f"{function.__name__}() got an unexpected keyword argument {name!r}.{hint}"
                )
        if whole.name not in named:
            named[whole.name] = group(**keywords)
        elif not isinstance(named[whole.name], group):
            raise TypeError(
                f"{function.__name__}() takes its options as {group.__name__}, or spelled as "
                "keywords."
            )
        elif keywords:
            raise TypeError(
                f"{function.__name__}() takes its options either as {group.__name__} or as "
                "keywords, not both."
            )
        if alone:
            named.setdefault(subject.name, None)
        return function(**named)

    call.__signature__ = _signature(function, subject, group, extras)  # type: ignore[attr-defined]
    call.__doc__ = f"{inspect.getdoc(function)}\n\nOptions\n-------\n{_described(group)}"
    return call


def _signature(
    function: Any, subject: Any, group: type[Options], extras: list[Any]
) -> inspect.Signature:
    types = types_of(group)
    options = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=types[field.name],
        )
        for field in fields_of(group)
    ]
    returns = inspect.signature(function).return_annotation
    return inspect.Signature([subject, *options, *extras], return_annotation=returns)


def _described(group: type[Options]) -> str:
    """What the options mean, from the classes that declare them."""
    parts = []
    for part in group.__mro__:
        _, _, attributes = (inspect.cleandoc(part.__doc__ or "")).partition(
            "Attributes\n----------\n"
        )
        if issubclass(part, Options) and attributes:
            parts.append(attributes)
    return "\n".join(parts)

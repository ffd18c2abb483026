"""Commands made from groups of options: Typer sees a flat list of flags, in the panels of the
questions that they answer, and a handler gets the groups filled in.

A releasing command also takes a ``CONFIG.toml`` instead of its source. Flags that are given win
over it, whatever their value; it wins over defaults.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer

from tallytree.cli.flags import Flag, in_order, left_out
from tallytree.cli.panels import PanelCommand, help_all
from tallytree.errors import RequestError, StorageError
from tallytree.model.nested import parse_toml
from tallytree.options.base import (
    Options,
    fields_of,
    panel_of,
    spelling_of,
    types_of,
)
from tallytree.options.choices import did_you_mean
from tallytree.options.groups import Releasing

Handler = TypeVar("Handler", bound=Callable[..., None])

CONTEXT, SOURCE, HELP_ALL = "context", "source", "help_all"


def command(
    app: typer.Typer, name: str | None = None, *, needs: Sequence[str] = ()
) -> Callable[[Handler], Handler]:
    """Register a handler whose parameters are arguments of its own and groups of options.

    Parameters
    ----------
    name
        Of the command, where it is not that of the handler.
    needs
        Options that must be given, on the command line or in the config.
    """

    def register(handler: Handler) -> Handler:
        groups, own = option_groups(handler), _arguments(handler)
        flags = [
            Flag(field, types_of(group)[field.name], panel_of(group, field))
            for group in groups.values()
            for field in fields_of(group)
        ]
        fields = {flag.field.name: flag.field for flag in flags}

        def run(**given: Any) -> None:
            given.pop(HELP_ALL, None)
            told = _explicit(given.pop(CONTEXT), given, fields)
            plain = {part: given[part] for part in own}
            if any(issubclass(group, Releasing) for group in groups.values()) and plain[
                SOURCE
            ].endswith(".toml"):
                config = read_config(plain[SOURCE], fields)
                plain[SOURCE] = config.pop(SOURCE)
                told = {**config, **told}
            for option in needs:
                if option not in told:
                    raise RequestError(
                        f"--{option.replace('_', '-')} is missing: "
                        f"{spelling_of(fields[option]).help}"
                    )
            handler(**plain, **{part: group.told(told) for part, group in groups.items()})

        run.__name__, run.__doc__ = handler.__name__, _help_of(handler)
        rare = left_out(flags)
        _show_as(
            run, [*own.values(), *(one.parameter(needs) for one in in_order(flags, needs))], rare
        )

        class Command(PanelCommand):
            left_out = rare

        app.command(name, cls=Command)(run)
        return handler

    return register


def option_groups(handler: Callable[..., None]) -> dict[str, type[Options]]:
    """The parameters of a handler that are groups of options."""
    return {part: hint for part, hint in get_type_hints(handler).items() if _is_group(hint)}


def _arguments(handler: Callable[..., None]) -> dict[str, inspect.Parameter]:
    """The other parameters, as Typer takes them."""
    hints, groups = get_type_hints(handler, include_extras=True), option_groups(handler)
    return {
        part: parameter.replace(annotation=hints[part])
        for part, parameter in inspect.signature(handler).parameters.items()
        if part not in groups
    }


def _show_as(
    run: Callable[..., None], shown: Sequence[inspect.Parameter], rare: frozenset[str]
) -> None:
    """Give a function the parameters that Typer is to see."""
    context = inspect.Parameter(CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    flat = [
        context,
        *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown),
        *([help_all(HELP_ALL)] if rare else []),
    ]
    run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}


def _help_of(handler: Callable[..., None]) -> str:
    """The docstring with a line for each paragraph and each example, to be wrapped anew."""
    text = " ".join(
        line or "\n\n" for line in (inspect.getdoc(handler) or "").splitlines()
    ).replace("Example:", "\n\nExample:")
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(part for part in paragraphs if part)


def flag_of(options: Options, name: str) -> str:
    """The flag by which an option is given."""
    field = next(field for field in fields_of(type(options)) if field.name == name)
    return f"--{(spelling_of(field).flag or name).replace('_', '-')}"


def read_config(path: str, fields: Mapping[str, Field[Any]]) -> dict[str, Any]:
    """The source and the options of a TOML file, named like flags or Python's keywords:
    ``max-size`` or ``max_size``.
    """
    try:
        config = parse_toml(Path(path).read_bytes())
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"{path} is not valid TOML: {' '.join(str(error).split())}.") from None
    except UnicodeDecodeError:
        raise RequestError(f"{path} is not valid TOML: it is not text in UTF-8.") from None
    except ValueError as error:
        raise RequestError(f"{path} cannot be a request: {error}.") from None
    flags = {spelling_of(field).flag or name: field for name, field in fields.items()}
    options: dict[str, Any] = {}
    for key, value in config.items():
        name = key.replace("-", "_")
        field = fields.get(name) or flags.get(name)
        if name != SOURCE and field is None:
            known = sorted({SOURCE, *fields, *flags})
            hint = did_you_mean(name, known)
            raise RequestError(
                f"{path} has an unknown option: {key}.{hint} Known: {', '.join(known)}."
            )
        if field is not None and name != field.name and spelling_of(field).flips:
            value = _flipped(name, value)
        target = SOURCE if field is None else field.name
        if target in options:
            raise RequestError(f"{path} says {target} twice, as {key} too.")
        options[target] = value
    if not isinstance(options.get(SOURCE), str):
        raise RequestError(f'{path} names no source. Add: source = "people.parquet".')
    return options


def _flipped(flag: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise RequestError(f"{flag} takes true or false; got {value!r}.")
    return not value


def _explicit(
    context: Any, given: Mapping[str, Any], fields: Mapping[str, Field[Any]]
) -> dict[str, Any]:
    """What was said by flags or by the environment, under the names of the fields."""
    told = {}
    for name, field in fields.items():
        spelling = spelling_of(field)
        flag = spelling.flag or name
        source = context.get_parameter_source(flag)
        if source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT"):
            told[name] = not given[flag] if spelling.flips else given[flag]
    return told


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)

"""Commands made from groups of options: Typer sees a flat list of flags, a handler gets the groups
filled in.

A releasing command also takes a ``CONFIG.toml`` instead of its source. Flags that are given win
over it, whatever their value; it wins over defaults.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from tallytree.cli.once import OncePerOption
from tallytree.errors import RequestError, StorageError
from tallytree.model.nested import parse_toml
from tallytree.options.base import Options, Spelling, fields_of, spelling_of, types_of
from tallytree.options.checks import alternatives
from tallytree.options.choices import did_you_mean
from tallytree.options.groups import Releasing

Handler = TypeVar("Handler", bound=Callable[..., None])

CONTEXT, SOURCE = "context", "source"


def command(app: typer.Typer, *, needs: Sequence[str] = ()) -> Callable[[Handler], Handler]:
    """Register a handler whose parameters are arguments of its own and groups of options.

    Parameters
    ----------
    needs
        Options that must be given, on the command line or in the config.
    """

    def register(handler: Handler) -> Handler:
        hints = get_type_hints(handler, include_extras=True)
        own = inspect.signature(handler).parameters
        groups: dict[str, type[Options]] = {
            name: hints[name] for name in own if _is_group(hints[name])
        }
        fields = {field.name: field for group in groups.values() for field in fields_of(group)}
        types = {name: kind for group in groups.values() for name, kind in types_of(group).items()}
        shown = [
            parameter.replace(annotation=hints[name])
            for name, parameter in own.items()
            if name not in groups
        ]
        shown += [
            _parameter(field, types[name], needed=name in needs) for name, field in fields.items()
        ]

        def run(**given: Any) -> None:
            told = _explicit(given.pop(CONTEXT), given, fields)
            plain = {name: given[name] for name in own if name not in groups}
            if any(issubclass(group, Releasing) for group in groups.values()) and plain[
                SOURCE
            ].endswith(".toml"):
                config = read_config(plain[SOURCE], fields)
                plain[SOURCE] = config.pop(SOURCE)
                told = {**config, **told}
            for name in needs:
                if name not in told:
                    raise RequestError(
                        f"--{name.replace('_', '-')} is missing: {spelling_of(fields[name]).help}"
                    )
            handler(**plain, **{name: group.told(told) for name, group in groups.items()})

        context = inspect.Parameter(
            CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        flat = [
            context,
            *(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown),
        ]
        run.__name__, run.__doc__ = handler.__name__, handler.__doc__
        run.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in flat}
        app.command(cls=OncePerOption)(run)
        return handler

    return register


def declared(group: type[Options], name: str) -> Any:
    """The flag of one option, for commands that take nothing else of its group."""
    field = next(field for field in fields_of(group) if field.name == name)
    return _flag(field.name, spelling_of(field), spelling_of(field).help)


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


def _parameter(field: Field[Any], kind: Any, *, needed: bool) -> inspect.Parameter:
    """What Typer sees of an option. Text is read, and everything checked, by the group of options
    itself.
    """
    spelling = spelling_of(field)
    name = spelling.flag or field.name
    default = None if field.default == () else field.default
    shown: Any = _shown_type(kind, spelling)
    if shown is bool:
        default = default is True and not spelling.flips
    elif default is None:
        shown = shown | None
    help_text = f"{spelling.help} (needed)" if needed else spelling.help
    annotation = Annotated[shown, _flag(name, spelling, help_text)]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _flag(name: str, spelling: Spelling, help_text: str) -> Any:
    flags = [f"--{name.replace('_', '-')}", *([spelling.alias] if spelling.alias else [])]
    return typer.Option(*flags, help=help_text, metavar=spelling.metavar, envvar=spelling.envvar)


def _shown_type(kind: Any, spelling: Spelling) -> Any:
    if spelling.repeats:
        return list[str]
    if spelling.text is not None:
        return str
    offered = alternatives(kind)
    if offered == (tuple[int, int],):
        return offered[0]
    return offered[0] if len(offered) == 1 and offered[0] in (bool, int, float) else str

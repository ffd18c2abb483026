"""Options that name the data, shared by the commands that read it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.distributed.reading import read_with_spark
from tallytree.errors import RequestError, StorageError
from tallytree.ingest.read import read
from tallytree.model.confidential import ENTITY

Source = Annotated[str, typer.Argument(help="Parquet or CSV file or glob, or a database URL with --table or --sql.")]
Group = Annotated[str | None, typer.Option(help="Column that identifies the group (household, taxi …).")]
Levels = Annotated[
    str | None, typer.Option(help="Level columns below the root, comma-separated, largest regions first.")
]
Size = Annotated[str | None, typer.Option(help="Column with the size: rows are groups already.")]
Count = Annotated[str | None, typer.Option(help="Column with the number of groups: rows are (leaf, size, how many).")]
Quantity = Annotated[str | None, typer.Option(help="Column to add up per group instead of counting rows.")]
MaxQuantity = Annotated[int | None, typer.Option(help="Public bound on the quantity of one row.")]
Groups = Annotated[str | None, typer.Option(help="Public table of groups, so that empty groups count.")]
GroupsPrivate = Annotated[
    bool, typer.Option("--groups-private", help="Spend budget on group totals: they are not public.")
]
HierarchyTable = Annotated[
    str | None, typer.Option("--hierarchy", help="Separate table of regions: region, then one column per level.")
]
Entity = Annotated[str | None, typer.Option(help="What one row is called in the privacy statement (person, trip …).")]
Unit = Annotated[
    str, typer.Option(help="What is protected: entity (one row), group, or the column that names a person.")
]
Contributions = Annotated[int | None, typer.Option(help="Public bound on the rows that count of one --unit.")]
Root = Annotated[str, typer.Option(help="Label of the root.")]
TableName = Annotated[str | None, typer.Option("--table", help="Table to read from a database URL.")]
Sql = Annotated[str | None, typer.Option(help="Query to read from a database URL.")]


Engine = Annotated[str, typer.Option(help="local, or spark for data and hierarchies that outgrow one machine.")]
Master = Annotated[
    str | None, typer.Option(help="With --engine spark: the cluster, for example spark://host:7077 or local[4].")
]


@dataclass(frozen=True)
class DataOptions:
    """The data a command works on."""

    source: str
    group: str | None = None
    levels: str | tuple[str, ...] | None = None
    size: str | None = None
    count: str | None = None
    quantity: str | None = None
    max_quantity: int | None = None
    groups: str | None = None
    groups_private: bool = False
    hierarchy: str | None = None
    root: str = "total"
    entity: str | None = None
    unit: str = ENTITY
    contributions: int | None = None
    table: str | None = None
    sql: str | None = None
    engine: str = "local"
    master: str | None = None

    def read(self) -> Any:
        """Read and aggregate the data: in this process, or on the executors of a Spark cluster, where it then stays."""
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        options["levels"] = split_names(self.levels)
        source, engine, master = (options.pop(name) for name in ("source", "engine", "master"))
        match engine:
            case "spark":
                return read_with_spark(source, master=master, **options)
            case "local":
                if master is not None:
                    raise RequestError("--master goes with --engine spark.")
                return read(source, **options)
        raise RequestError(f"engine {engine!r} is not known. Choose one of: local, spark.")


def split_names(names: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """Names from a comma-separated text or a list."""
    if names is None:
        return ()
    return tuple(name.strip() for name in (names.split(",") if isinstance(names, str) else names))


def one_or_many(text: str) -> str | tuple[str, ...]:
    """A single word as it is, several comma-separated ones as a tuple."""
    return split_names(text) if "," in text else text


def read_config(path: str, known: set[str]) -> dict[str, Any]:
    """Options from a TOML file, named like the flags (``max-size`` or ``max_size``)."""
    try:
        with Path(path).open("rb") as file:
            config = tomllib.load(file)
    except OSError as error:
        raise StorageError(f"Cannot read {path}: {error.strerror}.") from None
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"{path} is not valid TOML: {error}.") from None
    options = {key.replace("-", "_"): value for key, value in config.items()}
    unknown = sorted(set(options) - known)
    if unknown:
        raise RequestError(f"{path} has unknown options: {', '.join(unknown)}. Known: {', '.join(sorted(known))}.")
    return options

"""``tallytree release``: from a table to a verified release on disk."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tallytree.cli import paying, sources
from tallytree.cli.app import app, print_json, progress_bar, say
from tallytree.cli.options import AsJson, DefinitionName, Epsilon, InsecureSeed, NoNoisy, Overwrite, Rho
from tallytree.errors import RequestError
from tallytree.model.confidential import ENTITY
from tallytree.model.hierarchy import Hierarchy
from tallytree.planning.mechanisms import MECHANISMS
from tallytree.publish.group_sizes import release as release_counts
from tallytree.publish.intervals import with_intervals
from tallytree.release.loading import load_release
from tallytree.release.release import Release


@dataclass(frozen=True)
class ReleaseOptions:
    """How to release; names as in :func:`tallytree.release`."""

    epsilon: Any = None
    rho: Any = None
    definition: str = "pure"
    mechanism: str | None = None
    view: Any = None
    merge: str = "weighted"
    budget: Any = "auto"
    max_size: Any = None
    norm: int | None = None
    totals: str | None = None
    repair: bool = False
    time_limit: float | None = None
    insecure_seed: int | None = None


@dataclass(frozen=True)
class OutputOptions:
    """Where to write, and which account pays."""

    out: str | None = None
    overwrite: bool = False
    no_noisy: bool = False
    intervals: int = 0
    ledger: str | None = None
    dataset: str | None = None
    idempotency_key: str | None = None
    part: str | None = None


OPTION_GROUPS = (sources.DataOptions, ReleaseOptions, OutputOptions)


@app.command()
def release(
    source: Annotated[
        str, typer.Argument(help="Parquet or CSV file or glob, a database URL, or a CONFIG.toml that names everything.")
    ],
    out: Annotated[str | None, typer.Option(help="Folder to write the release to.")] = None,
    epsilon: Epsilon = None,
    rho: Rho = None,
    definition: DefinitionName = "pure",
    group: sources.Group = None,
    levels: sources.Levels = None,
    size: sources.Size = None,
    count: sources.Count = None,
    quantity: sources.Quantity = None,
    max_quantity: sources.MaxQuantity = None,
    groups: sources.Groups = None,
    groups_private: sources.GroupsPrivate = False,
    hierarchy: sources.HierarchyTable = None,
    root: sources.Root = "total",
    entity: sources.Entity = None,
    unit: sources.Unit = ENTITY,
    contributions: sources.Contributions = None,
    table: sources.TableName = None,
    sql: sources.Sql = None,
    engine: sources.Engine = "local",
    master: sources.Master = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            help=f"One of: {', '.join(MECHANISMS)}. Default: adaptive; matching for a view, size-bins for --unit group."
        ),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            help="For matching: hybrid, cumulative, sizes or naive; one name, or one per level, comma-separated."
        ),
    ] = None,
    merge: Annotated[str, typer.Option(help="weighted or average.")] = "weighted",
    budget: Annotated[
        str, typer.Option(help="auto, equal, or one share per level, root first: 0.15,0.25,0.6")
    ] = "auto",
    max_size: Annotated[
        str | None, typer.Option(help="Public bound on sizes for views that need one, or auto.")
    ] = None,
    norm: Annotated[int | None, typer.Option(help="1 or 2: distance that the isotonic fits minimise.")] = None,
    totals: Annotated[
        str | None, typer.Option(help="Public group totals to keep: regions or root; each mechanism has its default.")
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="tree-relaxed only: round so that everything adds up.")
    ] = False,
    time_limit: Annotated[float | None, typer.Option(help="Seconds that a solver may take.")] = None,
    insecure_seed: InsecureSeed = None,
    ledger: paying.Ledger = None,
    dataset: paying.Dataset = None,
    idempotency_key: paying.IdempotencyKey = None,
    part: paying.PartOfData = None,
    overwrite: Overwrite = False,
    no_noisy: NoNoisy = False,
    intervals: Annotated[
        int,
        typer.Option(
            help="Add standard errors and intervals, from simulating the release this often (40, say).", min=0
        ),
    ] = 0,
    json: AsJson = False,
) -> None:
    """Release how many groups have each size, at every level.

    Example: tallytree release people.parquet --group household --levels state,county --epsilon 1.0 --out out
    """
    given = {name: value for name, value in locals().items() if name != "json"}
    data, how, where = split_options(options_from_config(given) if source.endswith(".toml") else given)
    if where.out is None:
        raise RequestError("No output folder was named. Add --out DIR.")
    out_folder = where.out
    payment = paying.payment(where.ledger, where.dataset, where.idempotency_key, where.part)
    options = {field.name: getattr(how, field.name) for field in fields(how)}

    def make() -> Release:
        with progress_bar() as progress:
            made = release_counts(data.read(), progress=progress, ledger=payment, **options)
            return with_intervals(made, copies=where.intervals, progress=progress) if where.intervals else made

    made, found = paying.publish(
        payment, out_folder, make, load_release, overwrite=where.overwrite, noisy=not where.no_noisy
    )
    if json:
        print_json({"out": out_folder, "already_released": found, **summary(made)})
    else:
        say_summary(made, Path(out_folder))


def options_from_config(given: dict[str, Any]) -> dict[str, Any]:
    """Options of a CONFIG.toml; flags on the command line that differ from their default win over it."""
    defaults = {field.name: field.default for group in OPTION_GROUPS for field in fields(group)}
    config = sources.read_config(given["source"], set(defaults))
    if "source" not in config:
        raise RequestError(f'{given["source"]} names no source. Add: source = "people.parquet".')
    flags = {name: value for name, value in given.items() if name != "source" and value != defaults[name]}
    return {**{name: value for name, value in defaults.items() if name != "source"}, **config, **flags}


def split_options(options: dict[str, Any]) -> tuple[sources.DataOptions, ReleaseOptions, OutputOptions]:
    """Sort flat options into what to read, how to release, where to write."""
    options = dict(options)
    for name in ("view", "budget"):
        value = options[name]
        if value is not None:
            options[name] = sources.one_or_many(value) if isinstance(value, str) else tuple(value)
    parts = [group(**{f.name: options[f.name] for f in fields(group)}) for group in OPTION_GROUPS]
    return parts[0], parts[1], parts[2]  # type: ignore[return-value]


def summary(made: Release) -> dict[str, Any]:
    """What a release is, for people and programs."""
    privacy = made.manifest["privacy"]
    return {
        "levels": made.manifest["levels"],
        "mechanism": made.manifest["mechanism"]["name"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "public": made.manifest["public"],
        "rows": len(made.counts.size),
    }


def say_summary(made: Release, out: Path) -> None:
    """Tell what was released and what it assumes."""
    facts = summary(made)
    levels = ", ".join(f"{level['regions']:,} {level['name']}" for level in facts["levels"])
    say(f"Released {levels} ({facts['mechanism']}) to {out}")
    say(facts["statement"])
    for assumption in ("hierarchy", "group_totals"):
        say(f"Note: {facts['public'][assumption]}.")
    for above, below in doubtful_levels(made.hierarchy):
        say(
            f"Note: most {above} regions hold a single {below}. --levels goes from the largest regions to the smallest."
        )


def doubtful_levels(hierarchy: Hierarchy) -> list[tuple[str, str]]:
    """Pairs of levels that may stand in the wrong order: most regions of the upper one hold a single region of the lower."""
    doubtful = []
    for level in range(1, hierarchy.n_levels - 1):
        below = hierarchy.parent[hierarchy.level_slice(level + 1)]
        if np.mean(np.unique(below, return_counts=True)[1] == 1) > 0.5:
            doubtful.append((hierarchy.level_names[level], hierarchy.level_names[level + 1]))
    return doubtful

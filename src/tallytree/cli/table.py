"""``tallytree table``: counts of rows by region and attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tallytree.cli.app import app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command
from tallytree.cli.paying import publish
from tallytree.cli.sources import SourceOrConfig
from tallytree.errors import RequestError
from tallytree.options.groups import rows_to_read
from tallytree.options.reading import EngineOptions
from tallytree.options.tables import TableOptions, TableOutput

if TYPE_CHECKING:
    from tallytree.releases.keeping import Keeping
    from tallytree.tables.prediction import TablePrediction
    from tallytree.tables.release import TableRelease


@command(app)
def table(
    source: SourceOrConfig, where: TableOutput, how: TableOptions, engine: EngineOptions
) -> None:
    """Release how many rows every region has by attributes: people by age and sex, jobs by industry.

    Example: tallytree table people.parquet --levels state,county --by sex=f,m --by
        age=0-17,18-64,65+ --epsilon 1.0 --out out
    Example: tallytree table people.parquet --levels state,county --by sex=f,m --epsilon 1.0
        --dry-run
    """
    from tallytree.tables.publish import make_table
    from tallytree.tables.release import load_table

    if where.dry_run:
        show_prediction(*opened(source, how, engine), where)
        return
    if where.out is None:
        raise RequestError("--out is missing: the folder to write. To look only, say --dry-run.")

    def make(keeping: Keeping) -> TableRelease:
        with progress_bar() as progress:
            return make_table(*opened(source, how, engine), keeping, progress)

    made, found = publish(how, where, make, load_table)
    facts = summary(made)
    if where.json:
        print_json({"out": where.out, "already_released": found, **facts})
        return
    say(f"Released {facts['regions']}, {facts['cells']:,} cells each, to {where.out}")
    say(facts["statement"])
    say(f"Note: {facts['note']}.")


def opened(source: str, how: TableOptions, engine: EngineOptions) -> tuple[Any, TableOptions]:
    """The table that rows are counted in: where it lies, or with Spark."""
    if engine.engine == "local":
        if engine.master is not None:
            raise RequestError("--master goes with --engine spark.")
        return source, how
    from tallytree.spark.reading import open_with_spark

    made = open_with_spark(source, how.encoding, master=engine.master)
    return made, replace(how, encoding=None)


def summary(made: TableRelease) -> dict[str, Any]:
    """What a table is, for people and programs. Nothing in it was not released."""
    privacy = made.manifest["privacy"]
    levels = made.manifest["levels"]
    return {
        "levels": levels,
        "regions": ", ".join(f"{level['regions']:,} {level['name']}" for level in levels),
        "attributes": made.manifest["attributes"],
        "cells": made.attributes.n_cells,
        "private": privacy["private"],
        "statement": privacy["statement"],
        "note": "; ".join(made.manifest["public"].values()),
        "rows": made.count(),
    }


def show_prediction(source: Any, how: TableOptions, where: TableOutput) -> None:
    """Tell what every table's error will be, from regions and values alone."""
    from tallytree.ingest.tables import public_table
    from tallytree.tables.prediction import predicted

    facts = public_table(source, how, rows_to_read(how.where, how))
    found = predicted(how, facts)
    if where.json:
        levels = [
            {"name": name, "regions": facts.hierarchy.level_size(level)}
            for level, name in enumerate(facts.hierarchy.level_names)
        ]
        print_json({"levels": levels, "prediction": found.to_json()})
        return
    say("Nothing was paid or written, and nothing was counted: regions alone were read.")
    print_prediction(found)


def print_prediction(found: TablePrediction) -> None:
    """Print predicted errors, and what is measured for them."""
    rows = [
        [one.level, ", ".join(one.by) or "–", one.counts, one.std_error, one.mean_error]
        for one in found.tables
    ]
    head = ["level", "by", "counts", "std error", "mean error"]
    print_table("Predicted error of a count", head, rows)
    measured = [[name, f"{share:.1%}"] for name, share in found.measured]
    print_table("Measured", ["table", "share of the budget"], measured)
    if found.share is not None:
        say(f"Predicted there: {found.share:.1%} of the counts.")

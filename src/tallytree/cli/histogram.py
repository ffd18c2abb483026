"""``tallytree histogram``: a histogram that answers any range."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from tallytree.cli import paying, sources
from tallytree.cli.app import app, print_json, say
from tallytree.cli.options import (
    AsJson,
    DefinitionName,
    Epsilon,
    InsecureSeed,
    NoNoisy,
    Overwrite,
    Rho,
    RowsOfUnit,
    UnitName,
)
from tallytree.errors import RequestError
from tallytree.model.unit import ENTITY
from tallytree.publish.histogram import histogram as release_histogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.questions import parse_range


@app.command()
def histogram(
    source: sources.Source,
    column: Annotated[str, typer.Option(help="Column whose values are counted.")],
    out: Annotated[str, typer.Option(help="Folder to write the histogram to.")],
    epsilon: Epsilon = None,
    rho: Rho = None,
    definition: DefinitionName = "pure",
    edges: Annotated[str | None, typer.Option(help="Edges of the bins, comma-separated: 0,18,65,120")] = None,
    bins: Annotated[int | None, typer.Option(help="Number of equal bins between --bounds.")] = None,
    width: Annotated[float | None, typer.Option(help="Width of the bins between --bounds.")] = None,
    bounds: Annotated[str | None, typer.Option(help="Public lower and upper bound: 0,120", metavar="LOW,HIGH")] = None,
    categories: Annotated[str | None, typer.Option(help="Categories in order, comma-separated.")] = None,
    outside: Annotated[str, typer.Option(help="Values outside the bins: error, clip or drop.")] = "error",
    count: Annotated[str | None, typer.Option(help="Column that says how many entities a row stands for.")] = None,
    strategy: Annotated[
        str, typer.Option(help="auto, flat, hierarchical, wavelet, optimised, eigen-select or low-rank.")
    ] = "auto",
    branching: Annotated[int | None, typer.Option(help="Children per block of a hierarchical strategy.")] = None,
    budget: Annotated[
        str, typer.Option(help="Over levels: equal, geometric, optimal-blocks, optimal, or shares 1/4,3/4")
    ] = "equal",
    workload: Annotated[str, typer.Option(help="ranges, prefixes, identity, or ranges 0:18,65:120")] = "ranges",
    nonnegative: Annotated[str, typer.Option(help="top-down, least-squares, subtree or no.")] = "top-down",
    real: Annotated[bool, typer.Option("--real", help="Publish real numbers instead of whole ones.")] = False,
    unit: sources.Unit = ENTITY,
    contributions: RowsOfUnit = 1,
    entity: UnitName = "row",
    table: sources.TableName = None,
    sql: sources.Sql = None,
    where: sources.Where = None,
    insecure_seed: InsecureSeed = None,
    ledger: paying.Ledger = None,
    dataset: paying.Dataset = None,
    idempotency_key: paying.IdempotencyKey = None,
    part: paying.PartOfData = None,
    overwrite: Overwrite = False,
    no_noisy: NoNoisy = False,
    json: AsJson = False,
) -> None:
    """Release a histogram of one column that answers any range, with error bars.

    Example: tallytree histogram people.parquet --column age --width 1 --bounds 0,120 --epsilon 1.0 --out ages
    """
    payment = paying.payment(ledger, dataset, idempotency_key, part)
    rows = paying.rows_to_read(payment, where)

    def make() -> RangeHistogram:
        return release_histogram(
            source,
            column=column,
            epsilon=epsilon,
            rho=rho,
            definition=definition,  # type: ignore[arg-type]
            edges=_numbers(edges, "--edges"),
            bins=bins,
            width=width,
            bounds=_numbers(bounds, "--bounds"),  # type: ignore[arg-type]
            categories=sources.split_names(categories) or None,
            outside=outside,
            count=count,
            strategy=strategy,
            branching=branching,
            budget=sources.one_or_many(budget),
            workload=_workload(workload),
            nonnegative=nonnegative,
            integers=not real,
            unit=unit,
            contributions=contributions,
            entity=entity,
            table=table,
            sql=sql,
            where=rows,
            insecure_seed=insecure_seed,
            ledger=payment,
        )

    made, found = paying.publish(payment, out, make, overwrite=overwrite, noisy=not no_noisy)
    facts = summary(made)
    if json:
        print_json({"out": out, "already_released": found, **facts})
    else:
        say(f"Released {facts['bins']:,} bins ({facts['strategy']}) to {out}")
        say(f"Why this strategy: {facts['reason']}")
        say(facts["statement"])
        say(f"A range of half of all bins has a standard error of about {facts['standard_error_of_half']:.3g}.")


def summary(made: RangeHistogram) -> dict[str, Any]:
    """What a histogram is, for people and programs. Nothing in it was not released."""
    n_bins = made.bins.n_bins
    privacy, strategy = made.manifest["privacy"], made.manifest["mechanism"]
    half = made.prefix_sums()[max(n_bins // 2 - 1, 0)]
    return {
        "bins": n_bins,
        "strategy": strategy["name"],
        "reason": strategy["reason"],
        "private": privacy["private"],
        "statement": privacy["statement"],
        "total": asdict(made.total()),
        "standard_error_of_half": half.standard_error,
    }


def _numbers(text: str | None, option: str) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise RequestError(f"{option} takes numbers, comma-separated; got {text!r}.") from None


def _workload(text: str) -> Any:
    if ":" not in text:
        return text
    return [parse_range(part) for part in text.split(",")]

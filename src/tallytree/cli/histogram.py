"""``tallytree histogram``: a histogram that answers any range; and how ``query`` asks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.cli import paying, sources
from tallytree.cli.app import app, print_json, print_table, say
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
from tallytree.model.confidential import ENTITY
from tallytree.publish.histogram import histogram as release_histogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.histogram_loading import load_histogram


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

    made, found = paying.publish(payment, out, make, load_histogram, overwrite=overwrite, noisy=not no_noisy)
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
    privacy, strategy = made.manifest["privacy"], made.manifest["strategy"]
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


def parse_range(text: str) -> tuple[object, object]:
    """A range written ``LOW:HIGH``; numbers where both ends are, names of categories otherwise."""
    low, colon, high = text.partition(":")
    if not colon or not low.strip() or not high.strip():
        raise RequestError(f"A range is written LOW:HIGH, such as 18:65; got {text!r}.")
    try:
        return float(low), float(high)
    except ValueError:
        return low.strip(), high.strip()


def query_histogram(
    made: RangeHistogram, folder: Path, *, ranges: Sequence[str], quantile: float | None, level: float, json: bool
) -> None:
    """Answer ranges and a quantile; without a question, show every bin."""
    pairs = [_as_asked(made, parse_range(text)) for text in ranges]
    answers = made.ranges(pairs, level=level) if pairs else None
    found = made.quantile(quantile, level=level) if quantile is not None else None
    if answers is None and found is None:
        everything = made.table()
        if json:
            print_json({"histogram": str(folder), "bins": everything.to_pylist()})
        else:
            print_table(str(folder), everything.column_names, [list(row.values()) for row in everything.to_pylist()])
        return
    rows = []
    if answers is not None:
        rows += [
            [f"{text} count", a.estimate, a.standard_error, a.low, a.high]
            for text, a in zip(ranges, answers, strict=True)
        ]
    if found is not None:
        rows.append([f"quantile {quantile:g}", found.value, found.standard_error, found.low, found.high])
    columns = ["question", "estimate", "standard_error", "low", "high"]
    if json:
        print_json({"histogram": str(folder), "level": level, "answers": [dict(zip(columns, row)) for row in rows]})
    else:
        print_table(str(folder), columns, [["–" if cell is None else cell for cell in row] for row in rows])


def _as_asked(made: RangeHistogram, pair: tuple[object, object]) -> tuple[object, object]:
    """Ends of a range of categories are names, even where they look like numbers."""
    if made.bins.categories is None or isinstance(pair[0], str):
        return pair
    names = made.bins.categories
    return tuple(f"{end:g}" if f"{end:g}" in names else str(end) for end in pair)  # type: ignore[return-value]

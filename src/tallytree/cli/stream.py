"""``tallytree stream``: how many came so far, step after step."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from tallytree.cli import paying, sources
from tallytree.cli.app import app, print_json, say
from tallytree.cli.options import AsJson, DefinitionName, Epsilon, InsecureSeed, Rho, RowsOfUnit, UnitName
from tallytree.errors import RequestError
from tallytree.model.unit import ENTITY
from tallytree.publish.stream import stream as release_stream


@app.command()
def stream(
    source: sources.Source,
    column: Annotated[str, typer.Option(help="When a row came: the number of its step, or a date or time.")],
    until: Annotated[str, typer.Option(help="Last step that is over, public: its number, or its last day.")],
    horizon: Annotated[str, typer.Option(help="Largest number of steps, public, or none.")],
    out: Annotated[str, typer.Option(help="Folder of the stream; if it holds one already, that one goes on.")],
    epsilon: Epsilon = None,
    rho: Rho = None,
    definition: DefinitionName = "pure",
    start: Annotated[str | None, typer.Option(help="First step: its number (1), or the date it begins on.")] = None,
    every: Annotated[str | None, typer.Option(help="Steps are dates: day, week or month.")] = None,
    count: Annotated[str | None, typer.Option(help="Column that says how many entities a row stands for.")] = None,
    strategy: Annotated[str, typer.Option(help="auto, square-root or tree.")] = "auto",
    branching: Annotated[int | None, typer.Option(help="Steps per block of the second level of a tree.")] = None,
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
    json: AsJson = False,
) -> None:
    """Release how many rows came so far, after every step; run it again, with a later --until, to go on.

    The budget is spent once, at the first run. Rows must not move from one step to another between runs.

    Example: tallytree stream visits.parquet --column day --until 31 --horizon 365 --epsilon 1 --out visits
    """
    payment = paying.payment(ledger, dataset, idempotency_key, part)
    made = release_stream(
        source,
        column=column,
        until=until,
        horizon=_horizon(horizon),
        epsilon=epsilon,
        rho=rho,
        definition=definition,  # type: ignore[arg-type]
        start=start,
        every=every,
        count=count,
        strategy=strategy,  # type: ignore[arg-type]
        branching=branching,
        unit=unit,
        contributions=contributions,
        entity=entity,
        table=table,
        sql=sql,
        where=paying.rows_to_read(payment, where),
        out=out,
        insecure_seed=insecure_seed,
        ledger=payment,
    )
    privacy, total = made.manifest["privacy"], made.total()
    if json:
        facts = {"steps": made.n_steps, "mechanism": made.manifest["mechanism"], "total": asdict(total)}
        print_json({"out": out, **facts, "private": privacy["private"], "statement": privacy["statement"]})
    else:
        say(f"{out} holds {made.n_steps:,} steps, up to {made.steps.name(made.n_steps - 1)} ({made.mechanism})")
        say(privacy["statement"])
        say(f"So far: {total.estimate:,}, between {total.low:,} and {total.high:,}.")


def _horizon(text: str) -> int | None:
    if text.lower() == "none":
        return None
    if not text.isdecimal():
        raise RequestError(f"--horizon is a whole number of at least 1, or none; got {text!r}.")
    return int(text)

"""``tallytree degrees``: sorted counts, such as the degree sequence of a graph."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tallytree.cli import paying, sources
from tallytree.cli.app import app, print_json, say
from tallytree.cli.options import AsJson, DefinitionName, Epsilon, InsecureSeed, NoNoisy, Overwrite, Rho, RowsOfUnit
from tallytree.errors import RequestError
from tallytree.ingest.read import read
from tallytree.model.unit import ENTITY
from tallytree.publish.degrees import degrees as release_degrees
from tallytree.release.degrees import DegreeSequence


@app.command()
def degrees(
    source: sources.Source,
    out: Annotated[str, typer.Option(help="Folder to write the sequence to.")],
    epsilon: Epsilon = None,
    rho: Rho = None,
    definition: DefinitionName = "pure",
    edges: Annotated[str | None, typer.Option(help="Rows are edges: columns of their ends.", metavar="FROM,TO")] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Count only the edges that leave a node.")] = False,
    nodes: Annotated[str | None, typer.Option(help="Public table of all nodes, so that lonely ones count.")] = None,
    public: Annotated[
        str | None, typer.Option(help="What is held fixed: groups (with --column), nodes (with --edges).")
    ] = None,
    column: Annotated[str | None, typer.Option(help="Rows are entities: column of the group they belong to.")] = None,
    size: Annotated[str | None, typer.Option(help="Rows are groups: column of their counts.")] = None,
    method: Annotated[str, typer.Option(help="isotonic, sorted or noisy.")] = "isotonic",
    graphical: Annotated[bool, typer.Option("--graphical", help="Publish degrees that some graph has.")] = False,
    unit: sources.Unit = ENTITY,
    contributions: RowsOfUnit = 1,
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
    """Release how large groups are, or the degrees of a graph, without saying which is which.

    Example: tallytree degrees friends.csv --edges from,to --graphical --epsilon 0.5 --out degrees
    """
    if sum(option is not None for option in (edges, column, size)) != 1:
        raise RequestError("Say what the rows are with one of --edges FROM,TO, --column COL or --size COL.")
    payment = paying.payment(ledger, dataset, idempotency_key, part)
    rows = paying.rows_to_read(payment, where)

    def make() -> DegreeSequence:
        data: Any = (
            read(source, size=size, table=table, sql=sql, where=rows, public="groups") if size is not None else source
        )
        in_database = size is None
        return release_degrees(
            data,
            epsilon=epsilon,
            rho=rho,
            definition=definition,  # type: ignore[arg-type]
            column=column,
            edges=sources.split_names(edges) if edges is not None else None,  # type: ignore[arg-type]
            directed=directed,
            nodes=nodes,
            public=public,  # type: ignore[arg-type]
            table=table if in_database else None,
            sql=sql if in_database else None,
            where=rows if in_database else None,
            method=method,
            graphical=graphical,
            unit=unit,
            contributions=contributions,
            insecure_seed=insecure_seed,
            ledger=payment,
        )

    made, found = paying.publish(payment, out, make, overwrite=overwrite, noisy=not no_noisy)
    privacy = made.manifest["privacy"]
    if json:
        facts = {"groups": len(made.degrees), "mechanism": made.manifest["mechanism"], "total": made.total()}
        print_json(
            {
                "out": out,
                "already_released": found,
                **facts,
                "private": privacy["private"],
                "statement": privacy["statement"],
            }
        )
    else:
        say(f"Released {len(made.degrees):,} counts ({made.mechanism}) to {out}")
        say(privacy["statement"])
        say(f"Assumed public: how many groups there are; {made.manifest['public']['note']}.")

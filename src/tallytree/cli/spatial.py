"""``tallytree spatial``: a map that answers any box."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.cli import paying, sources
from tallytree.cli.app import app, print_json, print_table, progress_bar, say
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
from tallytree.kinds.verbs import evaluate
from tallytree.model.unit import ENTITY
from tallytree.publish.map_accuracy import LINE_METHODS, METHODS, compare_maps, points_like
from tallytree.publish.spatial import spatial as release_spatial
from tallytree.release.questions import parse_box
from tallytree.release.spatial import SpatialRelease
from tallytree.release.spatial_evaluation import HEAD, error_rows


@app.command()
def spatial(
    source: sources.Source,
    columns: Annotated[str, typer.Option(help="Two or more columns of numbers, comma-separated: x,y")],
    box: Annotated[
        str, typer.Option(help="Public range of each column: -74.1:-73.7,40.5:41", metavar="LOW:HIGH,LOW:HIGH")
    ],
    out: Annotated[str, typer.Option(help="Folder to write the map to.")],
    epsilon: Epsilon = None,
    rho: Rho = None,
    definition: DefinitionName = "pure",
    outside: Annotated[str, typer.Option(help="Points outside the box: error, clip or drop.")] = "error",
    resolution: Annotated[
        str | None, typer.Option(help="Cells per column of the grid that points are counted on: 1024, or 1024,512")
    ] = None,
    count: Annotated[str | None, typer.Option(help="Column that says how many entities a row stands for.")] = None,
    method: Annotated[
        str,
        typer.Option(
            help="auto, flat, hierarchical, uniform-grid, adaptive-grid, quadtree, quad-opt, kd-tree, kd-hybrid or "
            "adaptive-tree; for one column noisy-first or structure-first."
        ),
    ] = "auto",
    n_points: Annotated[int | None, typer.Option(help="Number of points, where that is public.")] = None,
    alpha: Annotated[str | None, typer.Option(help="Share of the coarse level of an adaptive grid.")] = None,
    cells: Annotated[int | None, typer.Option(help="Cells per column of a uniform or of the coarse grid.")] = None,
    depth: Annotated[int | None, typer.Option(help="Levels of a quadtree or kd-tree.")] = None,
    branching: Annotated[int | None, typer.Option(help="Children per column of the hierarchical method.")] = None,
    prune: Annotated[float | None, typer.Option(help="Boxes with a lower count become leaves.")] = None,
    allow_negative: Annotated[bool, typer.Option("--allow-negative", help="Publish negative counts too.")] = False,
    real: Annotated[bool, typer.Option("--real", help="Publish real numbers instead of whole ones.")] = False,
    unit: sources.Unit = ENTITY,
    contributions: RowsOfUnit = 1,
    entity: UnitName = "row",
    picture: Annotated[Path | None, typer.Option(help="Save a picture of the map (PNG).", metavar="FILE")] = None,
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
    """Release a map of points that answers how many lie in any box.

    Example: tallytree spatial trips.parquet --columns lon,lat --box=-74.1:-73.7,40.5:41 --epsilon 1.0 --out trips
    """
    payment = paying.payment(ledger, dataset, idempotency_key, part)
    rows = paying.rows_to_read(payment, where)

    def make() -> SpatialRelease:
        return release_spatial(
            source,
            columns=sources.split_names(columns),
            box=parse_box(box, "--box"),
            epsilon=epsilon,
            rho=rho,
            definition=definition,  # type: ignore[arg-type]
            outside=outside,
            resolution=_resolution(resolution),
            count=count,
            method=method,
            n_points=n_points,
            alpha=alpha,
            cells=cells,
            depth=depth,
            branching=branching,
            prune=prune,
            nonnegative=not allow_negative,
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
    if picture is not None:
        made.picture(picture)
    facts = summary(made)
    if json:
        print_json({"out": out, "already_released": found, **facts})
    else:
        say(f"Released a map of {facts['boxes']:,} boxes ({facts['method']}) to {out}")
        say(facts["statement"])
        say(facts["note"])


def summary(made: SpatialRelease) -> dict[str, Any]:
    """What a map is, for people and programs. Nothing in it was not released."""
    return {
        "method": made.method,
        "boxes": int(made.estimates.leaves.sum()),
        "private": made.private,
        "statement": made.manifest["privacy"]["statement"],
        "note": made.note,
        "total": asdict(made.total()),
    }


def _resolution(text: str | None) -> int | list[int] | None:
    if text is None:
        return None
    try:
        cells = [int(part) for part in text.split(",")]
    except ValueError:
        raise RequestError(f"--resolution takes whole numbers, comma-separated; got {text!r}.") from None
    return cells[0] if len(cells) == 1 else cells


def evaluate_map(made: SpatialRelease, source: str, *, json: bool, **options: str | None) -> None:
    """Show errors against the true points; for the owner."""
    given = {name: value for name, value in options.items() if value is not None}
    result = evaluate(made, source, **given)
    if json:
        print_json(result.to_json())
        return
    say("NOT PRIVATE: these errors are computed from the confidential data. Do not publish them.")
    print_table("Errors of boxes", list(HEAD), error_rows(result.classes))


def plan_map(earlier: SpatialRelease, *, epsilon: str, method: str | None, runs: int, json: bool) -> None:
    """Show predicted errors of an earlier map's points, by method."""
    known = LINE_METHODS if len(earlier.shape) == 1 else METHODS
    with progress_bar() as progress:
        methods = known if method is None else (method,)
        predictions = compare_maps(points_like(earlier), methods, epsilon=epsilon, runs=runs, progress=progress)
    if json:
        print_json({"predictions": [prediction.to_json() for prediction in predictions]})
        return
    say("No confidential data were read: the methods ran on points spread at random in the boxes of the earlier map.")
    rows = [[one.name, *row] for one in predictions for row in error_rows(one.classes)]
    print_table("Predicted errors of boxes", ["method", *HEAD], rows)

"""``tallytree verify``, ``query`` and ``evaluate``: looking at a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli import sources
from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, progress_bar, say
from tallytree.cli.options import AsJson
from tallytree.cli.spatial import evaluate_map
from tallytree.errors import RequestError
from tallytree.kinds.verbs import ask, kind_of, load, verify_privacy
from tallytree.kinds.verbs import evaluate as evaluate_release
from tallytree.kinds.verbs import verify as verify_release
from tallytree.model.part import Part
from tallytree.release.questions import Question
from tallytree.release.spatial import SpatialRelease

Folder = Annotated[Path, typer.Argument(help="Folder of a release.", metavar="DIR")]


@app.command()
def verify(
    folder: Folder,
    privacy: Annotated[
        bool, typer.Option("--privacy", help="Recompute the privacy loss from the manifest instead.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Check a release: checksums, integers, nonnegativity, group totals, and that children add up to parents.

    With --privacy: recompute the privacy loss from the measurements that the manifest records.

    Example: tallytree verify out
    """
    result = verify_privacy(folder) if privacy else verify_release(folder)
    if json:
        print_json({"passed": result.passed, "checks": [vars(check) for check in result.checks]})
    else:
        for check in result.checks:
            say(f"{'ok    ' if check.passed else 'FAILED'}  {check.name}{': ' + check.detail if check.detail else ''}")
    if not result.passed:
        raise typer.Exit(CHECK_FAILED)


@app.command()
def query(
    folder: Folder,
    region: Annotated[
        str | None, typer.Option(help="Path of the region, such as US/Georgia; the root when left out.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="How many groups have exactly this size?")] = None,
    at_least: Annotated[int | None, typer.Option(help="How many groups have at least this size?")] = None,
    largest: Annotated[int | None, typer.Option(help="How large is the k-th largest group?", metavar="K")] = None,
    quantile: Annotated[
        float | None, typer.Option(help="Which size do this fraction of the groups not exceed?")
    ] = None,
    mean: Annotated[bool, typer.Option("--mean", help="What is the mean size?")] = False,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Of a histogram: how many lie in this range? Of a map: in this box, LOW:HIGH,LOW:HIGH? Repeatable.",
            metavar="LOW:HIGH",
        ),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", "--level", help="Confidence of intervals; 0.95 when left out.")
    ] = None,
    copies: Annotated[
        int,
        typer.Option(help="Of group sizes: simulate the release this often for intervals; 0 leaves them out.", min=0),
    ] = 0,
    json: AsJson = False,
) -> None:
    """Answer questions about one region, a histogram, a map or a degree sequence; without a question, show its counts.

    Example: tallytree query out --region US/Georgia --at-least 7 --quantile 0.5
    Example: tallytree query ages --range 18:65 --range 0:18 --quantile 0.5
    """
    question = Question(
        region=region,
        size=size,
        at_least=at_least,
        largest=largest,
        quantile=quantile,
        mean=mean,
        ranges=tuple(ranges or ()),
        confidence=confidence,
        copies=copies,
    )
    release = load(folder)
    with progress_bar() as progress:
        reply = ask(release, question, progress=progress)
    if json:
        print_json({release.kind: str(folder), **reply.facts})
    else:
        print_table(reply.title, list(reply.columns), [list(row) for row in reply.rows])
        if reply.note:
            say(reply.note)


@app.command()
def evaluate(
    folder: Folder,
    source: sources.Source,
    group: sources.Group = None,
    levels: sources.Levels = None,
    size: sources.Size = None,
    count: sources.Count = None,
    quantity: sources.Quantity = None,
    max_quantity: sources.MaxQuantity = None,
    public: sources.PublicFacts = None,
    groups: sources.Groups = None,
    hierarchy: sources.HierarchyTable = None,
    root: sources.Root = "total",
    table: sources.TableName = None,
    sql: sources.Sql = None,
    outside: Annotated[str | None, typer.Option(help="Of a map: points outside its box: error, clip or drop.")] = None,
    json: AsJson = False,
) -> None:
    """Error against the truth, per level, or of a map by the size of boxes. For the owner: the figures are NOT private.

    Example: tallytree evaluate out people.parquet --group household --levels state,county
    Example: tallytree evaluate trips trips.parquet --outside clip
    """
    release = load(folder)
    if isinstance(release, SpatialRelease):
        asked = {"group": group, "levels": levels, "size": size, "quantity": quantity, "groups": groups}
        beyond = [f"--{name}" for name, value in asked.items() if value is not None]
        if beyond:
            raise RequestError(f"{folder} holds a map; {', '.join(beyond)} do not go with it.")
        evaluate_map(release, source, json=json, outside=outside, count=count, table=table, sql=sql)
        return
    kind_of(release).verb("evaluate")
    if outside is not None:
        raise RequestError(f"{folder} holds no map; --outside goes with maps.")
    given = {name: value for name, value in locals().items() if name in sources.DataOptions.__dataclass_fields__}
    kept = release.manifest.get("where")
    given["where"] = None if kept is None else Part(kept["column"], kept["value"])
    given["public"] = public or (None if groups else "groups")
    truth = sources.DataOptions(**given).read()
    if truth.hierarchy != release.hierarchy:
        raise RequestError(
            f"{source} does not have the regions of {folder}. Name the same levels and root as for the release."
        )
    result = evaluate_release(release, truth)
    if json:
        print_json(result.to_json())
        return
    say("NOT PRIVATE: these errors are computed from the confidential data. Do not publish them.")
    rows = [[level.name, level.regions, level.emd, level.l1, level.l2, level.count_error] for level in result.levels]
    print_table("Mean error per region", ["level", "regions", "EMD", "L1", "L2", "one count"], rows)

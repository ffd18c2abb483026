"""``tallytree verify``, ``query`` and ``evaluate``: looking at a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tallytree.cli import sources
from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, say
from tallytree.cli.degrees import query_degrees
from tallytree.cli.histogram import query_histogram
from tallytree.errors import RequestError
from tallytree.release.any_release import load
from tallytree.release.any_release import verify as verify_release
from tallytree.release.degrees import DegreeSequence
from tallytree.release.evaluation import evaluate as evaluate_release
from tallytree.release.histogram import RangeHistogram
from tallytree.release.loading import load_release
from tallytree.release.privacy_checks import verify_privacy
from tallytree.release.region import RegionCounts

Folder = Annotated[Path, typer.Argument(help="Folder of a release.", metavar="DIR")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


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
        typer.Option("--range", help="Of a histogram: how many lie in this range? Repeatable.", metavar="LOW:HIGH"),
    ] = None,
    level: Annotated[float, typer.Option(help="Of a histogram: confidence level of intervals.")] = 0.95,
    json: AsJson = False,
) -> None:
    """Answer questions about one region, a histogram or a degree sequence; without a question, show its counts.

    Example: tallytree query out --region US/Georgia --at-least 7 --quantile 0.5
    Example: tallytree query ages --range 18:65 --range 0:18 --quantile 0.5
    """
    release = load(folder)
    if isinstance(release, RangeHistogram):
        _refuse(folder, "a histogram", region=region, size=size, at_least=at_least, largest=largest, mean=mean or None)
        query_histogram(release, folder, ranges=ranges or [], quantile=quantile, level=level, json=json)
        return
    _refuse(folder, "no histogram", range=ranges)
    if isinstance(release, DegreeSequence):
        _refuse(folder, "a degree sequence", region=region, quantile=quantile, mean=mean or None)
        query_degrees(release, folder, size=size, at_least=at_least, largest=largest, json=json)
        return
    counts = release.region(region if region is not None else str(release.hierarchy.paths[0]))
    answers = _answers(counts, size=size, at_least=at_least, largest=largest, quantile=quantile, mean=mean)
    if not answers:
        rows = [[int(s), int(c)] for s, c in zip(counts.size, counts.count)]
        if json:
            print_json({"region": counts.path, "groups": counts.n_groups, "counts": rows})
        else:
            print_table(counts.path, ["size", "count"], rows)
    elif json:
        print_json({"region": counts.path, **answers})
    else:
        print_table(counts.path, ["question", "answer"], [[question, answer] for question, answer in answers.items()])


def _refuse(folder: Path, kind: str, **questions: object) -> None:
    asked = [f"--{name.replace('_', '-')}" for name, value in questions.items() if value is not None]
    if asked:
        raise RequestError(f"{folder} holds {kind}, which cannot answer {', '.join(asked)}.")


def _answers(
    counts: RegionCounts,
    *,
    size: int | None,
    at_least: int | None,
    largest: int | None,
    quantile: float | None,
    mean: bool,
) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    if size is not None:
        answers[f"groups of size {size}"] = counts.of_size(size)
    if at_least is not None:
        answers[f"groups of at least {at_least}"] = counts.at_least(at_least)
    if largest is not None:
        answers[f"size of group {largest} from the largest"] = counts.kth_largest(largest)
    if quantile is not None:
        answers[f"quantile {quantile:g}"] = counts.quantile(quantile)
    if mean:
        answers["mean size"] = counts.mean()
    return answers


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
    groups: sources.Groups = None,
    hierarchy: sources.HierarchyTable = None,
    root: sources.Root = "total",
    table: sources.TableName = None,
    sql: sources.Sql = None,
    json: AsJson = False,
) -> None:
    """Error against the truth, per level. For the owner of the data: the figures are NOT private.

    Example: tallytree evaluate out people.parquet --group household --levels state,county
    """
    release = load_release(folder)
    given = {name: value for name, value in locals().items() if name in sources.DataOptions.__dataclass_fields__}
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

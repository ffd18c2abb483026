"""``tallytree verify``, ``query`` and ``evaluate``: looking at a release."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli import sources
from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, progress_bar, say
from tallytree.cli.degrees import query_degrees
from tallytree.cli.histogram import query_histogram
from tallytree.cli.options import AsJson
from tallytree.cli.spatial import evaluate_map, query_map
from tallytree.errors import RequestError
from tallytree.publish import answers as asking
from tallytree.publish.bands import count_band
from tallytree.publish.copies import Copies, copy_release
from tallytree.publish.intervals import count_intervals
from tallytree.release.any_release import load
from tallytree.release.any_release import verify as verify_release
from tallytree.release.degrees import DegreeSequence
from tallytree.release.evaluation import evaluate as evaluate_release
from tallytree.release.grid_histogram import GridHistogram
from tallytree.release.histogram import RangeHistogram
from tallytree.release.loading import load_release
from tallytree.release.privacy_checks import verify_privacy
from tallytree.release.region import RegionCounts
from tallytree.release.release import Release
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
    total: Annotated[bool, typer.Option("--total", help="How many groups are there, and how many entities?")] = False,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Of a histogram: how many lie in this range? Of a map: in this box, LOW:HIGH,LOW:HIGH? Repeatable.",
            metavar="LOW:HIGH",
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Confidence level of intervals.")] = 0.95,
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
    release = load(folder)
    if isinstance(release, RangeHistogram):
        asked = {"size": size, "at_least": at_least, "largest": largest, "mean": mean or None, "total": total or None}
        _refuse(folder, "a histogram", region=region, **asked)
        query_histogram(release, folder, ranges=ranges or [], quantile=quantile, level=level, json=json)
        return
    if isinstance(release, GridHistogram):
        raise RequestError(f"{folder} holds a grid; ask it in Python: tallytree.load(folder).box(low, high).")
    if isinstance(release, SpatialRelease):
        _refuse(folder, "a map", region=region, size=size, at_least=at_least, largest=largest, quantile=quantile)
        query_map(release, folder, boxes=ranges or [], json=json)
        return
    _refuse(folder, "no histogram", range=ranges)
    if isinstance(release, DegreeSequence):
        _refuse(folder, "a degree sequence", region=region, quantile=quantile, mean=mean or None, total=total or None)
        query_degrees(release, folder, size=size, at_least=at_least, largest=largest, json=json)
        return
    counts = release.region(region if region is not None else str(release.hierarchy.paths[0]))
    questions = _questions(size=size, at_least=at_least, largest=largest, quantile=quantile, mean=mean, total=total)
    answers = {question.words: question.ask(counts) for question in questions}
    made = None
    if copies:
        with progress_bar() as progress:
            made = copy_release(release, copies=copies, progress=progress)
    if not questions:
        _show_counts(counts, made, level=level, json=json)
        return
    found = [] if made is None else [asking.answer(made, counts.path, each, confidence=level) for each in questions]
    _show_answers(counts.path, answers, {each.words: one for each, one in zip(questions, found)}, json=json)


def _show_counts(counts: RegionCounts, copies: Copies | None, *, level: float, json: bool) -> None:
    """The counts of a region; with copies also single intervals, and intervals that hold all counts at once."""
    columns = ["size", "count"]
    numbers: list[Iterable[float]] = [counts.size.tolist(), counts.count.tolist()]
    if copies is not None:
        found, region = count_intervals(copies, confidence=level), copies.release.hierarchy.find(counts.path)
        own = slice(*copies.release.counts.offsets[region : region + 2].tolist())
        _, low, high = count_band(copies, counts.path, confidence=level)
        columns += ["std error", "low", "high", "low of all at once", "high of all at once"]
        ends = (found.std_error[own], found.low[own], found.high[own], low[counts.size], high[counts.size])
        numbers += [each.tolist() for each in ends]
    rows: list[list[object]] = [list(row) for row in zip(*numbers)]
    if json:
        named = {} if copies is None else {"columns": columns}
        print_json({"region": counts.path, "groups": counts.n_groups, **named, "counts": rows})
    else:
        print_table(counts.path, columns, rows)


def _show_answers(path: str, answers: dict[str, float], intervals: dict[str, asking.Interval], *, json: bool) -> None:
    if json:
        extra = {"intervals": {question: vars(found) for question, found in intervals.items()}} if intervals else {}
        print_json({"region": path, **answers, **extra})
        return
    columns = ["question", "answer", *(["std error", "low", "high"] if intervals else [])]
    rows: list[list[object]] = [[question, answer] for question, answer in answers.items()]
    for row in rows if intervals else []:
        found = intervals[str(row[0])]
        row += [found.std_error, found.low, found.high]
    print_table(path, columns, rows)


def _refuse(folder: Path, kind: str, **questions: object) -> None:
    asked = [f"--{name.replace('_', '-')}" for name, value in questions.items() if value is not None]
    if asked:
        raise RequestError(f"{folder} holds {kind}, which cannot answer {', '.join(asked)}.")


def _questions(
    *, size: int | None, at_least: int | None, largest: int | None, quantile: float | None, mean: bool, total: bool
) -> list[asking.Question]:
    """What was asked."""
    return [
        *([] if size is None else [asking.groups_of_size(size)]),
        *([] if at_least is None else [asking.groups_of_at_least(at_least)]),
        *([] if largest is None else [asking.kth_largest(largest)]),
        *([] if quantile is None else [asking.quantile(quantile)]),
        *([asking.MEAN] if mean else []),
        *([asking.GROUPS, asking.ENTITIES] if total else []),
    ]


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
    outside: Annotated[str | None, typer.Option(help="Of a map: points outside its box: error, clip or drop.")] = None,
    json: AsJson = False,
) -> None:
    """Error against the truth, per level, or of a map by the size of boxes. For the owner: the figures are NOT private.

    Example: tallytree evaluate out people.parquet --group household --levels state,county
    Example: tallytree evaluate trips trips.parquet --outside clip
    """
    earlier = load(folder)
    if isinstance(earlier, SpatialRelease):
        _refuse(folder, "a map", group=group, levels=levels, size=size, quantity=quantity, groups=groups)
        evaluate_map(earlier, source, json=json, outside=outside, count=count, table=table, sql=sql)
        return
    if outside is not None:
        raise RequestError(f"{folder} holds no map; --outside goes with maps.")
    release = earlier if isinstance(earlier, Release) else load_release(folder)
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

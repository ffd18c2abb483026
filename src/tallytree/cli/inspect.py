"""``tallytree verify``, ``query`` and ``evaluate``: looking at a release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command, flag_of
from tallytree.cli.degrees import query_degrees
from tallytree.cli.histogram import query_histogram
from tallytree.cli.options import AsJson
from tallytree.cli.sources import Folder, Source
from tallytree.cli.spatial import evaluate_map, query_map
from tallytree.errors import RequestError
from tallytree.ingest.read import read
from tallytree.options.asking import EvaluateOptions, QueryOptions
from tallytree.options.base import Options
from tallytree.options.reading import ReadOptions
from tallytree.publish.intervals import Interval, copy_release, interval
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


@command(app)
def query(folder: Folder, asked: QueryOptions) -> None:
    """Answer questions about one region, a histogram, a map or a degree sequence; without a question, show its counts.

    Example: tallytree query out --region US/Georgia --at-least 7 --quantile 0.5
    Example: tallytree query ages --range 18:65 --range 0:18 --quantile 0.5
    """
    release, json = load(folder), asked.json
    if isinstance(release, RangeHistogram):
        _refuse(folder, "a histogram", asked, "region", "size", "at_least", "largest", "mean")
        query_histogram(release, folder, ranges=asked.ranges, quantile=asked.quantile, level=asked.level, json=json)
        return
    if isinstance(release, GridHistogram):
        raise RequestError(f"{folder} holds a grid; ask it in Python: tallytree.load(folder).box(low, high).")
    if isinstance(release, SpatialRelease):
        _refuse(folder, "a map", asked, "region", "size", "at_least", "largest", "quantile")
        query_map(release, folder, boxes=asked.ranges, json=json)
        return
    _refuse(folder, "no histogram", asked, "ranges")
    if isinstance(release, DegreeSequence):
        _refuse(folder, "a degree sequence", asked, "region", "quantile", "mean")
        query_degrees(release, folder, size=asked.size, at_least=asked.at_least, largest=asked.largest, json=json)
        return
    counts = release.region(asked.region if asked.region is not None else str(release.hierarchy.paths[0]))
    questions = _questions(asked)
    if not questions:
        _show_counts(counts, json=json)
        return
    answers = {question: ask(counts) for question, ask in questions.items()}
    if asked.copies == 0:
        _show_answers(counts.path, answers, {}, json=json)
        return
    with progress_bar() as progress:
        made = copy_release(release, copies=asked.copies, progress=progress)
    intervals = {
        question: interval(made, counts.path, ask, confidence=asked.level) for question, ask in questions.items()
    }
    _show_answers(counts.path, answers, intervals, json=json)


def _show_counts(counts: RegionCounts, *, json: bool) -> None:
    rows = [[int(size), int(count)] for size, count in zip(counts.size, counts.count)]
    if json:
        print_json({"region": counts.path, "groups": counts.n_groups, "counts": rows})
    else:
        print_table(counts.path, ["size", "count"], rows)


def _show_answers(path: str, answers: dict[str, float], intervals: dict[str, Interval], *, json: bool) -> None:
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


def _refuse(folder: Path, kind: str, options: Options, *names: str) -> None:
    """Refuse options that were given and mean nothing here."""
    given = [flag_of(options, name) for name in names if name in options.given()]
    if given:
        raise RequestError(f"{folder} holds {kind}, which cannot answer {', '.join(given)}.")


def _questions(asked: QueryOptions) -> dict[str, Callable[[RegionCounts], float]]:
    """What was asked, in words and as a function of a region's counts."""
    size, at_least, largest, quantile = asked.size, asked.at_least, asked.largest, asked.quantile
    questions: dict[str, Callable[[RegionCounts], float]] = {}
    if size is not None:
        questions[f"groups of size {size}"] = lambda counts: counts.of_size(size)
    if at_least is not None:
        questions[f"groups of at least {at_least}"] = lambda counts: counts.at_least(at_least)
    if largest is not None:
        questions[f"size of group {largest} from the largest"] = lambda counts: counts.kth_largest(largest)
    if quantile is not None:
        questions[f"quantile {quantile:g}"] = lambda counts: counts.quantile(quantile)
    if asked.mean:
        questions["mean size"] = lambda counts: counts.mean()
    return questions


@command(app)
def evaluate(folder: Folder, source: Source, data: ReadOptions, how: EvaluateOptions) -> None:
    """Error against the truth, per level, or of a map by the size of boxes. For the owner: the figures are NOT private.

    Example: tallytree evaluate out people.parquet --group household --levels state,county
    Example: tallytree evaluate trips trips.parquet --outside clip
    """
    earlier = load(folder)
    if isinstance(earlier, SpatialRelease):
        place = {"count": data.count, "table": data.table, "sql": data.sql}
        _refuse(folder, "a map", data, *(name for name in data.given() if name not in place))
        evaluate_map(earlier, source, json=how.json, outside=how.outside, **place)
        return
    if how.outside is not None:
        raise RequestError(f"{folder} holds no map; --outside goes with maps.")
    release = earlier if isinstance(earlier, Release) else load_release(folder)
    truth = read(source, data)
    if truth.hierarchy != release.hierarchy:
        raise RequestError(
            f"{source} does not have the regions of {folder}. Name the same levels and root as for the release."
        )
    result = evaluate_release(release, truth)
    if how.json:
        print_json(result.to_json())
        return
    say("NOT PRIVATE: these errors are computed from the confidential data. Do not publish them.")
    rows = [[level.name, level.regions, level.emd, level.l1, level.l2, level.count_error] for level in result.levels]
    print_table("Mean error per region", ["level", "regions", "EMD", "L1", "L2", "one count"], rows)

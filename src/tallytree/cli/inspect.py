"""``tallytree verify``, ``query`` and ``evaluate``: looking at a release."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

import typer

from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command, flag_of
from tallytree.cli.options import AsJson
from tallytree.cli.sources import Folder, Source, read_truth
from tallytree.cli.spatial import evaluate_map
from tallytree.errors import RequestError
from tallytree.kinds.verbs import ask, check_signature, kind_of, load, verify_privacy
from tallytree.kinds.verbs import evaluate as evaluate_release
from tallytree.kinds.verbs import verify as verify_release
from tallytree.model.part import Part
from tallytree.options.asking import EvaluateOptions, QueryOptions
from tallytree.options.reading import ReadOptions
from tallytree.released.checks import Verification
from tallytree.released.maps.release import SpatialRelease
from tallytree.released.opening import reading
from tallytree.released.questions import Question


@app.command()
def verify(
    folder: Folder,
    privacy: Annotated[
        bool, typer.Option("--privacy", help="Recompute the privacy loss from the manifest instead.")
    ] = False,
    public_key: Annotated[
        Path | None, typer.Option(help="The release must be signed with this key: an Ed25519 key, PEM.", metavar="FILE")
    ] = None,
    json: AsJson = False,
) -> None:
    """Check a release: checksums, integers, nonnegativity, group totals, and that children add up to parents.

    With --privacy: recompute the privacy loss from the measurements that the manifest records.

    Example: tallytree verify out
    Example: tallytree verify out --public-key office.pem.pub
    """
    if privacy:
        result = Verification((*verify_privacy(folder).checks, *check_signature(folder, public_key)))
    else:
        result = verify_release(folder, public_key=public_key)
    if json:
        print_json({"passed": result.passed, "checks": [vars(check) for check in result.checks]})
    else:
        for check in result.checks:
            say(f"{'ok    ' if check.passed else 'FAILED'}  {check.name}{': ' + check.detail if check.detail else ''}")
    if not result.passed:
        raise typer.Exit(CHECK_FAILED)


@command(app)
def query(folder: Folder, asked: QueryOptions) -> None:
    """Answer questions about a release: one region, ranges, boxes, degrees; without a question, show its counts.

    Example: tallytree query out --region US/Georgia --at-least 7 --quantile 0.5
    Example: tallytree query ages --range 18:65 --range 0:18 --quantile 0.5
    """
    question = Question(**{part.name: getattr(asked, part.name) for part in fields(Question)})
    release = load(folder)
    with reading(folder), progress_bar() as progress:
        reply = ask(release, question, progress=progress)
    if asked.json:
        print_json({release.kind: str(folder), **reply.facts})
        return
    print_table(reply.title, list(reply.columns), [list(row) for row in reply.rows])
    if reply.note:
        say(reply.note)


@command(app)
def evaluate(folder: Folder, source: Source, data: ReadOptions, how: EvaluateOptions) -> None:
    """Error against the truth, per level, or of a map by the size of boxes. For the owner: the figures are NOT private.

    Example: tallytree evaluate out people.parquet --group household --levels state,county
    Example: tallytree evaluate trips trips.parquet --outside clip
    """
    release = load(folder)
    if isinstance(release, SpatialRelease):
        place = {"count": data.count, "table": data.table, "sql": data.sql}
        beyond = [flag_of(data, name) for name in data.given() if name not in place]
        if beyond:
            raise RequestError(f"{folder} holds a map; {', '.join(beyond)} do not go with it.")
        evaluate_map(release, source, json=how.json, outside=how.outside, **place)
        return
    kind_of(release).verb("evaluate")
    if how.outside is not None:
        raise RequestError(f"{folder} holds no map; --outside goes with maps.")
    kept = release.manifest.get("where")
    truth = read_truth(source, data if kept is None else replace(data, where=Part(kept["column"], kept["value"])))
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

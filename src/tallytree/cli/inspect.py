"""``tallytree verify``, ``query`` and ``evaluate``: looking at a release."""

from __future__ import annotations

from dataclasses import fields

import typer

from tallytree.cli.app import CHECK_FAILED, app, print_json, print_table, progress_bar, say
from tallytree.cli.commands import command, flag_of
from tallytree.cli.sources import Folder, SourceOrConfig
from tallytree.cli.truth import truth_of
from tallytree.errors import RequestError
from tallytree.options.asking import EvaluateOptions, QueryOptions
from tallytree.options.finishing import VerifyOptions


@command(app)
def verify(folder: Folder, how: VerifyOptions) -> None:
    """Check a release: checksums, integers, nonnegativity, group totals, and that children add up
    to parents.

    With --privacy: recompute the privacy loss from the measurements that the manifest records.

    Example: tallytree verify out
    Example: tallytree verify out --public-key office.pem.pub
    """
    from tallytree.kinds.verbs import check_signature, verify_privacy
    from tallytree.kinds.verbs import verify as verify_release
    from tallytree.releases.checks import Verification

    if how.privacy:
        result = Verification(
            (*verify_privacy(folder).checks, *check_signature(folder, how.public_key, how.name))
        )
    else:
        result = verify_release(folder, public_key=how.public_key, name=how.name)
    if how.json:
        checks = [vars(check) for check in result.checks]
        print_json({"passed": result.passed, "checks": checks, "notes": list(result.notes)})
    else:
        for check in result.checks:
            say(
                f"{'ok    ' if check.passed else 'FAILED'}  "
                f"{check.name}{': ' + check.detail if check.detail else ''}"
            )
        for note in result.notes if result.passed else ():
            say(f"note    {note}")
    if not result.passed:
        raise typer.Exit(CHECK_FAILED)


@command(app)
def query(folder: Folder, asked: QueryOptions) -> None:
    """Answer questions about a release: one region, ranges, boxes, degrees; without a question,
    show its counts.

    Example: tallytree query out --region US/Georgia --at-least 7 --quantile 0.5
    Example: tallytree query ages --range 18:65 --range 0:18 --quantile 0.5
    """
    from tallytree.kinds.verbs import ask, load
    from tallytree.releases.opening import reading
    from tallytree.releases.questions import Question

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
def evaluate(folder: Folder, source: SourceOrConfig, how: EvaluateOptions) -> None:
    """Errors against the truth, NOT private: of groups by level and size, of ranges and boxes by
    length and area.

    Example: tallytree evaluate out request.toml
    Example: tallytree evaluate out people.parquet --group household --levels state,county
    Example: tallytree evaluate ages people.parquet --column age --range 18:65
    Example: tallytree evaluate trips trips.parquet --outside clip
    """
    from tallytree.kinds.verbs import evaluate as evaluate_release
    from tallytree.kinds.verbs import kind_of, load

    release = load(folder)
    kind = kind_of(release)
    kind.verb("evaluate")
    source, request = truth_of(source, kind) if source.endswith(".toml") else (source, {})
    given = {name: value for name, value in how.given().items() if name != "json"}
    beyond = [flag_of(how, name) for name in given if name not in kind.evaluates_with]
    if beyond:
        raise RequestError(f"{folder} holds {kind.title}; {', '.join(beyond)} do not go with it.")
    result = evaluate_release(release, source, **{**request, **given})
    if how.json:
        print_json(result.to_json())
        return
    say("NOT PRIVATE: these errors are computed from the confidential data. Do not publish them.")
    for title, head, rows in result.tables():
        print_table(title, head, rows)

"""Releasing a stream: the counts so far, again and again as steps pass, for one budget in all.

A stream lives in a folder. Each run reads its source again, since every row is a sum over the exact past, measures the rows
of the steps that are new, and replaces the folder as a whole. Neither exact counts nor keys are ever written.

Why runs together cost what one run costs. Every row is drawn once: a run measures the rows of steps that no run before it
has released, and those released are copied. Rows of one run have noise from one key, each at a place of its own, rows of
different runs from keys that are drawn independently; either way the noise of a row is independent of that of all others
and has the law that the plan gives it. Its exact part is that of the first run that could measure it, as long as the past
does not change. So the rows of any number of runs are distributed as those of one run over the same steps, and one run is
what was planned and paid for. That later arrivals may depend on what was published before changes nothing: a row depends
on no later arrival (Denisov, McMahan, Rush, Smith and Thakurta 2022 for Gaussian noise; adaptive composition for trees).

A run that dies before its folder is in place has published nothing, so the next one may draw those rows anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tallytree.errors import InputError, RequestError, StorageError
from tallytree.ingest.binning import check_counts
from tallytree.ingest.grids import UNIT_NEEDS_TABLE, WHERE_NEEDS_TABLE
from tallytree.ingest.steps import read_steps
from tallytree.measure.stream import measure_arrivals
from tallytree.model.confidential_stream import ConfidentialArrivals
from tallytree.model.part import Part, part_from
from tallytree.model.steps import steps_from
from tallytree.model.unit import ENTITY, Unit
from tallytree.planning.streams import StreamStrategy, plan_stream
from tallytree.privacy.budget import Definition
from tallytree.privacy.stated_budget import stated_budget
from tallytree.publish.payment import Payment, paid_noise, payment_from, report_release
from tallytree.ranges.streams import estimate_stream
from tallytree.released.opening import open_folder
from tallytree.released.stream.release import StreamRelease, load_stream
from tallytree.released.stream.manifest import KIND, same_stream, steps_of, stream_manifest, stream_plan
from tallytree.storage.folder import Manifest, write_folder
from tallytree.storage.rename import move_new
from tallytree.storage.work import BUILT, REPLACED, Work, claim


def stream(
    source: Any = None,
    *,
    horizon: int | None,
    until: object = None,
    epsilon: object = None,
    rho: object = None,
    definition: Definition = "pure",
    counts: Any = None,
    column: str | None = None,
    start: object = None,
    every: str | None = None,
    count: str | None = None,
    table: str | None = None,
    sql: str | None = None,
    where: str | tuple[str, str] | Part | None = None,
    strategy: StreamStrategy | Literal["auto"] = "auto",
    branching: int | None = None,
    inference: bool = True,
    unit: str = ENTITY,
    contributions: int = 1,
    entity: str = "row",
    out: str | Path | None = None,
    insecure_seed: int | None = None,
    ledger: str | Payment | None = None,
    dataset: str | None = None,
) -> StreamRelease:
    """Release how many entities came so far, after every step up to ``until``; go on where the folder ``out`` ends.

    The past must not change between two runs: a row that moves from one step to another is not covered by the guarantee. Count
    by the time of arrival, which never changes, rather than by a date that may be corrected.

    Parameters
    ----------
    source, count, table, sql, where
        A table, as for :func:`tallytree.histogram`; all of it, at every run.
    column
        When a row came: the number of its step, or a date or time.
    start, every
        The number of the first step (1 by default). For dates: ``every`` is ``"day"``, ``"week"`` or ``"month"``, and
        ``start`` the date on which the first one begins.
    until
        The last step that is over, public: its number, or its last day. Later rows are not counted yet.
    counts
        Instead of a table: arrivals per step, of all steps so far.
    horizon
        Largest number of steps, public; None where it is not known. The error grows with its logarithm only.
    epsilon, rho, definition
        The privacy loss of the whole stream, however many runs it takes.
    strategy, branching, inference
        As for :class:`tallytree.StreamCounter`.
    unit, contributions, entity
        As for :func:`tallytree.histogram`; of a unit's rows the first ``contributions`` in time count.
    out
        The folder in which the stream lives. If it holds a stream already, that one goes on: the request must be the same,
        what was released stays as it is, and nothing is paid. Without it the release is made in memory and cannot go on.
    insecure_seed
        For tests and experiments only: repeatable noise. The release is marked "not private".
    ledger, dataset
        Budget account that pays for the whole stream at its first run; see :func:`tallytree.release`.

    Examples
    --------
    >>> visits = stream(counts=[31, 35, 62], horizon=365, epsilon=1, insecure_seed=1)
    >>> visits.n_steps, visits.total().estimate == visits.counts[-1]
    (3, True)
    """
    plan = plan_stream(
        stated_budget(epsilon, rho, definition),
        horizon,
        strategy=strategy,
        contributions=contributions,
        branching=branching,
        inference=inference,
    )
    steps, part, payment = steps_from(start, every), part_from(where), payment_from(ledger, dataset)
    if (source is None) == (counts is None):
        raise RequestError("Give either a table or counts=, one of the two.")
    if counts is not None:
        _refuse_table_options(column, count, table, sql, until, unit=unit, where=part)
        arrivals = ConfidentialArrivals(_given(counts), unit=Unit(entity, "", contributions))
    else:
        if column is None or until is None:
            raise RequestError(
                "A stream of a table needs column=, when a row came, and until=, the last step that is over. It is public, so "
                "it is not taken from the data."
            )
        arrivals = read_steps(
            source,
            column,
            steps,
            _checked_number(steps.until(until), horizon),
            count=count,
            table=table,
            sql=sql,
            unit=unit,
            contributions=contributions,
            entity=entity,
            where=part,
        )
    manifest = stream_manifest(
        plan,
        steps,
        _checked_number(arrivals.n_steps, horizon),
        arrivals.unit,
        note=arrivals.note,
        part=arrivals.part,
        secure=insecure_seed is None,
    )
    if out is None:
        return _first(arrivals, manifest, insecure_seed, payment)
    with _claimed(out) as work:
        return _in_folder(work, arrivals, manifest, insecure_seed, payment)


def _in_folder(
    work: Work, arrivals: ConfidentialArrivals, manifest: Manifest, insecure_seed: int | None, payment: Payment | None
) -> StreamRelease:
    """Start the stream of a folder, or go on with it."""
    target = work.target
    if not target.exists() or not any(target.iterdir()):
        made = _first(arrivals, manifest, insecure_seed, payment)
        _write(work, made)
        if payment is not None:
            report_release(payment, target)
        return made
    earlier = _earlier(target, manifest, payment)
    if payment is not None:
        report_release(payment, target)  # in case the run that paid died before it could
    if arrivals.n_steps < earlier.n_steps:
        last = earlier.steps.name(earlier.n_steps - 1)
        raise RequestError(f"{target} is released up to step {last} already; name a step that is not before it.")
    if arrivals.n_steps == earlier.n_steps:
        return earlier
    made = _next(arrivals, earlier, manifest, insecure_seed)
    _write(work, made)
    return made


def _first(
    arrivals: ConfidentialArrivals, manifest: Manifest, insecure_seed: int | None, payment: Payment | None
) -> StreamRelease:
    """Pay for a stream and release the steps that are over."""
    plan, (steps, n_steps) = stream_plan(manifest), steps_of(manifest)
    with paid_noise(payment, manifest, insecure_seed) as (paid, key):
        rows = measure_arrivals(plan, arrivals, key, first=0)
    found = estimate_stream(plan, rows, n_steps)
    return StreamRelease(steps, plan, found.estimate, np.sqrt(found.variance), paid, rows)


def _next(
    arrivals: ConfidentialArrivals, earlier: StreamRelease, manifest: Manifest, insecure_seed: int | None
) -> StreamRelease:
    """Release the steps that are new; those of the earlier release stay as they are, to the last bit."""
    assert earlier.noisy is not None
    first = earlier.n_steps
    kept = {name: manifest[name] for name in ("n_steps", "versions")}
    with paid_noise(None, {**earlier.manifest, **kept}, insecure_seed) as (said, key):
        rows = np.concatenate([earlier.noisy, measure_arrivals(earlier.plan, arrivals, key, first=first)])
    found = estimate_stream(earlier.plan, rows, arrivals.n_steps)
    return replace(
        earlier,
        estimates=np.concatenate([earlier.estimates, found.estimate[first:]]),
        std_errors=np.concatenate([earlier.std_errors, np.sqrt(found.variance[first:])]),
        manifest=said,
        noisy=rows,
    )


def _earlier(target: Path, manifest: Manifest, payment: Payment | None) -> StreamRelease:
    """The stream of a folder that is whole, is the one that is asked for and can go on."""
    folder = open_folder(target)
    if folder.manifest["kind"] != KIND:
        raise StorageError(f"{target} holds a release of another kind. Choose another folder.")
    changed = folder.changed_files()
    if changed:
        raise StorageError(f"{target} was changed, and a stream goes on only from what was released: {changed[0]}")
    different = same_stream(folder.manifest, manifest)
    if different:
        raise RequestError(
            f"{target} holds another stream: {', '.join(different)} differ. A stream keeps its request from the first step on; "
            "start another one in another folder."
        )
    receipt = folder.manifest["privacy"].get("ledger")
    if payment is not None and (receipt is None or receipt["dataset"] != payment.dataset):
        paid = "without a ledger" if receipt is None else f"from the account {receipt['dataset']!r}"
        raise RequestError(f"{target} was started {paid}; it is paid for once, at its first run.")
    earlier = load_stream(folder)
    earlier.verify().raise_if_failed()
    if earlier.noisy is None:
        raise StorageError(f"{target} was saved without its noisy rows, and cannot go on.")
    return earlier


def _write(work: Work, made: StreamRelease) -> None:
    made.verify().raise_if_failed()
    built = work.path / BUILT
    shutil.rmtree(built, ignore_errors=True)  # of a run that died
    write_folder(built, made.tables(noisy=True), made.saved_manifest())
    try:
        work.put_into_place(built)
    except OSError as error:
        raise StorageError(f"Writing {work.target} failed: {error.strerror or error}. Nothing was changed.") from error


@contextmanager
def _claimed(out: str | Path) -> Iterator[Work]:
    """The folder of a stream for one process alone."""
    work = claim(out, overwrite=True)
    try:
        _restore(work)
        yield work
    finally:
        try:
            _restore(work)
        except OSError:
            work.leave()  # what was set aside stays for the next run
            raise
        work.release()


def _restore(work: Work) -> None:
    """Bring back a stream that was set aside by a run that died before it put the longer one into its place."""
    aside = work.path / REPLACED
    if aside.exists() and not work.target.exists():
        move_new(aside, work.target)


def _checked_number(n_steps: int, horizon: int | None) -> int:
    if n_steps < 1:
        raise RequestError("No step is over yet; until lies before the end of the first one.")
    if horizon is not None and n_steps > horizon:
        raise RequestError(f"The stream has {n_steps:,} steps, more than its horizon of {horizon:,}.")
    return n_steps


def _given(counts: Any) -> Any:
    arrivals = check_counts(counts)
    if arrivals.ndim != 1:
        raise InputError(f"Arrivals have one dimension, one number per step; got {arrivals.ndim}.")
    return arrivals


def _refuse_table_options(*options: object, unit: str, where: Part | None) -> None:
    if any(option is not None for option in options):
        raise RequestError("column=, count=, table=, sql= and until= go with a table; counts= are of all steps so far.")
    if unit != ENTITY:
        raise RequestError(UNIT_NEEDS_TABLE)
    if where is not None:
        raise RequestError(WHERE_NEEDS_TABLE)

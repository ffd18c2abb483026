"""Releasing a stream: the counts so far, again and again as steps pass, for one budget in all.

A stream lives in a folder. Each run reads its source again, since every row is a sum over the exact
past, measures the rows of the steps that are new, and replaces the folder as a whole. Neither exact
counts nor keys are ever written.

Why runs together cost what one run costs. Every row is drawn once: a run measures the rows of steps
that no run before it has released, and those released are copied. Rows of one run have noise from
one key, each at a place of its own, rows of different runs from keys that are drawn independently;
either way the noise of a row is independent of that of all others and has the law that the plan
gives it. (What rows of a square root share is not noise but the past: noise that is added to one of
them is in every later estimate, which is post-processing.) The exact part of a row is that of the
first run that could measure it, as long as the past does not change. So the rows of any number of
runs are distributed as those of one run over the same steps, and one run is what was planned and
paid for. That later arrivals may depend on what was published before changes nothing: a row depends
on no later arrival (Denisov, McMahan, Rush, Smith and Thakurta 2022 for Gaussian noise; adaptive
composition for trees).

A run that dies has kept the rows it drew (:mod:`tallytree.privacy.journal`); the next one finishes
it with them before it goes on.

A folder that is put back from a copy would draw published steps again. Where a ledger paid, it
notes each step that is left (:mod:`tallytree.ledger.advance`) and refuses a folder that is behind;
without one the statement says what is assumed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from tallytree.errors import InputError, RequestError, StorageError
from tallytree.ingest.binning import check_counts
from tallytree.ingest.grids import UNIT_NEEDS_TABLE, WHERE_NEEDS_TABLE
from tallytree.ingest.steps import read_steps
from tallytree.ledger.payment import Payment, payment_from, report_release
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Altered
from tallytree.model.confidential_stream import ConfidentialArrivals
from tallytree.model.place import ANYWHERE
from tallytree.model.steps import Steps, steps_from
from tallytree.model.unit import ENTITY, unit_from
from tallytree.options.groups import rows_to_read
from tallytree.options.spelled import spelled_alone
from tallytree.options.stream import StreamOptions
from tallytree.privacy.fingerprint import public_digest
from tallytree.releases.keeping import Keeping, finish, kept_on_failure, paid_noise
from tallytree.releases.opening import open_folder
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.releases.reading import refuse_measured, refuse_measured_at
from tallytree.storage.folder import Folder, Manifest
from tallytree.storage.work import Work, claim
from tallytree.streams.estimate import estimate_stream
from tallytree.streams.manifest import KIND, same_stream, steps_of, stream_manifest, stream_plan
from tallytree.streams.measure import measure_arrivals
from tallytree.streams.plan import planned_stream
from tallytree.streams.release import StreamRelease, load_stream, noisy_of_folder, noisy_table

if TYPE_CHECKING:
    from tallytree.ledger.advance import Advance

# In what a run has measured: the steps that were released before it, as they were.
_RELEASED = "released.parquet"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StreamKeywords(StreamOptions):
    """The keywords of :func:`stream`: its options, and data in another form."""

    counts: Any = None


@spelled_alone(StreamKeywords)
def stream(source: Any, options: StreamOptions, *, counts: Any = None) -> StreamRelease:
    """Release how many entities came so far, after every step up to ``until``; go on where the
    folder ``out`` ends.

    The past must not change between two runs: a row that moves from one step to another is not
    covered by the guarantee. Count by the time of arrival, which never changes, rather than by a
    date that may be corrected.

    Parameters
    ----------
    source
        A table of any form that :func:`tallytree.read` takes; all of it, at every run.
    options
        What the steps are and how to count; may be spelled as keywords, ``stream(source, epsilon=1,
        …)``. The privacy loss is that of the whole stream, however many runs it takes, and is paid
        at the first one.
    counts
        Instead of a table: arrivals per step, of all steps so far.

    Examples
    --------
    >>> visits = stream(counts=[31, 35, 62], horizon=365, epsilon=1, insecure_seed=1)
    >>> visits.n_steps, bool(visits.total().estimate == visits.counts[-1])
    (3, True)
    """
    plan = planned_stream(options.loss(), options, contributions=options.contributions)
    if options.out is not None:
        refuse_measured_at(options.out)
    steps, payment = steps_from(options.start, options.every), payment_from(options)
    arrivals = _confidential(source, counts, steps, options)
    seed = options.insecure_seed
    manifest = stream_manifest(
        plan,
        steps,
        _checked_number(arrivals.n_steps, options.horizon),
        arrivals.unit,
        note=arrivals.note,
        part=arrivals.part,
        secure=seed is None,
        noted=payment is not None,
    )
    tell = arrivals.altered if options.tell_owner else None
    if options.out is None:
        return _measured(arrivals, manifest, None, seed, Keeping(payment), tell)
    while True:
        work = claim(options.out, overwrite=True)
        with kept_on_failure(work):
            made = _run(work, arrivals, manifest, seed, payment, tell)
        if made.n_steps == arrivals.n_steps:
            return made


def _run(
    work: Work,
    arrivals: ConfidentialArrivals,
    manifest: Manifest,
    insecure_seed: int | None,
    payment: Payment | None,
    tell: Altered | None,
) -> StreamRelease:
    """Start the stream of a folder or go on with it: up to where a run that died was going, or else
    to the last step.
    """
    refuse_measured(work)
    earlier = _earlier(work.target, manifest, payment)
    noted = work.note()
    n_steps, done = (
        noted.get("n_steps", arrivals.n_steps),
        0 if earlier is None else earlier.n_steps,
    )
    for reached, told in ((done, "is released"), (n_steps, "is being released")):
        if arrivals.n_steps < reached:
            last = steps_of(manifest)[0].name(reached - 1)
            raise RequestError(
                f"{work.target} {told} up to step {last} already; name a step that is not before "
                "it."
            )
    if earlier is None or n_steps > done:
        asked = {**(manifest if earlier is None else earlier.manifest), "n_steps": n_steps}
        asked["versions"] = manifest["versions"]
        keeping = Keeping(payment, work)
        if earlier is not None and payment is not None:
            advance = _going_on(earlier, n_steps, payment, noted.get("run"))
            paid = replace(payment, key=str(advance.receipt["key"]))
            keeping = Keeping(paid, work, advance=advance)
        made = _measured(arrivals.up_to(n_steps), asked, earlier, insecure_seed, keeping, tell)
        finish(work, made, payment=payment)
        return made
    if payment is not None:
        report_release(payment, work.target)  # in case the run that paid died before it could
    work.release()
    return earlier


def _measured(
    arrivals: ConfidentialArrivals,
    manifest: Manifest,
    earlier: StreamRelease | None,
    insecure_seed: int | None,
    keeping: Keeping,
    tell: Altered | None,
) -> StreamRelease:
    """Pay for a stream, unless it is under way, and release the steps that are new."""
    plan, n_steps = stream_plan(manifest), arrivals.n_steps
    first, known = (
        (0, np.zeros(0, dtype=np.int64)) if earlier is None else (earlier.n_steps, earlier.noisy)
    )
    assert known is not None
    with paid_noise(keeping, manifest, insecure_seed, read=arrivals, tell=tell) as paid:
        rows = np.concatenate([known, measure_arrivals(plan, arrivals, paid.stream, first=first)])
        tables = {"noisy.parquet": noisy_table(plan, n_steps, rows)}
        if earlier is not None:
            tables[_RELEASED] = earlier.table()
        paid.measured(paid.manifest, tables)
    return stream_from_noisy(rows, paid.manifest, tables.get(_RELEASED))


def _going_on(earlier: StreamRelease, n_steps: int, payment: Payment, run: str | None) -> Advance:
    """What the ledger will note before further steps are drawn; refuses a folder that is behind."""
    from tallytree.ledger.advance import Advance, refuse_behind  # loads SQLAlchemy

    assert earlier.noisy is not None
    advance = Advance(
        earlier.n_steps,
        n_steps,
        run or uuid4().hex,
        public_digest([earlier.noisy]),
        earlier.manifest["privacy"]["ledger"],
    )
    refuse_behind(payment.ledger, advance)
    return advance


def stream_from_noisy(
    rows: IntArray, manifest: Manifest, released: pa.Table | None = None
) -> StreamRelease:
    """The stream that follows from noisy rows: post-processing only. Steps of ``released`` stay as
    they are, bit by bit.
    """
    plan, (steps, n_steps) = stream_plan(manifest), steps_of(manifest)
    found = estimate_stream(plan, rows, n_steps)
    estimates, errors = found.estimate, np.sqrt(found.variance)
    if released is not None:
        for numbers, name in ((estimates, "estimate"), (errors, "std_error")):
            numbers[: released.num_rows] = released[name].to_numpy()
    return StreamRelease(steps, plan, estimates, errors, manifest, rows)


def estimate_again(folder: Folder) -> StreamRelease:
    """A stream estimated again from the noisy rows of a folder."""
    rows = noisy_of_folder(folder)
    if rows is None:
        raise RequestError(NO_MEASUREMENTS)
    return stream_from_noisy(
        rows, folder.manifest, folder.table(_RELEASED) if folder.has(_RELEASED) else None
    )


def _earlier(target: Path, manifest: Manifest, payment: Payment | None) -> StreamRelease | None:
    """The stream of a folder that is whole, is the one that is asked for and can go on; None where
    there is none yet.
    """
    if not target.exists() or not any(target.iterdir()):
        return None
    folder = open_folder(target)
    if folder.manifest["kind"] != KIND:
        raise StorageError(f"{target} holds a release of another kind. Choose another folder.")
    changed = folder.changed_files()
    if changed:
        raise StorageError(
            f"{target} was changed, and a stream goes on only from what was released: {changed[0]}"
        )
    different = same_stream(folder.manifest, manifest)
    if different:
        raise RequestError(
            f"{target} holds another stream: {', '.join(different)} differ. A stream keeps its "
            "request from the first step on; "
            "start another one in another folder."
        )
    if "estimated_from" in folder.manifest:
        raise RequestError(
            f"{target} was estimated again from another folder; the stream goes on in that one."
        )
    receipt = folder.manifest["privacy"].get("ledger")
    dataset = None if payment is None else payment.dataset
    if dataset != (None if receipt is None else receipt["dataset"]):
        paid = "without a ledger" if receipt is None else f"from the account {receipt['dataset']!r}"
        again = "leave --ledger out" if receipt is None else "name that account and its ledger"
        raise RequestError(
            f"{target} was started {paid}; it is paid for once, at its first run, and every later "
            f"one is noted where it was paid: {again}."
        )
    earlier = load_stream(folder)
    earlier.verify().raise_if_failed()
    if earlier.noisy is None:
        raise StorageError(f"{target} was saved without its noisy rows, and cannot go on.")
    return earlier


def _confidential(
    source: Any, counts: Any, steps: Steps, options: StreamOptions
) -> ConfidentialArrivals:
    """The exact arrivals per step, of a table or as they were given."""
    if (source is None) == (counts is None):
        raise RequestError("Give either a table or counts=, one of the two.")
    part = rows_to_read(options.where, options)
    if source is not None:
        if options.column is None or options.until is None:
            raise RequestError(
                "A stream of a table needs column=, when a row came, and until=, the last step "
                "that is over. It is public, so "
                "it is not taken from the data."
            )
        return read_steps(
            source,
            options.column,
            steps,
            _checked_number(steps.until(options.until), options.horizon),
            count=options.count,
            **asdict(options.place()),
            unit=options.unit,
            contributions=options.contributions,
            min_gap=options.min_gap,
            entity=options.entity,
            where=part,
        )
    if (
        any(getattr(options, name) is not None for name in ("column", "count", "until"))
        or options.place() != ANYWHERE
    ):
        raise RequestError(
            "column=, count=, table=, sql=, encoding= and until= go with a table; counts= are of "
            "all steps so far."
        )
    if options.unit != ENTITY:
        raise RequestError(UNIT_NEEDS_TABLE)
    if part is not None:
        raise RequestError(WHERE_NEEDS_TABLE)
    arrivals = check_counts(counts)
    if arrivals.ndim != 1:
        raise InputError(f"Arrivals have one dimension, one number per step; got {arrivals.ndim}.")
    unit = unit_from(
        ENTITY, options.entity, options.contributions, counted=True, min_gap=options.min_gap
    )
    return ConfidentialArrivals(arrivals, unit=unit)


def _checked_number(n_steps: int, horizon: int | None) -> int:
    if n_steps < 1:
        raise RequestError("No step is over yet; until lies before the end of the first one.")
    if horizon is not None and n_steps > horizon:
        raise RequestError(
            f"The stream has {n_steps:,} steps, more than its horizon of {horizon:,}."
        )
    return n_steps

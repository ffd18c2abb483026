"""What one can do with a release of any kind."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, overload

from tallytree.errors import (
    PaidNotFinishedError,
    RequestError,
    StorageError,
    TallytreeError,
    VerificationError,
)
from tallytree.kinds.table import KINDS, kind_named
from tallytree.model.confidential import AssumedCounts, Confidential
from tallytree.options.choices import MapMethod
from tallytree.options.exporting import ExportOptions, MicrodataOptions
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.spelled import spelled
from tallytree.privacy.budget import Exact
from tallytree.releases.checks import Check, Verification
from tallytree.releases.kind import Kind, No
from tallytree.releases.opening import open_folder, reading
from tallytree.releases.progress import Progress, silent
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import CARD, CARD_TEXT, CARD_YAML, MANIFEST, Folder
from tallytree.storage.work import ANSWERS, MEASURED, Work, reopen, reopen_any
from tallytree.version import library_versions

if TYPE_CHECKING:
    from tallytree.boxes.release import SpatialRelease
    from tallytree.group_sizes.accuracy import Prediction
    from tallytree.group_sizes.release.release import Release
    from tallytree.maps.accuracy import MapPrediction

Keywords = ParamSpec("Keywords")

UNSIGNED = (
    "It is not signed: that its parts fit together does not say who made it. For that a signature "
    "vouches "
    "(tallytree sign), or the ledger that paid (tallytree ledger verify --release)."
)


def load(path: str | Path) -> Any:
    """Load a release of any kind: group sizes, a histogram, a degree sequence, a map, a stream.

    Examples
    --------
    >>> tt.load("out").table().equals(release.table())
    True
    """
    folder = open_folder(path)
    with reading(path):
        return kind_named(folder.manifest["kind"], path).load(folder)


def verify(
    path: str | Path, *, public_key: str | Path | None = None, name: str | None = None
) -> Verification:
    """Check a release on disk without trusting it: manifest and checksums first, then what its
    tables promise.

    Parameters
    ----------
    public_key
        File of an Ed25519 key in PEM format: the release must be signed by its owner. Without it a
        signature is only compared with the files that it covers.
    name
        The name or the address that it must have been signed under, so that no other release of
        the same owner passes for it.

    Examples
    --------
    >>> tt.verify("out").passed
    True
    """
    signed, found = check_signature(path, public_key, name), _verified(path)
    return Verification((*found.checks, *signed), (*found.notes, *(() if signed else (UNSIGNED,))))


def check_signature(
    path: str | Path, public_key: str | Path | None, name: str | None = None
) -> tuple[Check, ...]:
    """Whether the signature of a release holds; nothing to check where there is none, and neither a
    key nor a name is asked for.
    """
    from tallytree.ledger.signature import is_signed_folder, signature_problems, signed_as

    if public_key is None and name is None and not is_signed_folder(path):
        return ()
    wrong = signature_problems(path, public_key, name=name)
    what = (
        "the signature is of these files"
        if public_key is None
        else f"signed with the key of {public_key}"
    )
    said, address = signed_as(path)
    under = f" as {said!r}" + (f", for {address!r}" if address else "") if said else ""
    return (Check(what + under, not wrong, " ".join(wrong)),)


def sign(
    path: str | Path,
    private_key: str | Path,
    *,
    password: bytes | None = None,
    name: str = "",
    address: str = "",
) -> Path:
    """Sign a release on disk, which must verify: ``manifest.sig`` in its folder. Write its report
    first, it is signed too.

    Parameters
    ----------
    private_key
        File of an Ed25519 key in PEM format, as ``tallytree sign --new-key`` or OpenSSL makes it.
    password
        That protects the key.
    name, address
        What the release is called, the name of its folder where left out, and where readers find
        it. Both are signed, so that nobody can pass off another of your releases as this one.

    Examples
    --------
    >>> from tallytree.ledger.signing import new_key_pair
    >>> public = new_key_pair("office.pem")
    >>> signature = tt.sign("out", "office.pem")
    >>> tt.verify("out", public_key=public).passed
    True
    """
    from tallytree.ledger.signature import write_signature

    _verified(path).raise_if_failed()
    return write_signature(path, private_key, password, name=name, address=address)


def _verified(path: str | Path) -> Verification:
    """Everything about a release on disk but its signature."""
    from tallytree.releases.privacy_checks import check_claims
    from tallytree.releases.rewriting import told_once

    folder = open_folder(path)
    kind = kind_named(folder.manifest["kind"], path)
    changed = _problems(path, folder.changed_files)
    files = Check("files match their checksums", not changed, " ".join(changed))
    if changed:
        return Verification((files,))
    try:
        with reading(path):
            found = kind.load(folder).verify()
            checks = (
                files,
                check_claims(folder),
                *kind.check_privacy(folder),
                *found.checks,
                *_check_card(folder),
            )
            once = told_once({check.name: check for check in checks}.values())
            return Verification(once, found.notes)
    except TallytreeError as error:
        return Verification((files, Check("tables can be read", False, str(error))))


def _check_card(folder: Folder) -> tuple[Check, ...]:
    """Whether the card of a folder is whole and says what the manifest says; nothing to check where
    there is none.
    """
    if not any((folder.path / name).exists() for name in (CARD, CARD_TEXT, CARD_YAML)):
        return ()
    from tallytree.releases.card import card_problems

    wrong = card_problems(folder.path, folder.manifest)
    return (Check("the card says what the manifest says", not wrong, " ".join(wrong)),)


def _problems(path: str | Path, look: Callable[[], list[str]]) -> list[str]:
    """What a look at a folder finds wrong; that it cannot be looked at is one thing more."""
    try:
        with reading(path):
            return look()
    except TallytreeError as error:
        return [str(error)]


def verify_privacy(path: str | Path) -> Verification:
    """Recompute the privacy loss of a release on disk from its manifest, and compare it with what
    is stated.
    """
    from tallytree.releases.privacy_checks import check_claims, check_secure
    from tallytree.releases.rewriting import told_once

    folder = open_folder(path)
    kind = kind_named(folder.manifest["kind"], path)
    name = "the privacy record can be read"
    try:
        with reading(path):
            checks = (check_claims(folder), *kind.check_privacy(folder), check_secure(folder))
            return Verification(told_once((Check(name, True), *checks)))
    except TallytreeError as error:
        return Verification((Check(name, False, str(error)),))


def kind_of(release: Published) -> Kind:
    """The kind of a release that is in memory."""
    if not hasattr(release, "kind"):
        raise RequestError(
            f"A release is expected, such as tallytree.load gives; got {type(release).__name__}."
        )
    return kind_named(release.kind, "This object")


def ask(
    release: Published,
    question: Question | None = None,
    *,
    progress: Progress = silent,
    **parts: Any,
) -> Reply:
    """Ask a release of any kind; a question may be given by its parts, as ``at_least=7,
    region="US/Georgia"``.

    Examples
    --------
    >>> reply = tt.ask(release, region="US/Georgia", at_least=2)
    >>> reply.facts["groups of at least 2"] == release.region("US/Georgia").at_least(2)
    True
    """
    try:
        asked = Question(**parts) if question is None else question
    except TypeError:
        known = ", ".join(Question.__dataclass_fields__)
        raise RequestError(f"A question has the parts {known}; got {', '.join(parts)}.") from None
    return kind_of(release).ask(release, asked, progress)


def evaluate(release: Published, truth: Any, **how: Any) -> Any:
    """Compare a release with the exact data. The result is NOT private.

    Parameters
    ----------
    release
        A release of any kind.
    truth
        For group sizes what :func:`tallytree.read` gave, or a table; for a histogram its values, a
        table with ``column``, or with ``counts=True`` counts per bin; for a histogram of several
        columns its counts per cell; for a map its points, in any form that
        :func:`tallytree.spatial` takes; for degrees what :func:`tallytree.degrees` takes.
    how
        How the data are read, as where they were released: ``column``, ``count``, ``outside``,
        ``table``, ``sql``, ``edges`` … Bins, columns, box and resolution are those of the release.
        Of histograms and maps ``ranges``, to compare these ranges or boxes instead of ranges and
        boxes of all sizes; and ``threshold``, θ of relative errors.

    Examples
    --------
    >>> [level.name for level in tt.evaluate(release, counts).levels]
    ['US', 'state']
    """
    kind = kind_of(release)
    beyond = sorted(how.keys() - kind.evaluates_with)
    if beyond and not isinstance(kind.evaluate, No):
        known = ", ".join(sorted(kind.evaluates_with))
        raise RequestError(f"To compare {kind.title}, say {known}; got {', '.join(beyond)}.")
    return kind.verb("evaluate")(release, truth, **how)


def re_estimate(path: str | Path, **choices: Any) -> Any:
    """A saved release estimated again from its raw measurements, at no privacy cost.

    Parameters
    ----------
    choices
        Of group sizes by ``matching`` or ``bottom-up``: another ``norm`` or ``merge``. What was
        measured cannot change.

    Notes
    -----
    Choosing among re-estimates by looking at the truth is a leak: decide which one to publish
    without it.

    Examples
    --------
    >>> tt.re_estimate("out").table().equals(release.table())
    True
    """
    folder = open_folder(path)
    kind = kind_named(folder.manifest["kind"], path)
    estimate = kind.verb("estimate")
    unknown = [name for name in choices if name not in signature(estimate).parameters]
    if unknown:
        raise RequestError(
            f"{kind.title.capitalize()} has no {' or '.join(unknown)} to choose; leave it out."
        )
    with reading(path):
        made = estimate(folder, **choices)
    digest = hashlib.sha256((Path(path) / MANIFEST).read_bytes()).hexdigest()
    origin = {
        "estimated_from": {"manifest_sha256": digest, "versions": folder.manifest["versions"]}
    }
    return replace(made, manifest={**made.manifest, "versions": library_versions(), **origin})


def resume(target: str | Path, ledger: str | None = None) -> Any:
    """Finish a release that is paid for and was left unfinished, from what was measured: nothing is
    paid or drawn.

    Examples
    --------
    >>> tt.resume("out")
    Traceback (most recent call last):
        ...
    tallytree.errors.RequestError: Nothing was left unfinished at out.
    """
    work = reopen(target)
    if work is None:
        raise RequestError(f"Nothing was left unfinished at {target}.")
    try:
        return _resumed(work, ledger)
    except BaseException:
        work.leave()
        raise


def _resumed(work: Work, ledger: str | None) -> Any:
    from tallytree.ledger.payment import Payment, is_released, report_release
    from tallytree.releases.keeping import finish, tell_measured, was_paid

    note = work.note()
    where = ledger or note.get("ledger")
    if note.get("dataset") is not None and where is None:
        raise RequestError(
            "The ledger that paid is a server, whose address is not kept; name it with --ledger."
        )
    if not note or (note["state"] == "paying" and not was_paid(work, str(where))):
        work.release()
        if not note and os.path.lexists(work.target):  # the run died when all was done
            raise RequestError(f"Nothing was left unfinished at {work.target}.")
        raise RequestError(
            f"Nothing was paid or measured for {work.target}. Run the command again."
        )
    payment = None if note["dataset"] is None else Payment(str(where), note["dataset"], note["key"])
    # A stream that goes on is released under its key already, up to the step that it leaves.
    if work.is_in_place() or ("left" not in note and is_released(payment, work.target)):
        made = load(work.target)
        if payment is not None:
            report_release(payment, work.target)
        work.release()
        return made
    if note["state"] != "measured":
        key = f" with --idempotency-key {note['key']}" if note["key"] else ""
        raise PaidNotFinishedError(
            f"The release to {work.target} is paid for, and some of it is still to be measured, "
            "which needs the data: run the "
            f"same command again{key}. Answers that were given are kept, and nothing is paid "
            f"twice. {work.standing()}".rstrip()
        )
    tell_measured(work, payment)  # the run that died may not have come so far
    made = _estimated(work, note)
    finish(work, made, payment=payment, noisy=note["noisy"])
    return made


def _estimated(work: Work, note: dict[str, Any]) -> Any:
    """The release from everything that was measured, as the run that died would have made it."""
    place = work.path / MEASURED
    try:
        folder = open_folder(place)
        with reading(place):
            if folder.changed_files():
                raise VerificationError("what was measured was changed")
            kind = kind_named(folder.manifest["kind"], work.target)
            made = kind.verb("estimate")(folder)
    except (VerificationError, StorageError):
        raise PaidNotFinishedError(_damaged(work, note)) from None
    if note["intervals"]:
        made = kind.verb("simulate")(made, copies=note["intervals"])
    return made


def _damaged(work: Work, note: dict[str, Any]) -> str:
    """What to do where the tables of what was measured are damaged: the answers are kept once more,
    each by itself.
    """
    told = f"What was measured for {work.target} is damaged."
    if not any((work.path / ANSWERS).glob("*.answer")):
        return f"{told} Its answers are lost: give its payment up and begin anew (tallytree clean {work.target})."
    work.write_note(note | {"state": "paid", "sealed": True})
    return f"{told} Run the same command again: the answers are kept apart, and no other is drawn."


def clean(target: str | Path) -> dict[str, Any]:
    """Drop what an unfinished release has left; what it paid stays paid. Returns what the run wrote
    down about itself.
    """
    work = reopen_any(target)
    if work is None:
        raise RequestError(f"Nothing was left unfinished at {target}.")
    note = work.readable_note()
    work.release()
    return note


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PlanKeywords(ReleaseOptions):
    """The keywords of :func:`plan` for group sizes: what may be asked of the release, and of the
    prediction.
    """

    target: str | None = None
    runs: int = 5


class Planning(Protocol[Keywords]):
    """How :func:`plan` may be called: group sizes as they may be released, maps by their mechanism."""

    @overload
    def __call__(
        self, like: Release | AssumedCounts, /, *none: Keywords.args, **keywords: Keywords.kwargs
    ) -> Prediction: ...
    @overload
    def __call__(
        self,
        like: SpatialRelease,
        /,
        *,
        epsilon: Exact,
        mechanism: MapMethod = "auto",
        runs: int = 5,
    ) -> MapPrediction: ...


def _typed(keywords: Callable[Keywords, ReleaseOptions]) -> Callable[[Any], Planning[Keywords]]:
    return lambda function: function


@_typed(PlanKeywords)
def plan(
    like: Published | AssumedCounts,
    *,
    epsilon: Any = None,
    target: str | None = None,
    runs: int = 5,
    **options: Any,
) -> Any:
    """Expected errors of a release before any budget is spent, or the smallest ε that meets a
    target.

    Parameters
    ----------
    like
        What to assume about the data: an earlier release or map, or assumed data
        (:func:`tallytree.group_sizes.plan.shapes.assumed_counts`). Confidential data are refused:
        the prediction would be confidential too.
    epsilon, target
        Either the privacy loss, or a wish such as ``"county: emd<=20"``; the prediction's
        ``epsilon`` is then the answer.
    runs
        Simulated releases per prediction.
    options
        As for :func:`tallytree.release`; of a map, ``mechanism`` alone.

    Examples
    --------
    >>> prediction = tt.plan(release, epsilon=0.5, runs=1)
    >>> [level.name for level in prediction.levels]
    ['US', 'state']
    """
    if isinstance(like, Confidential) and not isinstance(like, AssumedCounts):
        raise RequestError(
            "plan takes no confidential data: what it predicts would be confidential too. Give an "
            "earlier release, or "
            "assumed data from tallytree.group_sizes.plan.shapes.assumed_counts."
        )
    kind = KINDS["group-sizes"] if isinstance(like, AssumedCounts) else kind_of(like)
    return kind.verb("plan")(like, epsilon=epsilon, target=target, runs=runs, **options)


def compare(first: Published, second: Any, **how: Any) -> Any:
    """Differences of two releases of one kind, or of a release and a published table, and which of
    them are clear of noise.

    Parameters
    ----------
    first
        A release of group sizes.
    second
        Another one, such as that of another year; or a table of published numbers, as
        :func:`tallytree.read` takes it.
    how
        ``rate``, the share of clear changes that may be noise (0.05); ``copies``, how often a
        release without intervals is simulated for them (40); and of a table how to read it:
        ``size``, ``count``, ``levels``, ``root`` …

    Examples
    --------
    >>> changes = tt.compare(release, tt.release(counts, epsilon=2), copies=2)
    >>> "difference" in changes.table.column_names
    True
    """
    kind = kind_of(first)
    if hasattr(second, "kind") and kind_of(second).name != kind.name:
        raise RequestError(
            f"Releases of one kind are compared; these are {kind.title} and "
            f"{kind_of(second).title}."
        )
    return kind.verb("compare")(first, second, **how)


@spelled(ExportOptions)
def export(release: Published | str | Path, options: ExportOptions) -> Path:
    """Write a release for other programs, and return where.

    Parameters
    ----------
    release
        A release of any kind, or the folder of one.

    Examples
    --------
    >>> tt.export(release, out="counts.csv").read_text().splitlines()[0]
    '"level","US","state","region","size","count"'
    """
    from tallytree.releases.export.writing import (
        write_export,
    )  # with every format, none of which other verbs need

    made = load(release) if isinstance(release, str | Path) else release
    kind = kind_of(made)
    return write_export(
        kind.verb("sheet")(made), options, lambda sheet: kind.verb("features")(made, sheet, options)
    )


@spelled(MicrodataOptions)
def microdata(release: Published | str | Path, options: MicrodataOptions) -> Path:
    """Write synthetic groups, and entities where they were counted by class, whose tables are
    exactly those of a release.

    Post-processing: no row is a real one, and nothing is paid. The files and ``microdata.json``
    beside them say so.

    Parameters
    ----------
    release
        A release of group sizes, or the folder of one.

    Examples
    --------
    >>> sorted(file.name for file in tt.microdata(release, out="synthetic").iterdir())
    ['microdata.json', 'synthetic_groups.parquet']
    """
    if options.out is None:
        raise RequestError("Say where the files go (out=, --out), outside the release folder.")
    made = load(release) if isinstance(release, str | Path) else release
    written: Path = kind_of(made).verb("microdata")(made, options.out, overwrite=options.overwrite)
    return written

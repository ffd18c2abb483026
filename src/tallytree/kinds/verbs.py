"""What one can do with a release of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tallytree.errors import RequestError, StorageError, TallytreeError
from tallytree.kinds.kind import Kind
from tallytree.kinds.table import KINDS, kind_named
from tallytree.model.confidential import ConfidentialCounts
from tallytree.publish.progress import Progress, silent
from tallytree.release.checks import Check, Verification
from tallytree.release.opening import open_folder, unreadable
from tallytree.release.privacy_checks import check_claims, check_secure
from tallytree.release.published import Published
from tallytree.release.questions import Question, Reply
from tallytree.storage.folder import DAMAGE, Folder


def load(path: str | Path) -> Any:
    """Load a release of any kind: group sizes, a histogram, a degree sequence, a map, a stream."""
    folder = open_folder(path)
    return _loaded(folder, kind_named(folder.manifest["kind"], path))


def _loaded(folder: Folder, kind: Kind) -> Published:
    try:
        return kind.load(folder)
    except TallytreeError:
        raise
    except DAMAGE as error:
        raise unreadable(folder.path, error) from None


def verify(path: str | Path) -> Verification:
    """Check a release on disk without trusting it: manifest and checksums first, then what its tables promise."""
    folder = open_folder(path)
    kind = kind_named(folder.manifest["kind"], path)
    try:
        changed = folder.changed_files()
    except DAMAGE as error:
        changed = [str(unreadable(path, error))]
    files = Check("files match their checksums", not changed, " ".join(changed))
    if changed:
        return Verification((files,))
    try:
        promised = _loaded(folder, kind).verify().checks
        checks = (files, check_claims(folder), *kind.check_privacy(folder), *promised)
        return Verification(tuple({check.name: check for check in checks}.values()))
    except TallytreeError as error:
        return Verification((files, Check("tables can be read", False, str(error))))
    except DAMAGE as error:
        return Verification((files, Check("tables can be read", False, str(unreadable(path, error)))))


def verify_privacy(path: str | Path) -> Verification:
    """Recompute the privacy loss of a release on disk from its manifest, and compare it with what is stated."""
    folder = open_folder(path)
    kind = kind_named(folder.manifest["kind"], path)
    name = "the privacy record can be read"
    try:
        checks = (check_claims(folder), *kind.check_privacy(folder), check_secure(folder))
        return Verification((Check(name, True), *checks))
    except TallytreeError as error:
        return Verification((Check(name, False, str(error)),))
    except DAMAGE as error:
        return Verification((Check(name, False, str(unreadable(path, error))),))


def kind_of(release: Published) -> Kind:
    """The kind of a release that is in memory."""
    if not hasattr(release, "kind"):
        raise RequestError(f"A release is expected, such as tallytree.load gives; got {type(release).__name__}.")
    return kind_named(release.kind, "This object")


def ask(release: Published, question: Question | None = None, *, progress: Progress = silent, **parts: Any) -> Reply:
    """Ask a release of any kind; a question may be given by its parts, as ``at_least=7, region="US/Georgia"``."""
    try:
        asked = Question(**parts) if question is None else question
    except TypeError:
        known = ", ".join(Question.__dataclass_fields__)
        raise RequestError(f"A question has the parts {known}; got {', '.join(parts)}.") from None
    return kind_of(release).ask(release, asked, progress)


def evaluate(release: Published, truth: Any, **source: Any) -> Any:
    """Compare a release with the exact data. The result is NOT private.

    Parameters
    ----------
    release
        A release of a kind that can be compared: group sizes, or a map.
    truth
        For group sizes what :func:`tallytree.read` gave; for a map its points, in any form that
        :func:`tallytree.spatial` takes.
    source
        For a map, as for :func:`tallytree.spatial`: ``outside``, ``count``, ``table``, ``sql``, or ``counts=True`` where
        ``truth`` is a ready grid. Columns, box and resolution are those of the map.
    """
    return kind_of(release).verb("evaluate")(release, truth, **source)


def plan(
    like: Published | ConfidentialCounts,
    *,
    epsilon: Any = None,
    target: str | None = None,
    runs: int = 5,
    **options: Any,
) -> Any:
    """Expected errors of a release before any budget is spent, or the smallest ε that meets a target.

    Parameters
    ----------
    like
        What to assume about the data: an earlier release or map, or assumed data
        (:func:`tallytree.planning.shapes.assumed_counts`). Never the confidential data themselves: the prediction would
        then be confidential too.
    epsilon, target
        Either the privacy loss, or a wish such as ``"county: emd<=20"``; the prediction's ``epsilon`` is then the answer.
    runs
        Simulated releases per prediction.
    options
        As for :func:`tallytree.release`; of a map, ``method`` alone.
    """
    kind = KINDS["group-sizes"] if isinstance(like, ConfidentialCounts) else kind_of(like)
    return kind.verb("plan")(like, epsilon=epsilon, target=target, runs=runs, **options)


def write_report(folder: str | Path, out: str | Path | None = None, *, evaluation: Any = None) -> Path:
    """Write the report of a release folder, ``report.html`` inside it unless told otherwise.

    With ``evaluation`` the page shows true errors and is marked confidential; it must then go somewhere else than into the
    release folder, which is meant to be published.
    """
    if evaluation is not None and (out is None or Path(folder).resolve() in Path(out).resolve().parents):
        raise RequestError("A confidential report does not belong into the release folder. Name another file (--out).")
    target = Path(folder) / "report.html" if out is None else Path(out)
    text = report_html(load(folder), evaluation)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"Cannot write {target}: {error.strerror}.") from None
    return target


def report_html(release: Published, evaluation: Any = None) -> str:
    """The page of a release as text."""
    return kind_of(release).page(release, evaluation)

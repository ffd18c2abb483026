"""What the verbs need to know about a kind of release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallytree.errors import RequestError
from tallytree.model.notebook import Picture
from tallytree.options.asking import PageOptions
from tallytree.options.exporting import ShapesOptions
from tallytree.releases.checks import Check
from tallytree.releases.progress import Progress
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import Folder

if TYPE_CHECKING:
    from tallytree.releases.export.geographic import Features
    from tallytree.releases.export.sheet import Sheet


@dataclass(frozen=True)
class No:
    """A verb that a kind does not have, and why."""

    reason: str


@dataclass(frozen=True)
class Kind:
    """One kind of release; every verb is a function, or says why there is none.

    Attributes
    ----------
    name
        As manifests have it.
    title
        What a folder of this kind holds, in words.
    command, function
        The command and the Python function that make it.
    load
        From an open folder.
    check_privacy
        Recomputes the loss from the manifest and the raw measurements.
    page
        The report as text, from a release, for the owner its evaluation, and what things are
        called.
    plot
        The release, or one region of it, as a picture.
    estimate
        The release again from the raw measurements of a folder: post-processing only.
    ask
        Answers a question; most kinds answer by themselves.
    simulate
        The release with intervals from simulating it so often, where whoever made it asked for them
        (``copies``).
    evaluate, evaluates_with
        Errors against the truth, from a release, its data and how to read them; and the names of
        what may be said of that.
    plan
        Predicted errors of releases like an earlier one.
    compare
        Differences of two releases of the kind, with errors; makes intervals where they are
        missing.
    sheet
        The release as one flat table whose columns say what they are, from which every export is
        written.
    microdata
        Writes synthetic groups and entities whose tables are those of a release, from a release, a
        folder and whether to replace one.
    features
        Its rows with shapes, from a release, its sheet and the outlines that were named.
    intervals, spark
        How answers get intervals, and whether Spark tables are read; a sentence each.
    """

    name: str
    title: str
    command: str
    function: str
    load: Callable[[Folder], Published]
    check_privacy: Callable[[Folder], tuple[Check, ...]]
    page: Callable[[Any, Any, PageOptions | None], str]
    estimate: Callable[..., Published] | No
    evaluate: Callable[..., Any] | No
    plan: Callable[..., Any] | No
    intervals: str | No
    spark: str | No
    plot: Callable[..., Picture] | No = No(
        "nobody has said what it looks like; draw its table() yourself."
    )
    evaluates_with: frozenset[str] = frozenset()
    compare: Callable[..., Any] | No = No("differences of such releases are to come.")
    sheet: Callable[[Any], Sheet] | No = No(
        "nobody has said what its columns are; save its table() yourself."
    )
    features: Callable[[Any, Sheet, ShapesOptions], Features] | No = No(
        "it has no places on a map."
    )
    microdata: Callable[..., Path] | No = No("synthetic rows are made of group sizes.")
    simulate: Callable[..., Any] | No = No("its intervals need no simulation.")
    ask: Callable[[Any, Question, Progress], Reply] = lambda published, question, progress: (
        published.ask(question)
    )

    def verb(self, name: str) -> Callable[..., Any]:
        """A verb of the kind; RequestError with the reason where it has none."""
        found = getattr(self, name)
        if isinstance(found, No):
            raise RequestError(f"{self.title.capitalize()} has no {name!r}: {found.reason}")
        return found


def table_of_verbs(kinds: Mapping[str, Kind]) -> list[dict[str, str]]:
    """One row per kind: which verbs it has, or why not; the docs show it."""
    rows = []
    for kind in kinds.values():
        cells = {
            "kind": kind.name,
            "command": kind.command,
            "Python": kind.function,
            "verify": "yes",
            "report": "yes",
        }
        cells |= {
            "query": ", ".join(sorted(_answers(kind))) or "–",
            "ledger": "yes",
            "save, load": "yes",
        }
        cells["export"] = _exports(kind)
        for verb in ("estimate", "evaluate", "plan", "compare", "microdata", "intervals", "spark"):
            found = getattr(kind, verb)
            cells[verb] = (
                f"no: {found.reason}"
                if isinstance(found, No)
                else found
                if isinstance(found, str)
                else "yes"
            )
        rows.append(cells)
    return rows


def _exports(kind: Kind) -> str:
    if isinstance(kind.sheet, No):
        return f"no: {kind.sheet.reason}"
    return "every format" if not isinstance(kind.features, No) else "every format without shapes"


def _answers(kind: Kind) -> frozenset[str]:
    from typing import get_type_hints

    made: type[Published] = get_type_hints(kind.load)["return"]
    return made.answers

"""A released stream: how many came so far, step after step, with error bars and the manifest of
their origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tallytree.errors import InputError, RequestError
from tallytree.model.arrays import FloatArray, IntArray, read_only
from tallytree.model.notebook import html_table
from tallytree.model.steps import Steps
from tallytree.options.text import value_range
from tallytree.releases.checks import Check, Verification
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import Folder, Manifest
from tallytree.strategies.answers import Answer, Answers, whole_interval
from tallytree.strategies.intervals import check_confidence, half_widths
from tallytree.streams.estimate import RunningCounts, estimate_stream, follows, span_moments
from tallytree.streams.manifest import KIND, check_stream_record, steps_of, stream_plan
from tallytree.streams.plan import StreamPlan, rows_table

CLOSE = 1e-6  # standard errors may differ this much between machines


@dataclass(frozen=True, eq=False)
class StreamRelease(Published):
    """How many entities came so far, after each step.

    Counts are the nearest whole numbers to unbiased estimates, at least 0. They may fall a little
    from one step to the next: a running maximum would never fall, but it would keep the largest
    noise for ever.

    Attributes
    ----------
    steps
        Where steps begin and end.
    plan
        Strategy and noise.
    estimates
        Unbiased estimates of the count after each step; fractional, and possibly negative. As
        published: those of a step never change again.
    std_errors
        Their standard errors.
    manifest
        Strategy, privacy, what is public: everything that ``manifest.json`` will hold.
    noisy
        The noisy rows, in the order of measurement, or None when they were left out. Without them
        the stream cannot go on.

    Examples
    --------
    >>> import tallytree as tt
    >>> visits = tt.stream(counts=[31, 35, 62], horizon=365, epsilon=1, insecure_seed=1)
    >>> visits.range(2, 3).std_error < 30
    True
    """

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "a stream"
    answers: ClassVar[frozenset[str]] = frozenset({"ranges", "confidence"})

    steps: Steps
    plan: StreamPlan
    estimates: FloatArray
    std_errors: FloatArray
    manifest: Manifest
    noisy: IntArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not len(self.estimates) == len(self.std_errors) == steps_of(self.manifest)[1]:
            raise InputError("A stream needs one estimate and one standard error per step.")
        read_only(self.estimates)
        read_only(self.std_errors)
        if self.noisy is not None:
            read_only(self.noisy)

    @property
    def n_steps(self) -> int:
        """How many steps are over."""
        return len(self.estimates)

    @cached_property
    def counts(self) -> IntArray:
        """Published counts so far, one per step."""
        return read_only(np.maximum(np.rint(self.estimates), 0).astype(np.int64))

    @cached_property
    def _moments(self) -> RunningCounts:
        """Variances and cumulants of the counts so far; they depend on the plan alone."""
        nothing = np.zeros(len(rows_table(self.plan, self.n_steps)[0]), dtype=np.int64)
        return estimate_stream(self.plan, nothing, self.n_steps)

    def total(self, *, confidence: float = 0.95) -> Answer:
        """How many entities came so far."""
        return self.step_answers(confidence=confidence)[self.n_steps - 1]

    def step_answers(self, *, confidence: float = 0.95) -> Answers:
        """How many came so far after each step, with its uncertainty."""
        moments = self._moments
        half = half_widths(moments.variance, moments.cumulant, check_confidence(confidence))
        ends = whole_interval(self.estimates, half, self.counts)
        return Answers(self.counts, self.std_errors, *ends, confidence=confidence)

    def range(self, first: object, last: object, *, confidence: float = 0.95) -> Answer:
        """How many entities came in steps ``first`` to ``last``, both included: their numbers, or
        days that lie in them.
        """
        return self.ranges([(first, last)], confidence=confidence)[0]

    def ranges(
        self, ranges: Sequence[tuple[object, object]], *, confidence: float = 0.95
    ) -> Answers:
        """Many ranges of steps at once."""
        spans = [self.span(first, last) for first, last in ranges]
        moments = np.array([span_moments(self.plan, *span) for span in spans]).reshape(-1, 2)
        first, end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        published = np.concatenate([[0], self.counts])
        unbiased = np.concatenate([[0.0], self.estimates])
        centre, count = unbiased[end] - unbiased[first], published[end] - published[first]
        half = half_widths(moments[:, 0], moments[:, 1], check_confidence(confidence))
        return Answers(
            count,
            np.sqrt(moments[:, 0]),
            *whole_interval(centre, half, count),
            confidence=confidence,
        )

    def span(self, first: object, last: object) -> tuple[int, int]:
        """First step and one past the last of a range of steps."""
        start, end = self.steps.holding(first), self.steps.holding(last)
        if not 0 <= start <= end < self.n_steps:
            raise RequestError(
                f"Ranges run from one step to the same or a later one, from {self.steps.name(0)} "
                "to "
                f"{self.steps.name(self.n_steps - 1)}; got {first} to {last}."
            )
        return start, end + 1

    def table(self) -> pa.Table:
        """All steps as an Arrow table: step, count, estimate, std_error."""
        return pa.table(
            {
                "step": self._names,
                "count": self.counts,
                "estimate": self.estimates,
                "std_error": self.std_errors,
            }
        )

    @property
    def _names(self) -> pa.Array:
        kind = pa.int64() if self.steps.every is None else pa.date32()
        return pa.array([self.steps.name(step) for step in range(self.n_steps)], type=kind)

    def tables(self, *, noisy: bool) -> dict[str, pa.Table]:
        """Counts per step, and the noisy rows."""
        tables = {"counts.parquet": self.table()}
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = noisy_table(self.plan, self.n_steps, self.noisy)
        return tables

    def verify(self) -> Verification:
        """Check that errors are those of the plan and that estimates follow from the noisy rows,
        where these are at hand.
        """
        errors = np.sqrt(self._moments.variance)
        right = bool(np.all(np.abs(errors - self.std_errors) <= CLOSE * errors))
        checks = [
            check_stream_record(self.manifest),
            Check("standard errors follow from the noise", right, "" if right else "they differ"),
        ]
        if self.noisy is not None:
            right = follows(self.plan, self.noisy, self.estimates)
            checks.append(
                Check(
                    "estimates follow from the noisy answers", right, "" if right else "they differ"
                )
            )
        return Verification(tuple(checks))

    def _reply(self, question: Question) -> Reply:
        """Ranges of steps; without a question, the counts so far after every step."""
        confidence = 0.95 if question.confidence is None else question.confidence
        columns = ("question", "estimate", "std_error", "low", "high")
        if not question.ranges:
            columns = ("step", "count", "std_error", "low", "high")
            found = self.step_answers(confidence=confidence)
            labels = [str(name) for name in self._names.to_pylist()]
        else:
            found = self.ranges(
                [value_range(text) for text in question.ranges], confidence=confidence
            )
            labels = [f"{text} count" for text in question.ranges]
        rows = [
            [label, a.estimate, a.std_error, a.low, a.high]
            for label, a in zip(labels, found, strict=True)
        ]
        title = "answers" if question.ranges else "steps"
        facts = {"confidence": confidence, title: [dict(zip(columns, row)) for row in rows]}
        return Reply(title, columns, rows, facts)

    def __repr__(self) -> str:
        return self._described(f"{self.n_steps:,} steps")

    def _repr_html_(self) -> str:
        rows = zip(self._names.to_pylist(), self.counts.tolist())
        caption = f"Stream of {self.n_steps:,} steps, {self.mechanism}"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, ["step", "count so far"], rows, n_rows=self.n_steps, note=note)


def noisy_table(plan: StreamPlan, n_steps: int, rows: IntArray) -> pa.Table:
    """The noisy rows with their steps and levels, as a folder holds them."""
    step, level = rows_table(plan, n_steps)
    return pa.table({"step": step, "level": level, "value": rows})


def noisy_of_folder(folder: Folder) -> IntArray | None:
    """The noisy rows of a folder; None where they were left out."""
    if not folder.has("noisy.parquet"):
        return None
    table = folder.table("noisy.parquet")
    expected = rows_table(stream_plan(folder.manifest), steps_of(folder.manifest)[1])
    for name, column in zip(("step", "level"), expected):
        if not np.array_equal(table[name].to_numpy(), column):
            raise InputError("The noisy rows are not those of the steps of this stream.")
    return np.array(table["value"].to_numpy(), dtype=np.int64)


def load_stream(folder: Folder) -> StreamRelease:
    """The stream of a folder, with its noisy rows where they were saved."""
    steps, table = steps_of(folder.manifest)[0], folder.table("counts.parquet")
    estimates, errors = (
        np.array(table[name].to_numpy(), dtype=np.float64) for name in ("estimate", "std_error")
    )
    noisy = noisy_of_folder(folder)
    made = StreamRelease(
        steps, stream_plan(folder.manifest), estimates, errors, folder.manifest, noisy
    )
    if not table.select(["step", "count"]).equals(made.table().select(["step", "count"])):
        raise InputError(
            "Steps and counts are not those that follow from the manifest and the estimates."
        )
    return made

"""Counting a stream in memory, step by step."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Lock
from typing import Self

import numpy as np
import numpy.typing as npt

from tallytree.errors import InputError, RequestError
from tallytree.ledger.payment import payment_from
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Confidential
from tallytree.model.steps import Steps
from tallytree.model.unit import ENTITY, unit_from
from tallytree.options.choices import StreamObjective, StreamStrategyName
from tallytree.options.groups import Loss, PaidFrom, Paying
from tallytree.options.stream import CounterOptions
from tallytree.privacy.budget import Definition, Exact
from tallytree.releases.keeping import Keeping, paid_noise
from tallytree.strategies.answers import Answer
from tallytree.strategies.intervals import check_confidence
from tallytree.streams.estimate import StreamEstimator, estimate_stream
from tallytree.streams.manifest import stream_manifest
from tallytree.streams.measure import StepByStep
from tallytree.streams.plan import planned_stream
from tallytree.streams.release import StreamRelease


class StreamCounter(Confidential):
    """A count that is released after every step, for one budget in all.

    It lives in memory and holds the exact arrivals, since every row is a sum over them; a stream
    that has to outlive its process is :func:`tallytree.stream` with a folder. Threads may share a
    counter. A forked process cannot use it: two processes under one key would draw the same noise.
    At the end of a ``with`` block its key is forgotten.

    Parameters
    ----------
    horizon
        Largest number of steps, public; None where it is not known.
    contributions
        How many entities of one unit may come, in any steps; the unit is protected.
    min_gap
        At least so many steps lie between two entities of one unit, on trust.
    epsilon, rho, delta, definition, entity, mechanism, objective, branching, inference,
    insecure_seed, ledger, dataset
        As for :func:`tallytree.stream`; the account pays for the whole stream before its first
        step.

    Examples
    --------
    >>> with StreamCounter(1000, epsilon=1, insecure_seed=1) as counter:
    ...     answers = [counter.add(arrivals) for arrivals in [3, 0, 5]]
    >>> answers[-1] == counter.count()
    True
    """

    def __init__(
        self,
        horizon: int | None,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        delta: Exact | None = None,
        definition: Definition = "pure",
        contributions: int = 1,
        min_gap: int | None = None,
        entity: str = "row",
        mechanism: StreamStrategyName = "auto",
        objective: StreamObjective = "mean",
        branching: int | None = None,
        inference: bool = True,
        insecure_seed: int | None = None,
        ledger: str | PaidFrom | None = None,
        dataset: str | None = None,
    ) -> None:
        loss = Loss(epsilon=epsilon, rho=rho, delta=delta, definition=definition)
        counted = CounterOptions(
            horizon=horizon,
            mechanism=mechanism,
            objective=objective,
            min_gap=min_gap,
            branching=branching,
            inference=inference,
        )
        self.budget, self.horizon = loss.loss(), counted.horizon
        self.plan = planned_stream(self.budget, counted, contributions=contributions)
        self.noise = self.plan.epoch(0).noise
        payment = payment_from(Paying(ledger=ledger, dataset=dataset))
        manifest = stream_manifest(
            self.plan,
            Steps(),
            0,
            unit_from(ENTITY, entity, contributions, counted=True, min_gap=min_gap),
            note="arrivals were added one step after the other",
            secure=insecure_seed is None,
            noted=payment is not None,
        )
        self._lock, self._end = Lock(), ExitStack()
        paid = self._end.enter_context(
            paid_noise(Keeping(payment), manifest, insecure_seed, read=None)
        )
        self._manifest, self._stream = paid.manifest, paid.stream
        self._past = StepByStep(self.plan)
        self._rows: list[IntArray] = []
        self._estimator = StreamEstimator(self.plan)

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return self._estimator.steps

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness."""
        return self._stream.secure

    def add(self, arrivals: int | np.integer[npt.NBitBase]) -> Answer:
        """Take one step in which ``arrivals`` entities came, and release the count so far."""
        if isinstance(arrivals, bool) or not isinstance(arrivals, int | np.integer) or arrivals < 0:
            raise InputError("Arrivals are a whole number of at least 0.")
        with self._lock:  # two threads in one step would draw its noise twice, for different counts
            step = self.steps
            if self.horizon is not None and step >= self.horizon:
                raise RequestError(
                    f"The stream has reached its horizon of {self.horizon:,} steps. Start a new "
                    "counter."
                )
            rows = self._past.measure(step, int(arrivals), self._stream)
            self._rows[step:] = [rows]
            self._estimator.push(rows)
            return self._count(0.95)

    def count(self, *, confidence: float = 0.95) -> Answer:
        """How many entities came so far, from what was released already: asking again costs
        nothing.
        """
        with self._lock:
            return self._count(check_confidence(confidence))

    def _count(self, confidence: float) -> Answer:
        return self._estimator.counts().answers(confidence=confidence)[0]

    def release(self) -> StreamRelease:
        """All steps so far as a release, to be saved, verified and asked; costs nothing."""
        with self._lock:
            if not self.steps:
                raise RequestError("No step was taken yet; there is nothing to release.")
            rows = np.concatenate(self._rows)
            found = estimate_stream(self.plan, rows, self.steps)
            manifest = {**self._manifest, "n_steps": self.steps}
            return StreamRelease(
                Steps(), self.plan, found.estimate, np.sqrt(found.variance), manifest, rows
            )

    def close(self) -> None:
        """Forget the key and the exact past; what was released can still be asked."""
        self._past.forget()
        self._end.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        self.close()

    def _shown(self) -> str:
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        most = "any number of" if self.horizon is None else f"{self.horizon:,}"
        return f"{self.steps:,} of {most} steps, {self.budget}{mark}"

"""The exact privacy loss of a run, by replaying its noisy answers on a neighbouring input.

``add_noise`` and ``choose_candidates`` are the only doors from true values to public ones. Standing in for them,
:func:`listen` notes every true answer and hands out noisy ones; :func:`replay` hands out the *same* noisy answers on another
input. What the two inputs did differently along this transcript is then known exactly: the logarithm of the ratio of their
probabilities is at most the sum of |difference| / scale for discrete Laplace noise, and the zCDP loss the sum of
difference² / (2 sigma2) for discrete Gaussian; the ratio of a choice is computed from all scores. No statistics are involved,
so a loss of even one part in a million too much is found; and whatever follows the noise must come out the same for both
inputs, byte by byte.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tallytree.privacy.exponential import choose_candidates
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise, add_noise

DOORS: dict[str, Any] = {"add_noise": add_noise, "choose_candidates": choose_candidates}


@dataclass(frozen=True)
class Question:
    """What was asked, as far as it may be known to everyone; ``law`` is the noise, or the rate of a choice."""

    level: int
    query: str
    law: Noise | Fraction
    shape: tuple[int, ...]
    offsets: tuple[int, ...] | None
    place: tuple[int, int]


@dataclass(frozen=True)
class Asked:
    """A question with its true answer (or scores) and what was handed out."""

    question: Question
    truth: Any
    given: Any


class VisibleDifferenceError(AssertionError):
    """Two inputs were asked different questions although all noisy answers before were the same."""


@contextmanager
def standing_in(answer: Callable[[Question, Any], Any]) -> Iterator[None]:
    """Let ``answer`` answer all questions, wherever the package asks them."""

    def noisy(values: Any, noise: Noise, stream: Any, *, level: int, query: str, **place: Any) -> Any:
        offsets = place.get("offsets")
        ends = None if offsets is None else tuple(offsets.tolist())
        start = place.get("first_region", 0), place.get("first_draw", 0)
        return answer(Question(level, query, noise, values.shape, ends, start), np.array(values)).copy()

    def chosen(scores: Any, offsets: Any, rate: Fraction, source: Any, *, level: int, query: str) -> Any:
        question = Question(level, query, rate, scores.shape, tuple(offsets.tolist()), (0, 0))
        return answer(question, np.array(scores)).copy()

    replacements = {"add_noise": noisy, "choose_candidates": chosen}
    replaced = [
        (module, name)
        for place, module in list(sys.modules.items())
        if place.startswith("tallytree.")
        for name, door in DOORS.items()
        if getattr(module, name, None) is door
    ]
    for module, name in replaced:
        setattr(module, name, replacements[name])
    try:
        yield
    finally:
        for module, name in replaced:
            setattr(module, name, DOORS[name])


def listen(run: Callable[[], Any], rng: np.random.Generator) -> tuple[Any, list[Asked]]:
    """Run with noise of about the right size from ``rng``; returns the result and the transcript."""
    transcript: list[Asked] = []

    def answer(question: Question, truth: Any) -> Any:
        if isinstance(question.law, Fraction):
            given = rng.integers(0, np.diff(question.offsets or ()))
        else:
            drawn = rng.laplace(0, max(question.law.std, 0.1), truth.shape)
            given = truth.astype(np.int64) + np.rint(drawn).astype(np.int64)
        transcript.append(Asked(question, truth, given))
        return given

    with standing_in(answer):
        return run(), transcript


def replay(run: Callable[[], Any], script: list[Asked]) -> tuple[Any, list[Asked]]:
    """Run on another input with the noisy answers of a transcript; the same questions must be asked in the same order."""
    transcript: list[Asked] = []

    def answer(question: Question, truth: Any) -> Any:
        if len(transcript) == len(script) or question != script[len(transcript)].question:
            raise VisibleDifferenceError(f"question {len(transcript)}: {question.query}, level {question.level}")
        given = script[len(transcript)].given
        transcript.append(Asked(question, truth, given))
        return given

    with standing_in(answer):
        result = run()
    if len(transcript) != len(script):
        raise VisibleDifferenceError(f"{len(script)} questions were asked of one input, {len(transcript)} of the other")
    return result, transcript


def loss_between(one: list[Asked], other: list[Asked], definition: str) -> Fraction:
    """What the transcript reveals at most about which of two inputs it came from: ε, or ρ."""
    loss = Fraction(0)
    for here, there in zip(one, other, strict=True):
        change = here.truth.astype(object) - there.truth.astype(object)
        match here.question.law:
            case DiscreteLaplace(scale=scale):
                epsilon = Fraction(int(np.abs(change).sum())) / scale
                loss += epsilon if definition == "pure" else epsilon**2 / 2
            case DiscreteGaussian(sigma2=sigma2):
                assert definition == "zcdp", "discrete Gaussian noise gives no pure guarantee"
                loss += Fraction(int((change**2).sum())) / (2 * sigma2)
            case Fraction() as rate:
                loss += loss_of_choices(here, there, rate, definition)
    return loss


def loss_of_choices(here: Asked, there: Asked, rate: Fraction, definition: str) -> Fraction:
    """Pure: the log ratio of the probabilities of what was chosen, for all lists together. zCDP: (range of the log ratio
    over all candidates)² / 8 (Cesar and Rogers 2021, Lemma 3.2)."""
    total = 0.0
    offsets = here.question.offsets or ()
    for start, stop, chosen in zip(offsets, offsets[1:], here.given, strict=False):
        own, others = (float(rate) * asked.truth[start:stop].astype(float) for asked in (here, there))
        if definition == "pure":
            ratio = (own - others)[chosen] - (logsumexp(own) - logsumexp(others))
            total += abs(ratio)
        else:
            total += float(np.ptp(own - others)) ** 2 / 8
    return Fraction(total)

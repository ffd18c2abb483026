"""The exact privacy loss of a run, by replaying its noisy answers on a neighbouring input.

``add_noise``, ``choose_candidates``, ``exceed_zero`` and ``cheapest_parts`` are the only doors from
true values to public ones. Standing in for them, :func:`listen` notes every true answer and hands
out noisy ones; :func:`replay` hands out the
*same* noisy answers on another input. What the two inputs did differently along this transcript is
 then known exactly: the logarithm of the ratio of their probabilities is at most the sum of
 |difference| / scale for discrete Laplace noise, and the zCDP loss the sum of difference² / (2
 sigma2) for discrete Gaussian; the ratio of a choice is computed from all scores, that of a
 comparison with 0 from the law of its noise, and that of a tiling is bounded as its sensitivity has
 it. No statistics are involved, so a loss of even one part in a million too much is found; and
 whatever follows the noise must come out the same for both inputs, byte by byte.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import logsumexp

from tallytree.kernels.partitions import cheapest_cut
from tallytree.privacy.comparisons import cheapest_parts, exceed_zero
from tallytree.privacy.exponential import choose_candidates
from tallytree.privacy.fingerprint import public_digest
from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise, add_noise

DOORS: dict[str, Any] = {
    "add_noise": add_noise,
    "choose_candidates": choose_candidates,
    "exceed_zero": exceed_zero,
    "cheapest_parts": cheapest_parts,
}


@dataclass(frozen=True)
class Above:
    """The law of decisions: whether values plus this noise are above 0."""

    noise: DiscreteLaplace


@dataclass(frozen=True)
class Tiling:
    """The law of a choice among tilings of a tree, whose nodes cost their values plus this noise
    plus a price.
    """

    noise: DiscreteLaplace
    price: int
    child_starts: tuple[int, ...]


@dataclass(frozen=True)
class Question:
    """What was asked, as far as it may be known to everyone; ``law`` is the noise, or the rate or
    the law of a choice.

    ``about`` is the digest of the public numbers that say what is counted, as journals keep it.
    """

    level: int
    query: str
    law: Noise | Fraction | Above | Tiling
    shape: tuple[int, ...]
    offsets: tuple[int, ...] | None
    place: tuple[int, int]
    about: str = ""


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

    def noisy(
        values: Any, noise: Noise, stream: Any, *, level: int, query: str, **place: Any
    ) -> Any:
        offsets = place.get("offsets")
        ends = None if offsets is None else tuple(offsets.tolist())
        start = place.get("first_region", 0), place.get("first_draw", 0)
        about = public_digest(place.get("question", ()))
        return answer(
            Question(level, query, noise, values.shape, ends, start, about), np.array(values)
        ).copy()

    def chosen(
        scores: Any,
        offsets: Any,
        rate: Fraction,
        source: Any,
        *,
        level: int,
        query: str,
        question: Any,
    ) -> Any:
        about = public_digest(question)
        asked = Question(level, query, rate, scores.shape, tuple(offsets.tolist()), (0, 0), about)
        return answer(asked, np.array(scores)).copy()

    def above(
        values: Any, noise: DiscreteLaplace, source: Any, *, level: int, query: str, question: Any
    ) -> Any:
        asked = Question(
            level, query, Above(noise), values.shape, None, (0, 0), public_digest(question)
        )
        return answer(asked, np.array(values)).copy()

    def tiled(
        costs: Any,
        price: int,
        starts: Any,
        noise: Any,
        source: Any,
        *,
        level: int,
        query: str,
        question: Any,
    ) -> Any:
        law = Tiling(noise, price, tuple(starts.tolist()))
        asked = Question(level, query, law, costs.shape, None, (0, 0), public_digest(question))
        return answer(asked, np.array(costs)).copy()

    replacements = {
        "add_noise": noisy,
        "choose_candidates": chosen,
        "exceed_zero": above,
        "cheapest_parts": tiled,
    }
    _exchange(DOORS, replacements)
    try:
        yield
    finally:
        _exchange(replacements, DOORS)


def _exchange(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Put functions in the place of others, in every module that is loaded by now: those too that
    were loaded while others stood in.
    """
    for place, module in list(sys.modules.items()):
        if place.startswith("tallytree."):
            for name, function in old.items():
                if getattr(module, name, None) is function:
                    setattr(module, name, new[name])


def listen(run: Callable[[], Any], rng: np.random.Generator) -> tuple[Any, list[Asked]]:
    """Run with noise of about the right size from ``rng``; returns the result and the transcript."""
    transcript: list[Asked] = []

    def answer(question: Question, truth: Any) -> Any:
        if isinstance(question.law, Fraction):
            given = rng.integers(0, np.diff(question.offsets or ()))
        elif isinstance(question.law, Above):
            given = (
                truth + rng.laplace(0, float(question.law.noise.scale), truth.shape) > 0
            ).astype(np.int64)
        elif isinstance(question.law, Tiling):
            drawn = np.rint(rng.laplace(0, float(question.law.noise.scale), truth.shape)).astype(
                np.int64
            )
            given = cheapest_cut(
                truth + drawn + question.law.price, np.array(question.law.child_starts)
            )
        else:
            drawn = rng.laplace(0, max(question.law.std, 0.1), truth.shape)
            given = truth.astype(np.int64) + np.rint(drawn).astype(np.int64)
        transcript.append(Asked(question, truth, given))
        return given

    with standing_in(answer):
        return run(), transcript


def replay(run: Callable[[], Any], script: list[Asked]) -> tuple[Any, list[Asked]]:
    """Run on another input with the noisy answers of a transcript; the same questions must be asked
    in the same order.
    """
    transcript: list[Asked] = []

    def answer(question: Question, truth: Any) -> Any:
        if len(transcript) == len(script) or question != script[len(transcript)].question:
            raise VisibleDifferenceError(
                f"question {len(transcript)}: {question.query}, level {question.level}"
            )
        given = script[len(transcript)].given
        transcript.append(Asked(question, truth, given))
        return given

    with standing_in(answer):
        result = run()
    if len(transcript) != len(script):
        raise VisibleDifferenceError(
            f"{len(script)} questions were asked of one input, {len(transcript)} of the other"
        )
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
            case Above(noise=law):
                loss += _pure(
                    sum(
                        loss_of_decision(*one, law)
                        for one in zip(here.truth, there.truth, here.given)
                    ),
                    definition,
                )
            case Tiling(noise=law, child_starts=starts):
                moved = np.abs(change.astype(np.int64))
                loss += _pure(
                    (moved[here.given == 1].sum() + most_moved(moved, starts)) / float(law.scale),
                    definition,
                )
    return loss


def _pure(epsilon: float, definition: str) -> Fraction:
    return Fraction(float(epsilon)) if definition == "pure" else Fraction(float(epsilon)) ** 2 / 2


def loss_of_decision(here: int, there: int, above: int, noise: DiscreteLaplace) -> float:
    """|log ratio| of the probabilities that a value plus discrete Laplace noise is above 0, or that
    it is not.
    """
    return abs(
        log_probability(int(here), int(above), noise)
        - log_probability(int(there), int(above), noise)
    )


def log_probability(value: int, above: int, noise: DiscreteLaplace) -> float:
    """log P(value + noise > 0), or of the opposite, which is P(1 − value + noise > 0), as the noise
    is symmetric.
    """
    b = value if above else 1 - value
    q = np.exp(-1 / float(noise.scale))
    # P(noise >= 1 - b): a geometric tail where b is 0 or less, else all but one.
    return float((1 - b) * np.log(q) - np.log1p(q) if b <= 0 else np.log1p(-(q**b) / (1 + q)))


def most_moved(moved: Any, child_starts: tuple[int, ...]) -> int:
    """The largest change of the cost of a tiling, from the changes of the costs of nodes."""
    most = [int(one) for one in moved]
    for node in range(len(most) - 1, -1, -1):
        most[node] = max(most[node], sum(most[child_starts[node] : child_starts[node + 1]]))
    return most[0]


def loss_of_choices(here: Asked, there: Asked, rate: Fraction, definition: str) -> Fraction:
    """Pure: the log ratio of the probabilities of what was chosen, for all lists together. zCDP:
    (range of the log ratio over all candidates)² / 8 (Cesar and Rogers 2021, Lemma 3.2).
    """
    total = 0.0
    offsets = here.question.offsets or ()
    for start, stop, chosen in zip(offsets, offsets[1:], here.given, strict=False):
        own, others = (
            float(rate) * asked.truth[start:stop].astype(float) for asked in (here, there)
        )
        if definition == "pure":
            ratio = (own - others)[chosen] - (logsumexp(own) - logsumexp(others))
            total += abs(ratio)
        else:
            total += float(np.ptp(own - others)) ** 2 / 8
    return Fraction(total)

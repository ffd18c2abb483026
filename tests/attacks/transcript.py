"""The exact privacy loss of a run, by replaying its noisy answers on a neighbouring input.

``add_noise`` is the one door from true to noisy values. Standing in for it, :func:`listen` notes every true answer and hands
out noisy ones; :func:`replay` hands out the *same* noisy answers on another input. What the two inputs did differently along
this transcript is then known exactly: the logarithm of the ratio of their probabilities is at most the sum of
|difference| / scale for discrete Laplace noise, and the zCDP loss the sum of difference² / (2 sigma2) for discrete Gaussian.
No statistics are involved, so a loss of even one part in a million too much is found; and whatever follows the noise must
come out the same for both inputs, byte by byte.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise, add_noise


@dataclass(frozen=True)
class Question:
    """What was asked, as far as it may be known to everyone."""

    level: int
    query: str
    noise: Noise
    shape: tuple[int, ...]
    offsets: tuple[int, ...] | None
    place: tuple[int, int]


@dataclass(frozen=True)
class Asked:
    """A question with its true answer and the noisy one that was handed out."""

    question: Question
    truth: Any
    given: Any


class VisibleDifferenceError(AssertionError):
    """Two inputs were asked different questions although all noisy answers before were the same."""


@contextmanager
def standing_in(replacement: Callable[..., Any]) -> Iterator[None]:
    """Replace ``add_noise`` wherever the package imported it."""
    holders = [module for name, module in sys.modules.items() if name.startswith("tallytree.")]
    holders = [module for module in holders if getattr(module, "add_noise", None) is add_noise]
    for module in holders:
        module.add_noise = replacement  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in holders:
            module.add_noise = add_noise  # type: ignore[attr-defined]


def _question(values: Any, noise: Noise, level: int, query: str, place: dict[str, Any]) -> Question:
    offsets = place.get("offsets")
    return Question(
        level=level,
        query=query,
        noise=noise,
        shape=values.shape,
        offsets=None if offsets is None else tuple(offsets.tolist()),
        place=(place.get("first_region", 0), place.get("first_draw", 0)),
    )


def listen(run: Callable[[], Any], rng: np.random.Generator) -> tuple[Any, list[Asked]]:
    """Run with noise of about the right size from ``rng``; returns the result and the transcript."""
    transcript: list[Asked] = []

    def answer(values: Any, noise: Noise, stream: Any, *, level: int, query: str, **place: Any) -> Any:
        drawn = np.rint(rng.laplace(0, max(noise.std, 0.1), values.shape)).astype(np.int64)
        given = np.asarray(values, dtype=np.int64) + drawn
        transcript.append(Asked(_question(values, noise, level, query, place), np.array(values), given.copy()))
        return given

    with standing_in(answer):
        return run(), transcript


def replay(run: Callable[[], Any], script: list[Asked]) -> tuple[Any, list[Asked]]:
    """Run on another input with the noisy answers of a transcript; the same questions must be asked in the same order."""
    transcript: list[Asked] = []

    def answer(values: Any, noise: Noise, stream: Any, *, level: int, query: str, **place: Any) -> Any:
        question = _question(values, noise, level, query, place)
        if len(transcript) == len(script) or question != script[len(transcript)].question:
            raise VisibleDifferenceError(f"question {len(transcript)}: {query}, level {level}")
        given = script[len(transcript)].given
        transcript.append(Asked(question, np.array(values), given))
        return given.copy()

    with standing_in(answer):
        result = run()
    if len(transcript) != len(script):
        raise VisibleDifferenceError(f"{len(script)} questions were asked of one input, {len(transcript)} of the other")
    return result, transcript


def loss_between(one: list[Asked], other: list[Asked], definition: str) -> Fraction:
    """What the transcript reveals at most about which of two inputs it came from: ε, or ρ."""
    loss = Fraction(0)
    for here, there in zip(one, other, strict=True):
        change = np.abs(here.truth.astype(object) - there.truth.astype(object)).ravel()
        match here.question.noise:
            case DiscreteLaplace(scale=scale):
                epsilon = Fraction(int(change.sum())) / scale
                loss += epsilon if definition == "pure" else epsilon**2 / 2
            case DiscreteGaussian(sigma2=sigma2):
                assert definition == "zcdp", "discrete Gaussian noise gives no pure guarantee"
                loss += Fraction(int((change**2).sum())) / (2 * sigma2)
    return loss

"""Exact probabilities as whole-number enclosures: what the samplers compare random bits with.

Every probability is enclosed as ``low / 2**bits <= P <= high / 2**bits`` in Python integers, each
operation rounding outwards, so that the enclosure is a proof. :func:`floor_of` refines it until the
leading binary digits are certain. No floating point anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

# A probability and its enclosure agree on the wanted digits after one or two rounds; a probability
# that is a dyadic rational would never get there, and none of ours is known to be one.
_MOST_GUARD_BITS = 1 << 16


class Enclosure(NamedTuple):
    """A real number known to lie in ``[low, high] / 2**bits``."""

    low: int
    high: int
    bits: int

    def times(self, other: Enclosure) -> Enclosure:
        """Enclosure of the product of two nonnegative numbers of the same ``bits``."""
        return Enclosure(
            self.low * other.low >> self.bits, -(-self.high * other.high >> self.bits), self.bits
        )

    def over(self, other: Enclosure) -> Enclosure:
        """Enclosure of the quotient of a nonnegative and a positive number of the same ``bits``."""
        return Enclosure(
            (self.low << self.bits) // other.high,
            -((-self.high << self.bits) // other.low),
            self.bits,
        )

    def plus(self, other: Enclosure) -> Enclosure:
        """Enclosure of the sum."""
        return Enclosure(self.low + other.low, self.high + other.high, self.bits)

    def minus(self, other: Enclosure) -> Enclosure:
        """Enclosure of a difference that is known not to be negative."""
        return Enclosure(max(0, self.low - other.high), self.high - other.low, self.bits)

    def floor(self, digits: int) -> int | None:
        """``floor(2**digits * number)``, or None where the enclosure does not settle it."""
        shift = self.bits - digits
        return self.low >> shift if self.low >> shift == self.high >> shift else None


def enclose(value: int, bits: int) -> Enclosure:
    """A whole number as an enclosure."""
    return Enclosure(value << bits, value << bits, bits)


def enclose_exp(exponent: Fraction, bits: int) -> Enclosure:
    """Enclosure of ``exp(-exponent)`` for an exponent >= 0, a few units of the last of ``bits``
    wide at most.

    The exponent is halved until it is at most 1/2; there the alternating series with falling terms
    lies between successive partial sums; squaring undoes the halving. Each squaring at most doubles
    the error, which the extra bits absorb.
    """
    if exponent == 0:
        return enclose(1, bits)
    if exponent > bits:  # e**-x < 2**-x
        return Enclosure(0, 1, bits)
    halvings = math.ceil(exponent).bit_length() + 1
    spare = halvings + 16
    working = bits + spare
    top, bottom = exponent.numerator, exponent.denominator << halvings
    low = high = 1 << working
    term_low, term_high = low, high
    order = 0
    while term_high > 1:
        order += 1
        term_low = term_low * top // (bottom * order)
        term_high = -(-term_high * top // (bottom * order))
        if order % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
    # What is left out is at most the last term, on either side.
    power = Enclosure(max(0, low - term_high), high + term_high, working)
    for _ in range(halvings):
        power = power.times(power)
    return Enclosure(power.low >> spare, -(-power.high >> spare), bits)


class Survival(Protocol):
    """P(K >= k) of a whole-valued K >= 0, for k = 0, 1, …."""

    @property
    def end(self) -> int | None:
        """Smallest k with P(K >= k) = 0 exactly, None where there is none."""

    def at(self, k: int, bits: int) -> Enclosure:
        """Enclosure of P(K >= k)."""

    def in_turn(self, bits: int) -> Iterator[Enclosure]:
        """Enclosures of P(K >= 1), P(K >= 2), …, cheaper than one by one."""


def floor_of(number: Callable[[int], Enclosure], digits: int) -> int:
    """``floor(2**digits * number)`` exactly, from a function that encloses the number with as many
    bits as asked for.
    """
    guard = 64
    while guard <= _MOST_GUARD_BITS:
        found = number(digits + guard).floor(digits)
        if found is not None:
            return found
        guard *= 2
    raise ArithmeticError(
        f"{_MOST_GUARD_BITS} bits do not settle the binary digits of a probability."
    )


def survival_floor(survival: Survival, k: int, digits: int) -> int:
    """``floor(2**digits * P(K >= k))`` exactly."""
    if k == 0:
        return 1 << digits
    if survival.end is not None and k >= survival.end:
        return 0
    return floor_of(lambda bits: survival.at(k, bits), digits)


def survival_table(survival: Survival, digits: int) -> list[int]:
    """``floor(2**digits * P(K >= k))`` for k = 0, 1, … up to and including the first 0."""
    table = [1 << digits]
    # Errors of a table's length of products stay far below the guard; where they do not, the exact
    # value is asked for.
    bits = digits + 80
    for k, enclosure in enumerate(survival.in_turn(bits), start=1):
        found = enclosure.floor(digits)
        table.append(survival_floor(survival, k, digits) if found is None else found)
        if table[-1] == 0:
            return table
    return [*table, 0]


@dataclass(frozen=True)
class LaplaceMagnitude:
    """|X| of the discrete Laplace distribution, in whole steps above 1: P(K >= k) = 2 p**(1 + step
    (k - 1)) / (1 + p), k >= 1.

    P(X = x) is proportional to p**|x|, p = exp(-1/scale) (kuo2018 Def. 3 with the normaliser
    corrected), hence P(|X| >= k) = 2 p**k / (1 + p). With ``step`` = 1 K is |X| itself; otherwise K
    = 0 says X = 0, and K = k >= 1 says that |X| - 1 lies in [step (k - 1), step k).
    """

    scale: Fraction
    step: int = 1
    end: int | None = None

    def at(self, k: int, bits: int) -> Enclosure:
        """Enclosure of P(K >= k)."""
        power = enclose_exp((1 + self.step * (k - 1)) / self.scale, bits)
        return power.plus(power).over(enclose(1, bits).plus(enclose_exp(1 / self.scale, bits)))

    def in_turn(self, bits: int) -> Iterator[Enclosure]:
        """Enclosures of P(K >= 1), P(K >= 2), …."""
        current = self.at(1, bits)
        ratio = enclose_exp(self.step / self.scale, bits)
        while True:
            yield current
            current = current.times(ratio)


@dataclass(frozen=True)
class GeometricDigit:
    """One digit of a geometric variable: P(K = k) proportional to exp(-k/scale) for 0 <= k < end.

    A geometric variable written in base ``end`` has independent digits: p**(Σ d_i end**i) is a
    product over digits.
    """

    scale: Fraction
    end: int

    def at(self, k: int, bits: int) -> Enclosure:
        """Enclosure of P(K >= k) = (r**k - r**end) / (1 - r**end), r = exp(-1/scale)."""
        return self._share(
            enclose_exp(k / self.scale, bits), enclose_exp(self.end / self.scale, bits)
        )

    def in_turn(self, bits: int) -> Iterator[Enclosure]:
        """Enclosures of P(K >= 1) … P(K >= end - 1)."""
        ratio, last = enclose_exp(1 / self.scale, bits), enclose_exp(self.end / self.scale, bits)
        power = ratio
        for _ in range(1, self.end):
            yield self._share(power, last)
            power = power.times(ratio)

    def _share(self, power: Enclosure, last: Enclosure) -> Enclosure:
        return power.minus(last).over(enclose(1, power.bits).minus(last))


@dataclass(frozen=True)
class GaussianMagnitude:
    """|X| of the discrete Gaussian, P(X = x) proportional to exp(-x**2 / (2 sigma2)); or of its
    half on x >= 0.

    Sums are cut off where the enclosure of a term drops to the last bit, and the rest is bounded by
    a geometric series.
    """

    sigma2: Fraction
    half: bool = False
    end: int | None = None

    def at(self, k: int, bits: int) -> Enclosure:
        """Enclosure of P(K >= k)."""
        terms = self._terms(bits)
        if k >= len(terms):
            terms = self._terms(bits, at_least=k + 1)
        tail = self._rest(len(terms), bits)
        above = terms[0].minus(terms[0])
        for term in terms[k:]:
            above = above.plus(term)
        below = above.minus(above)
        for term in terms[:k]:
            below = below.plus(term)
        return self._probability(above.plus(tail), below)

    def in_turn(self, bits: int) -> Iterator[Enclosure]:
        """Enclosures of P(K >= 1), P(K >= 2), … as far as terms count."""
        terms = self._terms(bits)
        above = self._rest(len(terms), bits)
        sums = []
        for term in reversed(terms):
            above = above.plus(term)
            sums.append(above)
        sums.reverse()
        below = Enclosure(0, 0, bits)
        for term, above in zip(terms, sums[1:]):
            below = below.plus(term)
            yield self._probability(above, below)
        yield self._probability(self._rest(len(terms), bits), below.plus(terms[-1]))

    def _probability(self, above: Enclosure, below: Enclosure) -> Enclosure:
        """above / (below + above), where the term at 0 counts half as much as the others unless
        ``half``.
        """
        if not self.half:
            one = enclose(1, above.bits)
            above, below = above.plus(above), below.plus(below).minus(one)
        # above / (below + above) grows with above and falls with below.
        return Enclosure(
            above.low * (1 << above.bits) // (above.low + below.high),
            -(-above.high * (1 << above.bits) // (above.high + below.low)),
            above.bits,
        )

    def _terms(self, bits: int, at_least: int = 2) -> list[Enclosure]:
        """exp(-j**2 / (2 sigma2)) for j = 0, 1, … until a term may be 0; the ratio of two terms is
        exp(-(2j+1)/(2 sigma2)).
        """
        terms = [enclose(1, bits)]
        ratio = enclose_exp(1 / (2 * self.sigma2), bits)
        step = enclose_exp(1 / self.sigma2, bits)
        while len(terms) < at_least or terms[-1].low > 0:
            terms.append(terms[-1].times(ratio))
            ratio = ratio.times(step)
        return terms

    def _rest(self, first: int, bits: int) -> Enclosure:
        """Σ g(j), j >= first: at most g(first) (1 + 1/y), y = (2 first + 1) / (2 sigma2), as 1/(1 -
        e**-y) <= 1 + 1/y.
        """
        term = enclose_exp(Fraction(first * first) / (2 * self.sigma2), bits)
        factor = 1 + math.ceil(2 * self.sigma2 / (2 * first + 1))
        return Enclosure(0, term.high * factor, bits)

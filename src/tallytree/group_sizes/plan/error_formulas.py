"""Expected errors of group-size tables, from public facts."""

from __future__ import annotations

import math


def omniscient_error(n_distinct_sizes: float, epsilon_level: float) -> float:
    """Expected earth mover's distance of a method that is told which sizes exist (kuo2018 §6.2).

    It only adds Laplace noise of scale 1/ε to the count of each existing size: #sizes · √2/ε, where
    ε is the budget of the level (ε / #levels when levels share equally). The paper prints √(2/ε);
    its own example, 2,352 sizes at 0.1 per level giving 3.3 · 10⁴, fits √2/ε.

    Examples
    --------
    >>> round(omniscient_error(2352, 0.1))
    33262
    """
    return n_distinct_sizes * math.sqrt(2.0) / epsilon_level

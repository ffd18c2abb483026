"""How fast is exact noise, against NumPy's insecure generator, diffprivlib's and OpenDP's exact
one, in the same run?
"""

import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import count

import numpy as np

from tallytree.privacy.noise import DiscreteGaussian, DiscreteLaplace, Noise, draw_noise
from tallytree.privacy.randomness import KeyStream

N_DRAWS = 1 << 23
N_SLOW = 20_000
REPEATS = 5
LAPLACE_SCALES = (1, 10, 1000)
GAUSSIAN_SIGMAS = (1, 10, 1000)


def rate(draw: Callable[[], object], n_draws: int) -> float:
    """Millions of draws a second, the best of a few repeats after a first one that compiles and
    builds tables.
    """
    draw()
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - start)
    return n_draws / best / 1e6


def ours(noise: Noise, region_size: int = N_DRAWS) -> float:
    stream = KeyStream.from_system()
    offsets = np.arange(0, N_DRAWS + 1, region_size)
    level = count()  # no place is drawn twice
    draw = partial(draw_noise, noise, stream, query="benchmark", offsets=offsets)
    return rate(lambda: draw(level=next(level)), int(offsets[-1]))


def numpy_laplace(scale: float) -> float:
    """The difference of two geometric variables: discrete Laplace in floating point, from a
    generator one can predict.
    """
    generator = np.random.default_rng()
    p = -np.expm1(-1 / scale)
    n = N_DRAWS // 8
    return rate(lambda: generator.geometric(p, n) - generator.geometric(p, n), n)


def opendp(make: str, scale: float) -> float:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T=int) if make == "make_laplace" else dp.l2_distance(T=float)
    domain = dp.vector_domain(dp.atom_domain(T=int), size=N_SLOW)
    measurement = getattr(dp.m, make)(domain, metric, scale=float(scale))
    zeros = [0] * N_SLOW
    return rate(lambda: measurement(zeros), N_SLOW)


def diffprivlib(scale: float) -> float:
    """Its geometric mechanism: one value a call, in floating point, from the operating system's
    randomness.
    """
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # scikit-learn's about its own names, which only diffprivlib's models use
        from diffprivlib.mechanisms import Geometric

    mechanism = Geometric(epsilon=1 / scale, sensitivity=1)
    return rate(lambda: [mechanism.randomise(0) for _ in range(N_SLOW)], N_SLOW)


def main() -> dict[str, float]:
    """Millions of draws per second, random bytes included, and the ratios that are promised."""
    figures: dict[str, float] = {}
    for scale in LAPLACE_SCALES:
        exact = ours(DiscreteLaplace(Fraction(scale)))
        figures[f"laplace scale {scale}: million draws a second"] = exact
        figures[f"laplace scale {scale}: times NumPy"] = exact / numpy_laplace(scale)
        figures[f"laplace scale {scale}: times OpenDP"] = exact / opendp("make_laplace", scale)
        figures[f"laplace scale {scale}: times diffprivlib"] = exact / diffprivlib(scale)
    for sigma in GAUSSIAN_SIGMAS:
        exact, slow = ours(DiscreteGaussian(Fraction(sigma**2))), opendp("make_gaussian", sigma)
        figures[f"gaussian sigma {sigma}: million draws a second"] = exact
        figures[f"gaussian sigma {sigma}: times OpenDP"] = exact / slow
    figures["laplace scale 1 in regions of 3: million draws a second"] = ours(
        DiscreteLaplace(Fraction(1)), 3
    )
    figures["laplace scale 2**40: million draws a second"] = ours(
        DiscreteLaplace(Fraction(1 << 40))
    )
    figures["gaussian sigma 2**20: million draws a second"] = ours(
        DiscreteGaussian(Fraction(1 << 40))
    )
    for name, figure in figures.items():
        print(f"   {name:<60} {figure:12,.1f}")
    return figures


if __name__ == "__main__":
    main()

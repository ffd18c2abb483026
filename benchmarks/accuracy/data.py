"""Data sets with groups: real ones from the data folder, and made-up ones with dials."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.real_data import DATA
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.count_of_counts import counts_from_runs
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import hierarchy_from_leaves


@dataclass(frozen=True)
class Dials:
    """Made-up data: a tree, and how sizes are spread.

    ``shape`` says how: "geometric", "power" or "zipf" (with exponent ``tail``), "poisson",
    "uniform", "bimodal" (a tenth of the groups are twenty times as large) or "same" (every group
    has the mean). With ``gap`` g only multiples of g occur; ``heaps`` is the share of groups whose
    size is rounded up to a multiple of 10, ``zeros`` that of empty groups, ``largest`` what larger
    groups are counted as. ``unlike`` says how much mean sizes differ between leaves, ``uneven`` how
    much numbers of groups do, both on a log scale; ``regional`` how much mean sizes differ between
    the regions of every level above the leaves.
    """

    fan_outs: tuple[int, ...] = (20, 30)
    groups: int = 500_000
    mean: float = 2.5
    shape: str = "geometric"
    tail: float = 0.0
    gap: int = 1
    heaps: float = 0.0
    largest: int = 100_000
    zeros: float = 0.0
    unlike: float = 0.2
    uneven: float = 1.0
    regional: float = 0.0


MADE_UP = {
    "made-up geometric": Dials(),
    "made-up power tail": Dials(shape="power", tail=2.5),
    "made-up gaps": Dials(gap=5, mean=12.0),
    "made-up zeros": Dials(zeros=0.7),
    "made-up large groups": Dials(fan_outs=(5, 10), groups=50_000, mean=200.0, unlike=1.0),
    "made-up deep": Dials(fan_outs=(3, 6, 8, 12), groups=1_000_000),
    "made-up tiny leaves": Dials(fan_outs=(50, 100), groups=50_000),
    "made-up bounded": Dials(
        fan_outs=(9, 35, 20), groups=4_000_000, mean=1.4, shape="poisson", largest=8, unlike=0.1
    ),
    "made-up middling": Dials(fan_outs=(10, 40), groups=400_000, mean=30.0, shape="poisson"),
    "made-up uniform": Dials(groups=300_000, mean=50.0, shape="uniform"),
    "made-up heaps": Dials(mean=12.0, heaps=0.5),
    "made-up small": Dials(fan_outs=(5, 8), groups=3_000, mean=5.0),
    "made-up empty leaves": Dials(
        fan_outs=(4, 10, 10, 50), groups=60_000, mean=1.8, uneven=2.5, regional=0.2
    ),
    "made-up few regions": Dials(fan_outs=(10,), groups=3_000, uneven=0.1),
    "made-up bimodal": Dials(fan_outs=(10, 20), groups=100_000, mean=3.0, shape="bimodal"),
    "made-up zipf": Dials(
        fan_outs=(10, 100), groups=200_000, shape="zipf", tail=1.8, largest=20_000
    ),
    "made-up ones": Dials(groups=100_000, mean=1.0, shape="same", unlike=0.0),
    "made-up zones": Dials(
        fan_outs=(9, 3_900),
        groups=3_500_000,
        mean=1.0,
        shape="poisson",
        largest=4,
        uneven=0.3,
        regional=0.2,
    ),
    "made-up regular": Dials(groups=100_000, mean=12.0, shape="same", unlike=0.0),
    "made-up huge groups": Dials(fan_outs=(5, 8), groups=2_000, mean=20_000.0, unlike=0.5),
    "made-up two levels": Dials(fan_outs=(200,), groups=200_000),
    "made-up eight levels": Dials(fan_outs=(2, 3, 2, 3, 2, 3, 2), groups=300_000, regional=0.1),
    "made-up chain": Dials(fan_outs=(1, 1, 1), groups=103, mean=3.0),
    "made-up five groups": Dials(fan_outs=(1, 2), groups=5, mean=3.0),
}


def made_up(dials: Dials, seed: int = 0) -> ConfidentialCounts:
    """Data as the dials say."""
    rng = np.random.default_rng(seed)
    n_leaves = int(np.prod(dials.fan_outs))
    paths = np.array(np.unravel_index(np.arange(n_leaves), dials.fan_outs)).T
    labels = [
        tuple(".".join(map(str, path[: level + 1])) for level in range(len(path)))
        for path in paths.tolist()
    ]
    weights = rng.lognormal(sigma=dials.uneven, size=n_leaves)
    leaf = np.repeat(np.arange(n_leaves), rng.multinomial(dials.groups, weights / weights.sum()))
    mean = dials.mean * rng.lognormal(sigma=dials.unlike, size=n_leaves)[leaf]
    for level in range(1, len(dials.fan_outs) if dials.regional else 0):
        n_regions = int(np.prod(dials.fan_outs[:level]))
        mean *= np.repeat(
            rng.lognormal(sigma=dials.regional, size=n_regions), n_leaves // n_regions
        )[leaf]
    match dials.shape:
        case "power":
            size = np.ceil(mean / dials.mean * rng.pareto(dials.tail, len(leaf))).astype(np.int64)
        case "poisson":
            size = 1 + rng.poisson(mean)
        case "uniform":
            size = rng.integers(1, np.maximum(2 * mean, 2).astype(np.int64))
        case "zipf":
            size = np.ceil(mean / dials.mean * rng.zipf(dials.tail, len(leaf))).astype(np.int64)
        case "bimodal":
            size = rng.geometric(1 / np.maximum(mean, 1.0)) * np.where(
                rng.random(len(leaf)) < 0.1, 20, 1
            )
        case "same":
            size = np.rint(mean).astype(np.int64)
        case _:
            size = rng.geometric(1 / np.maximum(mean / dials.gap, 1.0))
    if dials.heaps:
        size = np.where(rng.random(len(size)) < dials.heaps, -(-size // 10) * 10, size)
    size = np.minimum(dials.gap * np.minimum(size, 100_000), dials.largest)
    size[rng.random(len(size)) < dials.zeros] = 0
    counts = counts_from_runs(leaf, size, np.ones_like(size), n_leaves)
    names = [f"level {level + 1}" for level in range(len(dials.fan_outs))]
    return ConfidentialCounts(
        PublicFacts(hierarchy_from_leaves(names, labels)), counts, counts.n_groups()
    )


def data_sets(folder: Path | None) -> dict[str, Callable[[], ConfidentialCounts]]:
    """Loaders by name."""
    real = {} if folder is None else {name: partial(load, folder) for name, load in DATA.items()}
    return real | {name: partial(made_up, dials) for name, dials in MADE_UP.items()}

"""What an executor does with a piece of the tree: arrays in, arrays out, with the same functions as
a local release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tallytree.group_sizes.estimate.views import estimate_view
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.matching import Runs, match_children
from tallytree.group_sizes.measure.levels import (
    Place,
    measure_regions,
    noisy_largest_size,
    noisy_totals,
)
from tallytree.group_sizes.measure.staircases import measure_first_look, measure_staircases
from tallytree.group_sizes.mechanisms.turns import turns_down
from tallytree.group_sizes.noisy import Groups, NoisyLevel, NoisyQuery
from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.reconcile.matching import counts_of, runs_of
from tallytree.group_sizes.release.noisy_tables import noisy_part
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import NO_ATTRIBUTES
from tallytree.model.count_of_counts import CountsBySize, counts_from_runs, sum_over_regions
from tallytree.model.lattice import Lattice
from tallytree.privacy.randomness import KeyStream
from tallytree.spark.leaf_tasks import (
    described_in,
    noisy_name,
    part_arrays,
    paths_of_leaves,
    prior_from_arrays,
)
from tallytree.spark.pieces import Arrays, Piece, pack, piece_from_arrays, tree_of, unpack
from tallytree.storage.folder import write_part


@dataclass(frozen=True, repr=False)
class Job:
    """What every task of a release needs: the plan, the key of the noise, the number of regions of
    each level, and of groups.

    Never shown and never written: whoever has the key can take the noise off again. ``folder`` is
    where executors write what they answer about leaves.
    """

    plan: Plan
    key: bytes
    secure: bool
    level_sizes: tuple[int, ...]
    max_size: int | None = None
    folder: str = ""
    n_groups: int = 0


def measure_upper_levels(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """Measure the levels down to the cut, from the counts of the regions there; ``runs`` holds
    region, size, count.
    """
    arrays = unpack(public)
    piece = piece_from_arrays(arrays)
    stream = KeyStream.from_key(job.key, secure=job.secure)
    truth = _truth(piece, runs)
    answers: Arrays = {}
    max_size = job.max_size
    if job.plan.largest_size is not None:
        largest = int(truth[-1].largest_size().max(initial=0))
        max_size = min(
            noisy_largest_size(largest, job.plan.largest_size, stream), job.plan.most_sizes
        )
        answers["max_size"] = np.array([max_size])
    for level in range(piece.top, piece.bottom + 1):
        n_groups = arrays[f"groups_{level}"].astype(np.int64)
        place = Place(stream, piece.first[level - piece.top], job.level_sizes[level], job.n_groups)
        noisy = measure_regions(
            truth[level - piece.top], job.plan.levels[level], n_groups, max_size, place
        )
        answers |= noisy_arrays(noisy)
    stream.forget()
    return pack(answers)


def measure_totals(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """Noisy numbers of groups of the regions of a piece, on the levels that are asked for."""
    arrays = unpack(public)
    piece = piece_from_arrays(arrays)
    stream = KeyStream.from_key(job.key, secure=job.secure)
    truth = _truth(piece, runs)
    answers: Arrays = {}
    for level in arrays["asked"].tolist():
        place = Place(stream, piece.first[level - piece.top], job.level_sizes[level])
        exact = truth[level - piece.top].n_groups()
        answers[str(level)] = noisy_totals(exact, job.plan.group_totals[level], level, place)
    stream.forget()
    return pack(answers)


def measure_look(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """The first look at the root, from the counts of the regions at the cut."""
    assert job.plan.first_look is not None
    truth = _truth(piece_from_arrays(unpack(public)), runs)
    stream = KeyStream.from_key(job.key, secure=job.secure)
    look = measure_first_look(truth[0], job.plan.first_look, stream)
    stream.forget()
    return pack({"look": look})


def measure_staircase_level(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """Measure the staircases of one level of a piece, with what the levels above tell about them."""
    return pack(noisy_arrays(_staircases(job, runs, unpack(public))))


def measure_upper_staircases(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """Measure the staircases of all levels of a piece that begins at the root, in turns: what each
    level tells about the next is estimated here too, and by the driver once more, from the answers.
    """
    arrays = unpack(public)
    piece, stream = piece_from_arrays(arrays), KeyStream.from_key(job.key, secure=job.secure)
    tree = tree_of(piece, [level.name for level in job.plan.levels[: piece.bottom + 1]])
    truth, n_groups = _truth(piece, runs), arrays["groups"].astype(np.int64)

    def measure(level: int, prior: Prior) -> NoisyLevel:
        place, groups = Place(stream, 0, job.level_sizes[level]), n_groups[tree.level_slice(level)]
        return measure_staircases(truth[level], job.plan.levels[level], groups, prior, place)

    groups = Groups(Lattice(tree, NO_ATTRIBUTES), n_groups, None)
    root = prior_from_arrays(arrays)
    levels, *_ = turns_down(groups, job.plan, root, measure, tree.n_levels, estimate_last=False)
    stream.forget()
    answers: Arrays = {}
    for noisy in levels:
        answers |= noisy_arrays(noisy)
    return pack(answers)


def measure_leaves(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """The same for the leaves of a piece, whose answers are written here; those of the sample of a
    level are returned.
    """
    arrays = described_in(job.folder, public)
    noisy = _staircases(job, runs, arrays)
    part = write_part(
        Path(job.folder), noisy_name(arrays), noisy_part(noisy, paths_of_leaves(arrays))
    )
    n_rows = np.array([len(noisy["tail"].values)])
    return pack(
        noisy_arrays(noisy.at(arrays["sample"].astype(np.int64)))
        | part_arrays(part)
        | {"n_rows": n_rows}
    )


def _staircases(job: Job, runs: Sequence[IntArray], arrays: Arrays) -> NoisyLevel:
    piece, level = piece_from_arrays(arrays), int(arrays["level"][0])
    stream = KeyStream.from_key(job.key, secure=job.secure)
    place = Place(stream, piece.first[level - piece.top], job.level_sizes[level])
    n_groups = arrays["groups"].astype(np.int64)
    truth = _truth(piece, runs)[level - piece.top]
    noisy = measure_staircases(
        truth, job.plan.levels[level], n_groups, prior_from_arrays(arrays), place
    )
    stream.forget()
    return noisy


def prior_arrays(prior: Prior) -> Arrays:
    """A prior as arrays to pack."""
    return prior._asdict()


def release_subtrees(job: Job, runs: Sequence[IntArray], public: bytes) -> bytes:
    """Measure the levels below the cut and match them with the regions at the cut, which the driver
    has made consistent.

    Returns the measurements and the released counts of the leaves.
    """
    arrays = unpack(public)
    piece = piece_from_arrays(arrays)
    stream = KeyStream.from_key(job.key, secure=job.secure)
    truth = _truth(piece, runs)
    above = _runs_from(arrays)
    answers: Arrays = {}
    for level in range(piece.top + 1, piece.bottom + 1):
        level_plan = job.plan.levels[level]
        if level_plan.query is None:
            continue
        n_groups = arrays[f"groups_{level}"].astype(np.int64)
        place = Place(stream, piece.first[level - piece.top], job.level_sizes[level], job.n_groups)
        noisy = measure_regions(truth[level - piece.top], level_plan, n_groups, job.max_size, place)
        answers |= noisy_arrays(noisy)
        here = runs_of(estimate_view(level_plan, noisy, n_groups))
        starts = piece.child_starts[level - piece.top - 1]
        weighted = job.plan.merge == "weighted"
        above = here if above is None else match_children(above, here, starts, weighted=weighted)
    stream.forget()
    assert above is not None
    leaves = counts_of(above)
    return pack(answers | {"offsets": leaves.offsets, "size": leaves.size, "count": leaves.count})


def _truth(piece: Piece, runs: Sequence[IntArray]) -> list[CountsBySize]:
    """Confidential: exact counts of the piece's regions, level by level, from those of its lowest
    level.
    """
    region, size, count = runs
    first = piece.first[-1]
    levels = [counts_from_runs(region - first, size, count, piece.size(piece.bottom))]
    for level in range(piece.bottom, piece.top, -1):
        levels.append(sum_over_regions(levels[-1], piece.parents(level), piece.size(level - 1)))
    return levels[::-1]


def run_arrays(runs: Runs) -> Arrays:
    """Matched runs as arrays to pack."""
    return {
        "run_offsets": runs.offsets,
        "run_size": runs.size,
        "run_groups": runs.groups,
        "run_variance": runs.variance,
    }


def _runs_from(arrays: Arrays) -> Runs | None:
    if "run_offsets" not in arrays:
        return None
    offsets, size, groups = (
        arrays[f"run_{name}"].astype(np.int64) for name in ("offsets", "size", "groups")
    )
    return Runs(offsets, size, groups, arrays["run_variance"].astype(np.float64))


def noisy_arrays(noisy: NoisyLevel) -> Arrays:
    """The measurements of a level as arrays to pack."""
    arrays: Arrays = {}
    for query in noisy.queries:
        arrays |= {
            f"{noisy.level} {query.name} offsets": query.offsets,
            f"{noisy.level} {query.name}": query.values,
        }
    return arrays


def noisy_level(plan: Plan, level: int, parts: Iterable[Arrays]) -> NoisyLevel:
    """The measurements of a whole level from those of consecutive pieces."""
    parts = list(parts)
    level_plan = plan.levels[level]
    if level_plan.query is None or not parts:
        return NoisyLevel(level, ())
    prefix, suffix = f"{level} ", " offsets"
    names = [
        name.removeprefix(prefix).removesuffix(suffix)
        for name in parts[0]
        if name.startswith(prefix)
    ]
    queries = []
    for name in dict.fromkeys(names):
        values = np.concatenate([part[prefix + name] for part in parts]).astype(
            np.int64, copy=False
        )
        lengths = np.concatenate([np.diff(part[prefix + name + suffix]) for part in parts])
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        queries.append(NoisyQuery(name, level_plan.query.noise, offsets, values))
    return NoisyLevel(level, tuple(queries))

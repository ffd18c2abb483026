"""What an executor does with the leaves of a piece once they are measured: from answers that were
written to counts that it writes. Post-processing: neither exact counts nor a key are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallytree.group_sizes.estimate.largest import Rows
from tallytree.group_sizes.estimate.staircases import (
    Choices,
    MeasuredLevel,
    Staircases,
    estimate_staircases,
)
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.curves import Curves
from tallytree.group_sizes.kernels.sums import Sums
from tallytree.group_sizes.plan.plan import LevelPlan
from tallytree.group_sizes.reconcile.largest import LargestBelow
from tallytree.group_sizes.reconcile.staircases import (
    FromBelow,
    HandedDown,
    Leaves,
    Told,
    finish_leaves,
    sum_leaves,
)
from tallytree.group_sizes.release.noisy_tables import noisy_from_part
from tallytree.group_sizes.release.tables import counts_part
from tallytree.model.arrays import IntArray
from tallytree.model.classes import SizeNames
from tallytree.model.count_of_counts import concatenate, sum_over_regions
from tallytree.releases.checks import differing_regions
from tallytree.releases.region_tables import paths_below
from tallytree.spark.pieces import Arrays, pack, unpack
from tallytree.storage.folder import write_part
from tallytree.storage.parts import PartFile, part_name


@dataclass(frozen=True)
class LeafJob:
    """What every task needs: the folder, the plan of the leaves, and what was chosen once for them.

    What is known of a piece from the beginning lies in the folder, so that neither driver nor Spark
    holds it for all pieces.
    """

    folder: str
    plan: LevelPlan
    choices: Choices
    size_names: SizeNames | None = None
    least_size: int = 0


def tell_about_leaves(job: LeafJob, public: bytes) -> bytes:
    """What the leaves of a piece tell about the regions above them."""
    arrays = described_in(job.folder, public)
    n_groups, leaves = _leaves(job, arrays)
    return pack(told_arrays(sum_leaves(n_groups, leaves)))


def release_leaves(job: LeafJob, public: bytes) -> bytes:
    """Counts of the leaves of a piece, written here, from what the regions above hand down; where
    they are wrong, if so.
    """
    arrays = described_in(job.folder, public)
    n_groups, leaves = _leaves(job, arrays)
    handed = _handed_down(arrays)
    counts = concatenate(finish_leaves(n_groups, leaves, handed)).between(job.least_size, None)
    wrong_totals = np.flatnonzero(counts.n_groups() != n_groups)
    sums = sum_over_regions(counts, _parents(arrays), len(leaves.starts) - 1)
    above = handed.counts(_whole(arrays, "groups_above")).between(job.least_size, None)
    wrong_sums = differing_regions(sums, above)
    name = part_name("counts.parquet", _number(arrays))
    part = write_part(
        Path(job.folder),
        name,
        counts_part(job.plan.level, counts, paths_of_leaves(arrays), job.size_names),
    )
    return pack({"wrong_totals": wrong_totals, "wrong_sums": wrong_sums} | part_arrays(part))


def _leaves(job: LeafJob, arrays: Arrays) -> tuple[IntArray, Leaves]:
    """Numbers of groups of the leaves of a piece, and how to estimate them from the answers in its
    part.
    """
    n_groups, prior = _whole(arrays, "groups"), prior_from_arrays(arrays)
    noisy = noisy_from_part(
        _batches(Path(job.folder) / noisy_name(arrays)), job.plan, paths_of_leaves(arrays)
    )
    measured = MeasuredLevel(noisy, n_groups, prior)

    def estimate(regions: slice) -> Staircases:
        return estimate_staircases(measured.piece(regions), job.choices, is_leaf=True)

    return n_groups, Leaves(_whole(arrays, "families"), estimate, prior.fall.shape[1])


def _batches(file: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(file, read_dictionary=["region", "query"]) as parquet:
        for batch in range(parquet.num_row_groups):
            yield parquet.read_row_group(batch, columns=["region", "query", "value"])


def _whole(arrays: Arrays, name: str) -> IntArray:
    return arrays[name].astype(np.int64, copy=False)


def _number(arrays: Arrays) -> int:
    """Number of a piece's parts; those of the levels above the leaves come first."""
    return 1 + int(arrays["number"][0])


def noisy_name(arrays: Arrays) -> str:
    """Name of the part with the answers of a piece."""
    return part_name("noisy.parquet", _number(arrays))


def describe_in(folder: str | Path, number: int, arrays: Arrays) -> None:
    """Write down what tasks need to know about a piece all along."""
    (Path(folder) / _description(number)).write_bytes(pack(arrays))


def described_in(folder: str | Path, public: bytes) -> Arrays:
    """What was written down about a piece, with what is told about it now."""
    arrays = unpack(public)
    return unpack((Path(folder) / _description(int(arrays["number"][0]))).read_bytes()) | arrays


def _description(number: int) -> str:
    return f"piece-{number:05d}.npz"


def _parents(arrays: Arrays) -> IntArray:
    starts = _whole(arrays, "families")
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def paths_of_leaves(arrays: Arrays) -> pa.LargeStringArray:
    """Paths of the leaves of a piece."""
    return paths_below(
        text_from_arrays(arrays, "paths_above"),
        _parents(arrays),
        text_from_arrays(arrays, "labels"),
    )


def text_arrays(name: str, text: pa.LargeStringArray) -> Arrays:
    """Text as arrays to pack."""
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)[
        text.offset : text.offset + len(text) + 1
    ]
    octets = np.frombuffer(text.buffers()[2] or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    return {f"{name}_offsets": offsets - offsets[0], name: octets}


def text_from_arrays(arrays: Arrays, name: str) -> pa.LargeStringArray:
    """The text that :func:`text_arrays` took apart."""
    offsets, octets = arrays[f"{name}_offsets"], arrays[name]
    return pa.LargeStringArray.from_buffers(
        len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(octets)
    )


def prior_from_arrays(arrays: Arrays) -> Prior:
    """The prior that ``prior_arrays`` took apart."""
    fall, fall_variance, excess = (
        arrays[name].astype(np.float64) for name in ("fall", "fall_variance", "excess")
    )
    return Prior(fall, fall_variance, excess, _whole(arrays, "row"))


def part_arrays(part: PartFile) -> Arrays:
    """What is known about a part, as arrays to pack."""
    return {
        "part_rows": np.array([part.rows]),
        "part_sha256": np.frombuffer(bytes.fromhex(part.sha256), np.uint8),
    }


def part_from_arrays(arrays: Arrays, path: Path) -> PartFile:
    """The part that :func:`part_arrays` is about."""
    return PartFile(path, int(arrays["part_rows"][0]), arrays["part_sha256"].tobytes().hex())


def handed_arrays(handed: HandedDown) -> Arrays:
    """What is handed down to the leaves of a piece, as arrays to pack."""
    return {"shared": handed.shared, "whole": handed.whole, "large": handed.large}


def _handed_down(arrays: Arrays) -> HandedDown:
    return HandedDown(
        arrays["shared"].astype(np.float64, copy=False),
        _whole(arrays, "whole"),
        _whole(arrays, "large"),
    )


def told_arrays(told: Told) -> Arrays:
    """What leaves tell, as arrays to pack."""
    tables = dict(
        zip(("answered", "answered_variance", "summed", "summed_variance"), told.below.tables)
    )
    largest = told.largest
    rows = {
        "rows_offsets": largest.rows.offsets,
        "rows_sizes": largest.rows.sizes,
        "rows_last": largest.rows.last,
    }
    numbers = {"n_rows": np.array([largest.n_rows]), "least_last": np.array([largest.least_last])}
    noise = {"noise": np.array([largest.reach, largest.noise_variance])}
    return {**tables, **rows, "clear": largest.clear, **numbers, **noise}


def told_from_arrays(arrays: Arrays) -> Told:
    """What :func:`told_arrays` took apart."""
    names = ("answered", "answered_variance", "summed", "summed_variance")
    answered, of_answered, summed, of_summed = (
        arrays[name].astype(np.float64, copy=False) for name in names
    )
    below = FromBelow(Sums(answered, of_answered), Curves(summed, of_summed, np.empty((0, 0))))
    rows = Rows(
        _whole(arrays, "rows_offsets"),
        arrays["rows_sizes"].astype(np.float64),
        _whole(arrays, "rows_last"),
    )
    n_rows, least_last = (int(arrays[name][0]) for name in ("n_rows", "least_last"))
    reach, noise_variance = (float(number) for number in arrays["noise"])
    return Told(
        below,
        LargestBelow(rows, _whole(arrays, "clear"), n_rows, least_last, reach, noise_variance),
    )

"""Leaves that executors measure, estimate, round and write; the driver holds the levels above, and
a list of files.

Three jobs on every piece of the tree: measure its leaves and write the answers; tell what these say
about the regions above; release the leaves, from what these regions hand down. Only the first sees
exact counts and the key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.group_sizes.estimate.staircases import (
    MeasuredLevel,
    choose_from_sample,
    sampled_regions,
)
from tallytree.group_sizes.manifest import sizes_up_to
from tallytree.group_sizes.mechanisms.turns import AboveFinest
from tallytree.group_sizes.noisy import Groups
from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.reconcile.largest import joined_below
from tallytree.group_sizes.reconcile.staircases import FromBelow, HandedDown, Told, finish_above
from tallytree.group_sizes.release.noisy_tables import noisy_reader
from tallytree.group_sizes.release.tables import counts_reader
from tallytree.group_sizes.release.written import WrittenTables
from tallytree.model.arrays import IntArray
from tallytree.model.attributes import NO_ATTRIBUTES
from tallytree.model.count_of_counts import counts_on_all_levels
from tallytree.model.hierarchy import LABELS_AT_ONCE, Hierarchy, escape_labels
from tallytree.model.lattice import Lattice
from tallytree.releases.checks import Check, check_counts, where_wrong
from tallytree.releases.progress import Progress
from tallytree.releases.region_tables import path_array
from tallytree.spark.leaf_tasks import (
    LeafJob,
    describe_in,
    handed_arrays,
    part_from_arrays,
    text_arrays,
    told_from_arrays,
)
from tallytree.spark.pieces import Arrays, Piece, pack, piece_arrays
from tallytree.spark.running import run_alone, run_on_rows
from tallytree.spark.tasks import Job, noisy_level, prior_arrays
from tallytree.storage.folder import write_part
from tallytree.storage.memory import give_back
from tallytree.storage.parts import PartFile, Parts, part_name

_COUNTS, _NOISY = "counts.parquet", "noisy.parquet"
# Of what leaves tell, which takes 32 bytes per cell; more is fetched piece by piece.
MOST_CELLS_AT_ONCE = 1 << 21


def write_leaves(
    lower: tuple[Any, list[Piece]],
    hierarchy: Hierarchy,
    groups: Groups,
    job: Job,
    above: AboveFinest,
    measured: Callable[[Plan, IntArray, Parts], None],
    progress: Progress,
) -> WrittenTables:
    """Measure and release the leaves where their rows are, and write everything into the folder of
    the job.

    Parameters
    ----------
    lower
        Confidential rows of the leaves, and the pieces that they are in.
    groups
        Numbers of groups that the release keeps to, and the noisy ones that they follow from.
    above
        What was measured and estimated of the levels above.
    measured
        Told as soon as all answers are written.
    """
    (rows, pieces), folder, level = lower, Path(job.folder), hierarchy.n_levels - 1
    n_groups = groups.n_groups
    tree = _Above(hierarchy, n_groups, pieces)
    for number, piece in enumerate(pieces):
        describe_in(
            folder,
            number,
            tree.described(number) | prior_arrays(above.prior.piece(piece.regions(level))),
        )
    sample = sampled_regions(hierarchy.n_leaves, is_top=above.is_top)
    answers = run_on_rows(
        rows, [pack(each) for each in tree.to_measure(sample)], job, "measure_leaves"
    )
    noisy = (tree.write_noisy(folder, above, groups), *_files(folder, _NOISY, answers))
    give_back()
    measured(above.plan, n_groups, {_NOISY: noisy})

    progress(2 * level + 1, 2 * level + 2, f"estimating {hierarchy.level_names[level]}")
    sampled = MeasuredLevel(
        noisy_level(above.plan, level, answers),
        n_groups[hierarchy.level_slice(level)][sample],
        above.prior.at(sample),
    )
    n_rows = sum(int(each["n_rows"][0]) for each in answers)
    choices = choose_from_sample(sampled, hierarchy.n_leaves, n_rows, is_top=above.is_top)
    named = sizes_up_to(above.plan.max_size, [each.view for each in above.plan.levels])
    estimating = LeafJob(
        job.folder, above.plan.levels[level], choices, named, above.plan.least_size
    )
    public = [pack(_numbered(number)) for number in range(len(pieces))]
    n_sizes = above.prior.fall.shape[1]
    is_large = tree.tree.n_leaves * n_sizes > MOST_CELLS_AT_ONCE
    with run_alone(
        rows.sparkSession, public, estimating, "tell_about_leaves", one_by_one=is_large
    ) as found:
        told = tree.joined(map(told_from_arrays, found), n_sizes)
    handed = finish_above(
        hierarchy, n_groups, above.levels, told, above.looked, above.plan.max_size
    )
    del told
    give_back()

    public = [
        pack(_numbered(number) | tree.handed(number, handed)) for number in range(len(pieces))
    ]
    with run_alone(rows.sparkSession, public, estimating, "release_leaves") as found:
        made = list(found)
    first, checks = tree.finish(folder, handed, made, estimating)
    counts = {_COUNTS: (first, *_files(folder, _COUNTS, made))}
    return WrittenTables(above.plan, n_groups, {_NOISY: noisy}, counts, checks)


def _numbered(number: int) -> Arrays:
    return {"number": np.array([number])}


def _safe_labels(tree: Hierarchy, leaves: slice) -> pa.LargeStringArray:
    """Labels of leaves, made safe inside a path; few of them at a time are Python objects."""
    found = [pa.array([], pa.large_string())]
    for start in range(leaves.start, leaves.stop, LABELS_AT_ONCE):
        some = tree.labels_of(slice(start, min(start + LABELS_AT_ONCE, leaves.stop)))
        found.append(pa.array(escape_labels(some), pa.large_string()))
    return pa.concat_arrays(found)


def _files(folder: Path, table: str, made: list[Arrays]) -> list[PartFile]:
    """The parts that tasks have written, piece by piece; that of the levels above comes before
    them.
    """
    return [
        part_from_arrays(each, folder / part_name(table, 1 + number))
        for number, each in enumerate(made)
    ]


class _Above:
    """The levels above the leaves, and how the pieces of the leaves lie below them."""

    def __init__(self, hierarchy: Hierarchy, n_groups: IntArray, pieces: list[Piece]) -> None:
        self.whole, self.n_groups, self.pieces = hierarchy, n_groups, pieces
        self.level = hierarchy.n_levels - 1
        self.tree = hierarchy.above_leaves()
        self.paths = path_array(self.tree)

    def parents(self, number: int) -> slice:
        """Regions above the leaves of a piece, within their level."""
        return self.pieces[number].regions(self.level - 1)

    def groups_above(self, number: int) -> IntArray:
        """Their numbers of groups."""
        return self.n_groups[self.whole.level_slice(self.level - 1)][self.parents(number)]

    def described(self, number: int) -> Arrays:
        """What tasks need to know about a piece: its families of leaves, their names and numbers of
        groups.
        """
        piece, parents = self.pieces[number], self.parents(number)
        leaves, n_above = piece.regions(self.level), self.tree.n_regions
        leaves = slice(n_above + leaves.start, n_above + leaves.stop)
        first = int(self.tree.level_starts[-2])
        above = self.paths.slice(first + parents.start, parents.stop - parents.start)
        return {
            "families": piece.child_starts[-1],
            "groups": self.n_groups[leaves],
            **text_arrays("labels", _safe_labels(self.whole, leaves)),
            **text_arrays("paths_above", above),
        }

    def to_measure(self, sample: IntArray) -> list[Arrays]:
        """What the task that measures needs besides, with the regions of the sample that lie in
        each piece.
        """
        public = []
        for number, piece in enumerate(self.pieces):
            here = piece.regions(self.level)
            own = sample[(sample >= here.start) & (sample < here.stop)] - here.start
            public.append(
                piece_arrays(piece)
                | _numbered(number)
                | {"level": np.array([self.level]), "sample": own}
            )
        return public

    def write_noisy(self, folder: Path, above: AboveFinest, groups: Groups) -> PartFile:
        """Write the answers of the levels above, and numbers of groups of all levels where they were
        measured.
        """
        noisy = groups.answered(above.noisy_with_look())
        tree, paths = self.tree, self.paths
        if groups.noisy_totals:
            tree, paths = self.whole, path_array(self.whole)
        reader = noisy_reader(Lattice(tree, NO_ATTRIBUTES), noisy, paths)
        return write_part(folder, part_name(_NOISY, 0), reader)

    def joined(self, found: Any, n_sizes: int) -> Told:
        """What all leaves tell, from what each piece does."""
        tables, largest = FromBelow.empty(self.tree.n_leaves, n_sizes), []
        for number, told in enumerate(found):
            tables.write(self.parents(number), told.below)
            largest.append(told.largest)
        return Told(tables, joined_below(largest))

    def handed(self, number: int, handed: HandedDown) -> Arrays:
        """What is handed down to the leaves of a piece."""
        return handed_arrays(handed.piece(self.parents(number))) | {
            "groups_above": self.groups_above(number)
        }

    def finish(
        self, folder: Path, handed: HandedDown, made: list[Arrays], job: LeafJob
    ) -> tuple[PartFile, tuple[Check, ...]]:
        """Write the counts of the levels above, check them, and put together what tasks have
        checked below.
        """
        tree, groups = self.tree, self.n_groups[: self.tree.n_regions]
        counts = counts_on_all_levels(
            tree,
            handed.counts(groups[tree.level_slice(tree.n_levels - 1)]).between(
                job.least_size, None
            ),
        )
        part = write_part(
            folder,
            part_name(_COUNTS, 0),
            counts_reader(Lattice(tree, NO_ATTRIBUTES), counts, self.paths, classes=job.size_names),
        )
        totals, *sums = check_counts(tree, counts, groups, all_totals=True)
        first = {
            name: [p.first[level - p.top] for p in self.pieces]
            for name, level in (("wrong_totals", self.level), ("wrong_sums", self.level - 1))
        }
        wrong = {
            name: np.concatenate(
                [each[name].astype(np.int64) + start for each, start in zip(made, starts)]
            )
            for name, starts in first.items()
        }
        leaves = self.whole.level_slice(self.level).start + wrong["wrong_totals"]
        regions = self.whole.level_slice(self.level - 1).start + wrong["wrong_sums"]
        below, above = self.whole.level_names[self.level], self.whole.level_names[self.level - 1]
        held = totals.passed and not len(leaves)
        detail = totals.detail or where_wrong(self.whole, leaves)
        return part, (
            Check("counts are nonnegative integers", counts.count.dtype == np.int64),
            replace(totals, passed=held, detail=detail),
            *sums,
            Check(
                f"{below} adds up to {above}", not len(regions), where_wrong(self.whole, regions)
            ),
        )

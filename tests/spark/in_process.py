"""Counts that behave as if Spark held them: every task runs in this process, packed and unpacked as
on a cluster.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.spark import counts as on_spark
from tallytree.spark import leaf_tasks, leaves, tasks
from tallytree.spark.counts import SparkCounts
from tallytree.spark.pieces import Arrays, choose_cut, cut_bounds, piece_from_arrays, unpack


class NoTable:
    """Stands for a Spark table of which nothing is asked."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: NoTable()


def in_this_process(truth: ConfidentialCounts, cut: int, n_pieces: int) -> SparkCounts:
    """Counts that tasks in this process look up."""
    bounds = np.unique(
        np.linspace(0, truth.hierarchy.level_size(cut), n_pieces + 1).astype(np.int64)
    )
    public = PublicFacts(truth.hierarchy, least_size=truth.public.least_size)
    return SparkCounts(NoTable(), public, truth.n_groups, cut, bounds)


def running_on(held: list[ConfidentialCounts]) -> Callable[..., list[Arrays]]:
    """What runs a task on the rows of every piece of the counts that are held."""

    def run(
        rows: object, public: list[bytes], job: tasks.Job, task: str, **how: bool
    ) -> list[Arrays]:
        truth = held[0]
        made = []
        for packed in public:
            piece = piece_from_arrays(unpack(packed))
            regions = piece.regions(piece.bottom)
            start = truth.hierarchy.level_starts[piece.bottom]
            here = truth.counts_on_levels.regions(
                slice(int(start) + regions.start, int(start) + regions.stop)
            )
            order = np.random.default_rng(1).permutation(
                len(here.size)
            )  # rows of a Spark table come in any order
            columns = [here.region_of_run() + regions.start, here.size, here.count]
            made.append(
                unpack(getattr(tasks, task)(job, [column[order] for column in columns], packed))
            )
        return made

    return run


@contextmanager
def run_alone(
    session: Any, public: Sequence[bytes], job: object, task: str, **how: bool
) -> Iterator[Iterator[Arrays]]:
    """Run a task on what is public, piece by piece."""
    yield (unpack(getattr(leaf_tasks, task)(job, each)) for each in public)


def held_in_process(
    counts: ConfidentialCounts, patch: pytest.MonkeyPatch, parallelism: int = 3
) -> SparkCounts:
    """Counts as Spark would hold them, whose tasks write to the folder of a release."""
    for module in (on_spark, leaves):
        patch.setattr(module, "run_on_rows", running_on([counts]))
    patch.setattr(leaves, "run_alone", run_alone)
    patch.setattr(on_spark, "share_folder", lambda frame, folder: True)
    hierarchy = counts.hierarchy
    cut = choose_cut(hierarchy, parallelism)
    return SparkCounts(
        frame=NoTable(),
        public=counts.public,
        n_groups=counts.n_groups if counts.public.groups_public else np.zeros(0, dtype=np.int64),
        cut=cut,
        bounds=cut_bounds(hierarchy, cut, parallelism),
    )

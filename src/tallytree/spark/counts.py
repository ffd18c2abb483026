"""Exact counts that lie on a Spark cluster, and a release of them there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tallytree.errors import RequestError
from tallytree.group_sizes.estimate.views import estimate_view
from tallytree.group_sizes.kernels.blocks import Prior
from tallytree.group_sizes.kernels.matching import Runs
from tallytree.group_sizes.measure.views import paid_totals
from tallytree.group_sizes.mechanisms.table import mechanism_named
from tallytree.group_sizes.mechanisms.turns import measure_above, measure_in_turns
from tallytree.group_sizes.noisy import Groups, NoisyCounts, NoisyLevel, totals_by_level
from tallytree.group_sizes.plan.plan import Plan, QueryPlan
from tallytree.group_sizes.plan.traits import NAMES, traits_of
from tallytree.group_sizes.publish import make_release
from tallytree.group_sizes.reconcile.matching import counts_of, match_runs_down, runs_of
from tallytree.group_sizes.release.release import Release, load_release
from tallytree.group_sizes.release.written import WrittenRelease, WrittenTables
from tallytree.ledger.payment import payment_from
from tallytree.model.arrays import IntArray
from tallytree.model.confidential import Confidential
from tallytree.model.count_of_counts import CountsBySize, concatenate
from tallytree.model.facts import PublicFacts
from tallytree.model.hierarchy import Hierarchy
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.privacy.randomness import KeyStream
from tallytree.releases.keeping import Keeping, Target, release_to
from tallytree.releases.progress import Progress, silent
from tallytree.spark.leaves import write_leaves
from tallytree.spark.pieces import Arrays, Piece, cut_piece, pack, piece_arrays
from tallytree.spark.running import run_on_rows, share_folder
from tallytree.spark.tasks import Job, noisy_level, prior_arrays, run_arrays
from tallytree.storage.parts import Parts

# Whose answers are fetched together, some 100 bytes each.
MOST_REGIONS_AT_ONCE = 1 << 19
VIEWS = ("staircase", "hybrid", "cumulative", "sizes", "naive")


@dataclass(frozen=True, eq=False, repr=False)
class SparkCounts(Confidential):
    """Exact counts by size of every leaf, held by Spark.

    Attributes
    ----------
    frame
        Confidential: a Spark table of ``piece``, ``top`` (region at the cut), ``leaf``, ``size``,
        ``n``. It stays where it is.
    public
        What is public about them.
    cut
        Level whose regions head the pieces that tasks work on.
    bounds
        Bounds between the pieces, in regions of that level.
    n_groups
        Groups per leaf: public ones, or none as long as they are confidential and not yet paid for.
    noisy_totals
        What ``n_groups`` follow from, once they were measured.
    """

    frame: Any
    public: PublicFacts
    n_groups: IntArray
    cut: int
    bounds: IntArray
    remarks: tuple[str, ...] = ()
    noisy_totals: tuple[NoisyLevel, ...] = ()

    @property
    def hierarchy(self) -> Hierarchy:
        """Which regions there are."""
        return self.public.hierarchy

    def check_plan(self, plan: Plan) -> None:
        """Refuse what this engine cannot do."""
        views = {level.view for level in plan.levels if level.query is not None}
        runs_here = traits_of(plan.mechanism).distributed
        if not runs_here or not views <= set(VIEWS):
            beyond = f"view {', '.join(sorted(views - set(VIEWS)))}"
            known = ", ".join(name for name in NAMES if traits_of(name).distributed)
            raise RequestError(
                f"The Spark engine cannot run {beyond if runs_here else plan.mechanism!r}. It "
                f"knows the mechanisms {known} with the views "
                f"{', '.join(VIEWS[1:])}; leave out --engine spark for the others."
            )

    def forget(self) -> None:
        """Take the exact counts out of the caches of the executors; another release would count
        again.
        """
        self.frame.unpersist()

    def carry_out(
        self, plan: Plan, stream: KeyStream, progress: Progress
    ) -> tuple[Plan, NoisyCounts, CountsBySize]:
        """Measure on the executors, and match there too; staircases are estimated here, from noisy
        answers.
        """
        if not self.public.groups_public and not self.noisy_totals:
            progress(0, 1, "measuring numbers of groups")
            return self._with_paid_totals(plan, stream).carry_out(plan, stream, progress)
        mechanism = mechanism_named(plan.mechanism)
        if not mechanism.traits.in_turns:
            return (plan, *self._match(plan, stream, progress))
        facts = self.public
        groups = Groups(facts.lattice, self._totals, None, self.noisy_totals)
        there = _There(self, plan, stream)
        measured = measure_in_turns(there, plan, facts, groups, progress)
        estimated = mechanism.estimate(measured, facts, progress)
        return measured.settled.plan, measured.noisy, estimated.leaves

    def carry_out_in(
        self,
        folder: Path,
        plan: Plan,
        stream: KeyStream,
        measured: Callable[[Plan, IntArray, Parts], None],
        progress: Progress,
    ) -> WrittenTables | None:
        """Measure, estimate and round leaves on the executors, which write their answers and counts
        into a folder; the levels above are estimated here. None for other mechanisms, and where
        executors do not share the folder with the driver.
        """
        if (
            not traits_of(plan.mechanism).in_turns
            or self.hierarchy.n_levels == 1
            or not share_folder(self.frame, folder)
        ):
            return None
        if not self.public.groups_public and not self.noisy_totals:
            progress(0, 1, "measuring numbers of groups")
            known = self._with_paid_totals(plan, stream)
            return known.carry_out_in(folder, plan, stream, measured, progress)
        facts = self.public
        groups = Groups(facts.lattice, self._totals, None, self.noisy_totals)
        above = measure_above(_There(self, plan, stream), plan, facts, groups, progress)
        key = stream.lend_key(_of_level(self.hierarchy.n_levels - 1))
        job = Job(above.plan, key, stream.secure, self._level_sizes, plan.max_size, str(folder))
        return write_leaves(self._lower, self.hierarchy, groups, job, above, measured, progress)

    def release_to(
        self,
        folder: str | Path,
        options: ReleaseOptions | None = None,
        *,
        overwrite: bool = False,
        noisy: bool = True,
        progress: Progress = silent,
        **keywords: Any,
    ) -> WrittenRelease | Release:
        """Release to a folder that the driver and all executors share: executors write the rows
        that they make, in part files.

        ``options`` as of :func:`tallytree.release`, or as keywords. Where the folder is not shared,
        or with another mechanism than the default, the driver writes.
        """
        how = ReleaseOptions(**keywords) if options is None else options

        def make(keeping: Keeping) -> WrittenRelease | Release:
            return make_release(self, how, keeping, progress)

        return release_to(Target(folder, overwrite, noisy), make, load_release, payment_from(how))[
            0
        ]

    def _match(
        self, plan: Plan, stream: KeyStream, progress: Progress
    ) -> tuple[NoisyCounts, CountsBySize]:
        """Measure and match on the executors, the levels down to the cut apart from those below it."""
        hierarchy = self.hierarchy
        sizes = self._level_sizes
        n_groups = int(self._totals[0])
        key = stream.lend_key("all levels")
        job = Job(plan, key, stream.secure, sizes, plan.max_size, n_groups=n_groups)
        progress(
            0,
            3,
            f"measuring {' to '.join(dict.fromkeys((plan.levels[0].name, plan.levels[self.cut].name)))}",
        )
        upper = self._measure_upper(job)
        measured_bound = [int(upper["max_size"][0])] if "max_size" in upper else [plan.max_size]
        job = replace(job, max_size=measured_bound[0])
        levels = [noisy_level(plan, level, [upper]) for level in range(self.cut + 1)]
        progress(1, 3, "matching the upper levels")
        runs = self._match_upper(plan, levels)
        if self.cut == hierarchy.n_levels - 1:
            assert runs is not None
            return NoisyCounts(self._totals, tuple(levels), totals=self.noisy_totals), counts_of(
                runs
            )
        progress(2, 3, f"releasing {len(self.bounds) - 1} subtrees")
        parts = self._release_below(job, runs)
        levels += [
            noisy_level(plan, level, parts) for level in range(self.cut + 1, hierarchy.n_levels)
        ]
        leaves = [
            CountsBySize(*(part[name].astype(np.int64) for name in ("offsets", "size", "count")))
            for part in parts
        ]
        return NoisyCounts(self._totals, tuple(levels), totals=self.noisy_totals), concatenate(
            leaves
        )

    def _with_paid_totals(self, plan: Plan, stream: KeyStream) -> SparkCounts:
        """The same with numbers of groups that are estimated from noisy ones, which the executors
        give.
        """
        bottom = self.hierarchy.n_levels - 1
        key = stream.lend_key("numbers of groups")
        job = Job(plan, key, stream.secure, self._level_sizes, plan.max_size)
        rows, piece = self._upper
        noisy = self._noisy_totals(job, rows, [piece], range(self.cut + 1))
        if self.cut < bottom:
            noisy += self._noisy_totals(job, *self._lower, range(self.cut + 1, bottom + 1))
        totals = paid_totals(self.hierarchy, plan, np.concatenate(noisy))
        return replace(
            self,
            n_groups=totals[self.hierarchy.level_slice(bottom)],
            noisy_totals=totals_by_level(
                self.hierarchy, [query.noise for query in plan.group_totals], np.concatenate(noisy)
            ),
        )

    def _noisy_totals(
        self, job: Job, rows: Any, pieces: list[Piece], levels: range
    ) -> list[IntArray]:
        """Noisy numbers of groups of some levels, level by level."""
        public = [pack(piece_arrays(piece) | {"asked": np.array(levels)}) for piece in pieces]
        many = self._level_sizes[levels[-1]] > MOST_REGIONS_AT_ONCE
        made = run_on_rows(rows, public, job, "measure_totals", one_by_one=many)
        return [
            np.concatenate([part[str(level)] for part in made]).astype(np.int64) for level in levels
        ]

    @cached_property
    def _totals(self) -> IntArray:
        """Number of groups of every region, public or paid for."""
        return self.hierarchy.sum_from_leaves(self.n_groups)

    @cached_property
    def _level_sizes(self) -> tuple[int, ...]:
        return tuple(self.hierarchy.level_size(level) for level in range(self.hierarchy.n_levels))

    @cached_property
    def _upper(self) -> tuple[Any, Piece]:
        """Confidential rows of the regions at the cut, for one task, and the piece from the root
        down to them.
        """
        counted = self.frame.groupBy("top", "size").sum("n").withColumnRenamed("sum(n)", "n")
        rows = counted.selectExpr("0L as piece", "top as region", "size", "n")
        return rows, cut_piece(self.hierarchy, 0, self.cut, 0, 1)

    @cached_property
    def _lower(self) -> tuple[Any, list[Piece]]:
        """Confidential rows of the leaves, and the pieces from the cut down to them."""
        bottom, bounds = self.hierarchy.n_levels - 1, self.bounds.tolist()
        pieces = [
            cut_piece(self.hierarchy, self.cut, bottom, start, stop)
            for start, stop in pairwise(bounds)
        ]
        return self.frame.selectExpr("piece", "leaf as region", "size", "n"), pieces

    def _measure_upper(self, job: Job) -> Arrays:
        """Noisy measurements of the levels down to the cut, made in one task."""
        rows, piece = self._upper
        public = [pack(piece_arrays(piece) | self._groups(piece, range(self.cut + 1)))]
        return run_on_rows(rows, public, job, "measure_upper_levels")[0]

    def _match_upper(self, plan: Plan, levels: list[NoisyLevel]) -> Runs | None:
        """Matched groups of the regions at the cut; None where the upper levels are not measured."""
        leaves_alone = traits_of(plan.mechanism).split == "leaves"
        if leaves_alone and self.cut < self.hierarchy.n_levels - 1:
            return None
        totals = [self._totals[self.hierarchy.level_slice(level)] for level in range(self.cut + 1)]
        measured = [self.cut] if leaves_alone else range(self.cut + 1)
        estimates = [
            estimate_view(plan.levels[level], levels[level], totals[level]) for level in measured
        ]
        if leaves_alone:
            return runs_of(estimates[0])
        return match_runs_down(self.hierarchy, estimates, merge=plan.merge)

    def _release_below(self, job: Job, runs: Runs | None) -> list[Arrays]:
        """Measurements and released leaves of each piece, made where its rows are."""
        rows, pieces = self._lower
        below = range(self.cut + 1, self.hierarchy.n_levels)
        public = []
        for piece, start, stop in zip(pieces, self.bounds[:-1], self.bounds[1:]):
            arrays = piece_arrays(piece) | self._groups(piece, below)
            public.append(
                pack(
                    arrays
                    | ({} if runs is None else run_arrays(_some(runs, int(start), int(stop))))
                )
            )
        return run_on_rows(rows, public, job, "release_subtrees", one_by_one=True)

    def measure_upper_staircases(self, job: Job, root: Prior) -> dict[int, NoisyLevel]:
        """Noisy blocks and rows of the levels down to the cut, answered in one task; ``root`` is
        what the first look tells.
        """
        rows, piece = self._upper
        groups = np.concatenate([self._of_level(level) for level in range(self.cut + 1)])
        public = [pack(piece_arrays(piece) | prior_arrays(root) | {"groups": groups})]
        answers = run_on_rows(rows, public, job, "measure_upper_staircases")
        return {level: noisy_level(job.plan, level, answers) for level in range(self.cut + 1)}

    def measure_staircases(self, job: Job, level: int, prior: Prior) -> NoisyLevel:
        """Those of a level below the cut, answered where its rows are; ``prior`` is what levels
        above tell about it.
        """
        rows, pieces = self._lower
        public = [
            pack(
                piece_arrays(piece)
                | prior_arrays(prior.piece(piece.regions(level)))
                | {
                    "level": np.array([level]),
                    "groups": self._of_level(level)[piece.regions(level)],
                }
            )
            for piece in pieces
        ]
        one_by_one = self._level_sizes[level] > MOST_REGIONS_AT_ONCE
        answers = run_on_rows(rows, public, job, "measure_staircase_level", one_by_one=one_by_one)
        return noisy_level(job.plan, level, answers)

    def measure_first_look(self, job: Job) -> IntArray:
        """The first look at the root, answered in one task."""
        rows, piece = self._upper
        return run_on_rows(rows, [pack(piece_arrays(piece))], job, "measure_look")[0][
            "look"
        ].astype(np.int64)

    def _groups(self, piece: Piece, levels: range) -> Arrays:
        return {f"groups_{level}": self._of_level(level)[piece.regions(level)] for level in levels}

    def _of_level(self, level: int) -> IntArray:
        """Numbers of groups of the regions of a level."""
        return self._totals[self.hierarchy.level_slice(level)]

    def _shown(self) -> str:
        return repr(self.hierarchy)


@dataclass(frozen=True, eq=False, repr=False)
class _There(Confidential):
    """Counts that Spark holds, for the turns of the adaptive mechanism."""

    counts: SparkCounts
    plan: Plan
    stream: KeyStream
    upper: dict[int, NoisyLevel] = field(default_factory=dict)

    def _job(self, plan: Plan, work: str) -> Job:
        key, sizes = self.stream.lend_key(work), self.counts._level_sizes
        return Job(plan, key, self.stream.secure, sizes, plan.max_size)

    def first_look(self, query: QueryPlan) -> IntArray:
        return self.counts.measure_first_look(self._job(self.plan, "the first look"))

    def level(self, plan: Plan, place: int, prior: Prior) -> NoisyLevel:
        if place > self.counts.cut:
            return self.counts.measure_staircases(self._job(plan, _of_level(place)), place, prior)
        # the first level that is measured: all that is known about it is what the root's look tells
        if not self.upper:
            root = prior._replace(row=prior.row[:1])
            job = self._job(plan, "the levels down to the cut")
            self.upper.update(self.counts.measure_upper_staircases(job, root))
        return self.upper[place]


def _of_level(level: int) -> str:
    """The work of measuring a level below the cut; the key is lent for it once."""
    return f"level {level}"


def _some(runs: Runs, start: int, stop: int) -> Runs:
    """The runs of consecutive regions alone."""
    here = runs.offsets[start : stop + 1]
    part = slice(here[0], here[-1])
    return Runs(here - here[0], runs.size[part], runs.groups[part], runs.variance[part])

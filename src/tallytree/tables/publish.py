"""Releasing a table: read, plan, pay, measure, estimate, reconcile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tallytree.errors import RequestError
from tallytree.model.confidential_table import ConfidentialTable
from tallytree.options.groups import Saving, rows_to_read
from tallytree.options.spelled import spelled
from tallytree.options.tables import TableOptions
from tallytree.releases.keeping import Keeping, Target, paid_noise, released
from tallytree.releases.progress import Progress, silent
from tallytree.releases.published import NO_MEASUREMENTS
from tallytree.releases.region_tables import hierarchy_of_folder, regions_reader
from tallytree.storage.folder import Folder, Manifest
from tallytree.tables.cells import LevelCells
from tallytree.tables.estimate import Estimates
from tallytree.tables.manifest import plan_from_manifest, table_manifest
from tallytree.tables.measure import NoisyTable, measure_table
from tallytree.tables.noisy_tables import noisy_from_folder, noisy_reader
from tallytree.tables.plan import TablePlan, plan_table, refuse_many_tables
from tallytree.tables.reconcile import whole_table
from tallytree.tables.release import TableRelease, load_table, table_release


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TableKeywords(TableOptions, Saving):
    """The keywords of :func:`table`: its options, and where the release goes."""

    progress: Progress = silent


@spelled(TableKeywords)
def table(
    source: Any,
    options: TableOptions,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    noisy: bool = True,
    progress: Progress = silent,
) -> TableRelease:
    """Release how many rows every region has by attributes, with a differential privacy guarantee.

    Parameters
    ----------
    source
        A table of any form that :func:`tallytree.read` takes, one row per person, job, case ….
    options
        What to count and how; may be spelled as keywords, ``table(people, levels=["state"],
        by={"sex": ["f", "m"]}, epsilon=1)``.
    out, overwrite, noisy, progress
        As for :func:`tallytree.release`.

    Returns
    -------
    TableRelease
        Whole numbers of at least 0 that add up over regions and over values.

    Examples
    --------
    >>> import pyarrow as pa
    >>> rows = pa.table({"state": ["GA", "GA", "NY"], "sex": ["f", "m", "f"]})
    >>> made = tt.table(rows, levels=["state"], by={"sex": ["f", "m"]}, epsilon=1)
    >>> made.count() == made.count(sex="f") + made.count(sex="m") + made.count(sex="other")
    True
    """

    def make(keeping: Keeping) -> TableRelease:
        return make_table(source, options, keeping, progress)

    return released(options, Target(out, overwrite, noisy), make, load_table)


def make_table(
    source: Any, options: TableOptions, keeping: Keeping, progress: Progress = silent
) -> TableRelease:
    """Read, plan, pay, measure and estimate."""
    from tallytree.ingest.tables import read_table, values_of  # loads Ibis and DuckDB

    counts = source
    if not isinstance(source, ConfidentialTable):
        refuse_many_tables(values_of(options), 1)
        counts = read_table(source, options, rows_to_read(options.where, options))
    plan = plan_table(options, counts.public)
    manifest = table_manifest(plan, options, secure=options.insecure_seed is None)
    tell = counts.altered if options.tell_owner else None
    with paid_noise(
        keeping, manifest, options.insecure_seed, read=counts, n_answers=n_answers(plan), tell=tell
    ) as paid:
        noisy = measure_table(counts, plan, paid.stream, progress)
        paid.measured(paid.manifest, measured_tables(plan, noisy))
    return table_from_noisy(plan, noisy, paid.manifest, progress)


def n_answers(plan: TablePlan) -> int:
    """How many numbers are measured."""
    tree = plan.facts.hierarchy
    return sum(
        tree.level_size(table.key.level) * len(plan.drawn(table.key.parts)) for table in plan.tables
    )


def measured_tables(plan: TablePlan, noisy: Sequence[NoisyTable]) -> dict[str, Any]:
    """What was measured, and the regions: enough to estimate the release."""
    return {
        "noisy.parquet": noisy_reader(plan, noisy),
        "regions.parquet": regions_reader(plan.facts.hierarchy),
    }


def table_from_noisy(
    plan: TablePlan,
    noisy: Sequence[NoisyTable],
    manifest: Manifest,
    progress: Progress = silent,
) -> TableRelease:
    """The table that follows from raw measurements: post-processing only."""
    leaves = LevelCells(*whole_table(plan, Estimates(plan, noisy), progress))
    return table_release(plan, leaves, manifest, tuple(noisy))


def estimate_table(folder: Folder) -> TableRelease:
    """A table estimated again from the raw measurements of a folder."""
    if not folder.has("noisy.parquet"):
        raise RequestError(NO_MEASUREMENTS)
    plan = plan_from_manifest(folder.manifest, hierarchy_of_folder(folder))
    return table_from_noisy(plan, noisy_from_folder(plan, folder), folder.manifest)

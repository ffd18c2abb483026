"""Releasing a table of values: read, share the budget out, and count rows in bins of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

from tallytree.group_sizes.plan.traits import traits_of
from tallytree.group_sizes.publish import estimate_group_sizes, make_counts
from tallytree.group_sizes.values.intervals import with_statistics_intervals
from tallytree.group_sizes.values.release import ValuesRelease, load_values, values_release
from tallytree.ingest.read import read_values
from tallytree.model.confidential import ConfidentialCounts
from tallytree.model.facts import PublicFacts
from tallytree.options.choices import Split
from tallytree.options.group_sizes import ReleaseOptions
from tallytree.options.groups import Releasing, Saving, rows_to_read
from tallytree.options.spelled import spelled
from tallytree.options.values import ValuesOptions
from tallytree.privacy.budget import Exact
from tallytree.releases.keeping import Keeping, Target, check_copies, released
from tallytree.releases.progress import Progress, silent
from tallytree.storage.folder import Folder

# Shares are whole numbers of so many parts.
_PARTS = 1000


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ValuesKeywords(ValuesOptions, Saving):
    """The keywords of :func:`values`: its options, where the release goes, and what is neither."""

    intervals: int = 40
    progress: Progress = silent


@spelled(ValuesKeywords)
def values(
    source: Any,
    options: ValuesOptions,
    *,
    out: str | Path | None = None,
    overwrite: bool = False,
    noisy: bool = True,
    intervals: int = 40,
    progress: Progress = silent,
) -> ValuesRelease:
    """Release sums, means, medians, quantiles and the whole distribution of a value, in every
    region, with a differential privacy guarantee; all of them agree.

    Parameters
    ----------
    source
        A table with one value per row, in any form that :func:`tallytree.read` takes.
    options
        What the rows are and how to release them; may be spelled as keywords.
    out, overwrite, noisy
        The folder to write, and how; as for :func:`tallytree.release`.
    intervals
        Simulated releases behind the standard errors and intervals of all statistics; 0 leaves them
        out. They cost no privacy.
    progress
        Called at each step.

    Returns
    -------
    ValuesRelease
        Nonnegative whole numbers of rows by value, children adding up to parents, and what follows
        from them.

    Examples
    --------
    >>> import pyarrow as pa
    >>> jobs = pa.table({"pay": [10, 20, 20, 55, 70], "state": ["GA", "GA", "GA", "NY", "NY"]})
    >>> pay = tt.values(jobs, value="pay", step=10, max=100, levels=["state"], epsilon=2)
    >>> pay.statistics_table()["statistic"][:3].to_pylist()
    ['rows', 'sum', 'mean']
    """

    def make(keeping: Keeping) -> ValuesRelease:
        return make_values(source, options, keeping, progress)

    return released(options, Target(out, overwrite, noisy, intervals), make, load_values)


def make_values(
    source: Any, options: ValuesOptions, keeping: Keeping, progress: Progress = silent
) -> ValuesRelease:
    """Read, pay, measure and estimate."""
    if keeping.intervals:
        check_copies(keeping.intervals)
    options = replace(options, where=rows_to_read(options.where, options))
    return release_values(read_values(source, options), options, keeping, progress)


def release_values(
    counts: ConfidentialCounts,
    options: ValuesOptions,
    keeping: Keeping,
    progress: Progress = silent,
) -> ValuesRelease:
    """The same of values that were read."""
    how = {field.name: getattr(options, field.name) for field in fields(Releasing)}
    asked = ReleaseOptions(**how, budget=shares_of(options.budget, counts.public))
    made = values_release(make_counts(counts, asked, keeping, progress))
    if not keeping.intervals:
        return made
    return with_statistics_intervals(made, copies=keeping.intervals, progress=progress)


def shares_of(budget: Split | Sequence[Exact], facts: PublicFacts) -> Split | Sequence[Exact]:
    """The shares of the measured tables, root first, where none are given: in proportion to n^¾, n
    the number of regions × values of attributes in each.

    Sums over what lies below lend the upper levels their accuracy, and they have more rows with a
    value to begin with; so most goes to the leaves.
    """
    if budget != "auto":
        return budget
    lattice = facts.lattice
    families = traits_of("size-bins").families(lattice)
    weights = [isqrt(isqrt(lattice.n_rows(family) ** 3 * _PARTS**4)) for family in families]
    above = [max(1, _PARTS * weight // sum(weights)) for weight in weights[:-1]]
    return tuple(Fraction(part, _PARTS) for part in (*above, _PARTS - sum(above)))


def estimate_values(folder: Folder) -> ValuesRelease:
    """A table of values from the raw measurements of a folder, estimated again."""
    return values_release(estimate_group_sizes(folder))

"""A release of group sizes whose rows other machines have written: part files, and what is known
about them all together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from tallytree.group_sizes.plan.plan import Plan
from tallytree.group_sizes.release.release import Release, load_release
from tallytree.model.arrays import IntArray
from tallytree.model.hierarchy import Hierarchy
from tallytree.releases.checks import Check, Verification
from tallytree.releases.opening import open_folder
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.releases.region_tables import regions_reader
from tallytree.storage.folder import Manifest, write_folder
from tallytree.storage.parts import Parts
from tallytree.storage.work import Work


@dataclass(frozen=True, eq=False)
class WrittenTables:
    """Tables of a release in part files.

    Attributes
    ----------
    plan
        With the split that was chosen.
    n_groups
        Number of groups of every region that the release keeps to.
    noisy, counts
        Parts of the raw measurements and of the released counts.
    checks
        What was checked about the counts by those who wrote them.
    """

    plan: Plan
    n_groups: IntArray
    noisy: Parts
    counts: Parts
    checks: tuple[Check, ...]


@dataclass(frozen=True, eq=False)
class WrittenRelease(Published):
    """A release that was written in parts. Its rows stay on disk until it is asked for them; then
    it is loaded.

    Attributes
    ----------
    hierarchy
        The regions.
    manifest
        Everything that ``manifest.json`` holds.
    written
        Its tables.
    place
        The folder of the release, once it is there.
    """

    kind: ClassVar[str] = Release.kind
    title: ClassVar[str] = Release.title
    answers: ClassVar[frozenset[str]] = Release.answers

    hierarchy: Hierarchy
    manifest: Manifest
    written: WrittenTables
    place: Path

    @property
    def n_rows(self) -> int:
        """Rows of the released table."""
        return sum(part.rows for files in self.written.counts.values() for part in files)

    @cached_property
    def loaded(self) -> Release:
        """The release in memory, from its folder."""
        return load_release(open_folder(self.place))

    def table(self) -> pa.Table:
        """All counts as an Arrow table: level, region, size, count."""
        return self.loaded.table()

    def tables(self, *, noisy: bool) -> dict[str, pa.RecordBatchReader | pa.Table]:
        """Tables that are not written in parts: the regions."""
        return {"regions.parquet": regions_reader(self.hierarchy, self.written.n_groups)}

    def verify(self) -> Verification:
        """What was checked by those who wrote the tables; :func:`tallytree.verify` reads all files
        again.
        """
        return Verification(self.written.checks)

    def _reply(self, question: Question) -> Reply:
        return self.loaded.reply(question)

    def save(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        noisy: bool = True,
        work: Work | None = None,
    ) -> Path:
        """Put the parts together in their place; elsewhere, write a copy of the release."""
        if work is None:
            return self.loaded.save(path, overwrite=overwrite, noisy=noisy)
        parts = {**self.written.counts, **(self.written.noisy if noisy else {})}
        return write_folder(path, self.tables(noisy=noisy), self.manifest, work=work, parts=parts)

    def __repr__(self) -> str:
        return self._described(repr(self.hierarchy))

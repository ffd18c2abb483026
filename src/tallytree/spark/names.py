"""Names of leaves that are streamed from Spark into a file, in their order: the driver keeps
numbers of them alone.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tallytree.ingest import counting
from tallytree.ingest.regions import Regions, label_array, repeated_labels
from tallytree.model.arrays import IntArray, LabelArray, read_only
from tallytree.model.hierarchy import Hierarchy, hierarchy_from_columns


class NamesOnDisk:
    """Labels of leaves in a file without a name, which is gone with this object. They are public."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="tallytree-")  # noqa: SIM115  (open as long as the names are wanted)
        weakref.finalize(self, self._file.close)
        self._starts, self._places = [0], [0]

    def add(self, labels: pa.Array) -> None:
        """Add the labels that follow."""
        batch = pa.record_batch([labels], names=["label"])
        with pa.ipc.new_stream(self._file, batch.schema) as stream:
            stream.write_batch(batch)
        self._starts.append(self._starts[-1] + len(labels))
        self._places.append(self._file.tell())

    def __getitem__(self, leaves: slice) -> LabelArray:
        """Labels of consecutive leaves."""
        start, stop, _ = leaves.indices(self._starts[-1])
        found = [np.empty(0, dtype=object)]
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        for batch in range(first, len(self._starts) - 1):
            begin = self._starts[batch]
            if begin >= stop:
                break
            self._file.seek(self._places[batch])
            with pa.ipc.open_stream(self._file) as stream:
                labels = stream.read_next_batch()["label"]
            found.append(
                labels.slice(max(0, start - begin), stop - max(start, begin)).to_numpy(
                    zero_copy_only=False
                )
            )
        return np.concatenate(found)


class NamedOnDisk(Hierarchy):
    """A hierarchy whose leaves are named in a file; their labels come into memory when all are
    asked for at once.
    """

    def __init__(self, above: Hierarchy, leaf: str, parent: IntArray, names: NamesOnDisk) -> None:
        """Leaves below the regions of the last level of ``above``, in whose level ``parent``
        numbers them.
        """
        starts = np.append(above.level_starts, above.n_regions + len(parent))
        fields = {
            "level_names": (*above.level_names, leaf),
            "level_starts": read_only(starts),
            "parent": read_only(np.concatenate([above.parent, above.level_starts[-2] + parent])),
            "above": above,
            "names": names,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    above: Hierarchy
    names: NamesOnDisk

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies hold their labels in memory: the file is of this process alone."""
        return Hierarchy, (self.level_names, self.level_starts, self.parent, self.labels)

    @cached_property
    def labels(self) -> LabelArray:
        """Own label of each region."""
        return read_only(self.labels_of(slice(0, self.n_regions)))

    def labels_of(self, regions: slice) -> LabelArray:
        """Labels of consecutive regions."""
        n_above = self.above.n_regions
        leaves = slice(max(0, regions.start - n_above), max(0, regions.stop - n_above))
        return np.concatenate([self.above.labels[regions], self.names[leaves]])

    def above_leaves(self) -> Hierarchy:
        """The same regions without the last level."""
        return self.above


def regions_from_stream(
    batches: Iterable[pa.Table], level_names: Sequence[str], root: str
) -> Regions | None:
    """As ``regions_from_leaves``, from leaves that come in their order, with a hash of their labels
    as key (``k0``) and one of the last label (``own``). None where something is wrong: two have one
    key or one name, or a label is missing.
    """
    texts = [f"t{level}" for level in range(len(level_names))]
    names, n_leaves, last = NamesOnDisk(), 0, [""] * len(texts)
    parents: list[IntArray] = []
    keys, hashes, opening = [], [], []
    for batch in batches:
        if any(batch[text].null_count for text in texts):
            return None
        columns = [label_array(batch[text]) for text in texts[:-1]]
        opens = np.zeros(len(batch), dtype=bool)
        opens[:1] = n_leaves == 0
        for column, before in zip(columns, last):
            opens |= column != np.array(
                [before, *column[:-1]], dtype=object
            )  # NumPy's texts lose a NUL at their end
        own, before = batch[texts[-1]].combine_chunks(), pa.array(last[-1:], batch[texts[-1]].type)
        same = pc.equal(own, pa.concat_arrays([before, own[:-1]])).to_numpy(zero_copy_only=False)
        if np.any(same & ~opens):
            return None
        last = [batch[text][-1].as_py() for text in texts]
        parents.append(np.cumsum(opens) + (parents[-1][-1] if parents else -1))
        opening.append([column[opens] for column in columns])
        keys.append(batch["k0"].to_numpy())
        hashes.append(batch["own"].to_numpy())
        names.add(own)
        n_leaves += len(batch)
    key = np.concatenate(keys) if keys else np.empty(0)
    del keys
    if not n_leaves or not counting.all_different(key):
        return None
    above = hierarchy_from_columns(
        level_names[:-1], [np.concatenate(column) for column in zip(*opening)], root=root
    )
    hierarchy = NamedOnDisk(above, level_names[-1], np.concatenate(parents), names)
    n_distinct = [
        len(set(above.labels[above.level_slice(level)])) for level in range(1, above.n_levels)
    ]
    is_repeated = _some_repeated(np.concatenate(hashes), names)
    leaf_of_key = pa.table({"k0": key, "leaf": np.arange(n_leaves)})
    return Regions(
        hierarchy, leaf_of_key, repeated_labels(hierarchy, [*n_distinct, n_leaves - is_repeated])
    )


def _some_repeated(hashes: IntArray, names: NamesOnDisk) -> bool:
    """Whether two leaves have one label, which those with different hashes have not."""
    order = np.argsort(hashes, kind="stable")
    bounds = np.flatnonzero(
        np.concatenate(([True], hashes[order[1:]] != hashes[order[:-1]], [True]))
    )
    several = np.flatnonzero(np.diff(bounds) > 1).tolist()
    return any(_repeats(names, order[bounds[run] : bounds[run + 1]]) for run in several)


def _repeats(names: NamesOnDisk, leaves: IntArray) -> bool:
    """Whether two of some leaves have one label; seen at the second nearly always."""
    seen: set[str] = set()
    for leaf in leaves.tolist():
        label = str(names[leaf : leaf + 1][0])
        if label in seen:
            return True
        seen.add(label)
    return False

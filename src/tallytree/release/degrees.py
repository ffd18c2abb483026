"""A released unattributed histogram: sorted counts, such as the degrees of a graph, and the manifest of their
origin."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tallytree.errors import RequestError, TallytreeError, VerificationError
from tallytree.estimate.unattributed import check_method, publishable_degrees
from tallytree.kernels.graphical import is_graphical
from tallytree.measure.sorted_counts import ConfidentialSizes
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.notebook import html_table
from tallytree.privacy.accounting import MechanismRecord, record_to_json
from tallytree.privacy.budget import Budget, noise_for
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.release.checks import Check, Verification
from tallytree.release.histogram_manifest import describe_noise, privacy_statement
from tallytree.release.manifest import kept_rows
from tallytree.storage.folder import Manifest, changed_files, read_manifest, read_table, write_folder
from tallytree.storage.versions import library_versions

KIND = "degrees"


@dataclass(frozen=True, eq=False)
class DegreeSequence:
    """How large the groups are, or how many edges the nodes have, without saying which is which.

    Attributes
    ----------
    degrees
        Published counts, one per group or node, in rising order.
    noise
        The noise of each raw measurement.
    manifest
        Method, privacy, what is public: everything that ``manifest.json`` will hold.
    noisy
        The raw measurements, or None when they were left out.
    """

    degrees: IntArray
    noise: Noise
    manifest: Manifest
    noisy: IntArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        read_only(self.degrees)
        if self.noisy is not None:
            read_only(self.noisy)

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness; False for experiments with ``insecure_seed``."""
        return bool(self.manifest["privacy"]["private"])

    def of_degree(self, degree: int) -> int:
        """How many nodes have exactly this degree."""
        return int(np.count_nonzero(self.degrees == degree))

    def at_least(self, degree: int) -> int:
        """How many nodes have at least this degree."""
        return int(np.count_nonzero(self.degrees >= degree))

    def kth_largest(self, k: int) -> int:
        """The k-th largest degree, counting from 1."""
        if not 1 <= k <= len(self.degrees):
            raise RequestError(f"k lies between 1 and the {len(self.degrees)} nodes, got {k}.")
        return int(np.sort(self.degrees)[-k])

    def total(self) -> int:
        """Sum of all degrees."""
        return int(self.degrees.sum())

    def is_graphical(self) -> bool:
        """Whether some simple undirected graph has these degrees (Erdős and Gallai)."""
        return is_graphical(self.degrees)

    def table(self) -> pa.Table:
        """How many nodes have each degree, as an Arrow table: degree, count."""
        degree, count = np.unique(self.degrees, return_counts=True)
        return pa.table({"degree": degree, "count": count})

    def verify(self) -> Verification:
        """Check that degrees are as promised and follow from the raw measurements, where these are at hand."""
        promised = self.manifest["method"]
        n_nodes = int(self.manifest["public"]["groups"])
        checks = [Check("there is one degree per group", len(self.degrees) == n_nodes)]
        if promised["name"] != "noisy":
            checks.append(Check("degrees are not negative", bool(self.degrees.min(initial=0) >= 0)))
        if promised["graphical"]:
            checks.append(Check("some graph has these degrees", self.is_graphical()))
        if self.noisy is not None:
            again = publishable_degrees(self.noisy, check_method(promised["name"]), graphical=promised["graphical"])
            # A tie may be rounded the other way on another machine.
            follow = len(again) == len(self.degrees) and bool(np.abs(again - self.degrees).max(initial=0) <= 1)
            checks.append(Check("degrees follow from the noisy answers", follow))
        return Verification(tuple(checks))

    def save(self, path: str | Path, *, overwrite: bool = False, noisy: bool = True) -> Path:
        """Write the sequence as a folder; ``noisy=False`` leaves the raw measurements out."""
        tables = {"counts.parquet": self.table()}
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = pa.table(
                {
                    "level": np.zeros(len(self.noisy), dtype=np.int64),
                    "query": pa.array(["sorted"] * len(self.noisy)).dictionary_encode(),
                    "index": np.arange(len(self.noisy)),
                    "value": self.noisy,
                }
            )
        return write_folder(path, tables, self.manifest, overwrite=overwrite)

    def __repr__(self) -> str:
        privacy = self.manifest["privacy"]
        loss = ", ".join(f"{name} = {privacy[name]}" for name in ("epsilon", "rho") if name in privacy)
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        return f"DegreeSequence({len(self.degrees):,} nodes, {self.manifest['method']['name']}, {loss}{mark})"

    def _repr_html_(self) -> str:
        degree, count = np.unique(self.degrees, return_counts=True)
        rows = zip(degree.tolist(), count.tolist())
        caption = f"Degree sequence of {len(self.degrees):,} nodes"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, ["degree", "nodes"], rows, n_rows=len(degree), note=note)


def degrees_manifest(
    sizes: ConfidentialSizes, budget: Budget, noise: Noise, *, method: dict[str, Any], n_groups: int, secure: bool
) -> Manifest:
    """Everything that ``manifest.json`` says about a degree sequence, all of it public."""
    bound = sizes.sensitivity
    record = MechanismRecord(method["name"], None, sizes.query, sizes.unit, bound, noise, budget.total)
    return {
        "kind": KIND,
        "method": method,
        "privacy": {
            "private": secure,
            "definition": budget.definition,
            budget.symbol: str(budget.total),
            "unit": sizes.unit,
            "unit_column": sizes.unit_column or None,
            "unit_name": sizes.unit_name,
            "unit_rows": "one" if sizes.one_row and sizes.contributions == 1 else "several",
            "contributions": sizes.contributions,
            "neighbours": "add or remove one unit",
            "statement": privacy_statement(budget, sizes.unit, secure=secure),
            "sensitivity": {"l1": bound.l1, "l2_squared": bound.l2_squared},
            **describe_noise(noise),
            "composition": record_to_json(record),
        },
        "public": {"groups": n_groups, "max_quantity": sizes.max_quantity, "note": sizes.note},
        **kept_rows(sizes.part),
        "versions": library_versions(),
    }


def load_degrees(path: str | Path) -> DegreeSequence:
    """Load a degree sequence, with its raw measurements where they were saved."""
    manifest = read_manifest(path)
    if manifest.get("kind") != KIND:
        raise RequestError(f"{path} holds a release of kind {manifest.get('kind')!r}, not {KIND!r}.")
    table = read_table(path, "counts.parquet")
    try:
        privacy = manifest["privacy"]
        loss = "epsilon" if privacy["definition"] == "pure" else "rho"
        budget = Budget(privacy["definition"], Fraction(privacy[loss]))
        bound = Sensitivity(privacy["sensitivity"]["l1"], privacy["sensitivity"]["l2_squared"])
        degrees = np.repeat(table["degree"].to_numpy(), table["count"].to_numpy())
        noisy = None
        if "noisy.parquet" in manifest["files"]:
            noisy = np.array(read_table(path, "noisy.parquet")["value"].to_numpy(), dtype=np.int64)
        del manifest["files"], manifest["format_version"]
        return DegreeSequence(degrees.astype(np.int64), noise_for(budget, bound), manifest, noisy)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, TallytreeError):
            raise
        raise VerificationError(f"{path} is not a whole degree sequence: {error}.", ("manifest.json",)) from None


def verify_degrees(path: str | Path) -> Verification:
    """Check a degree sequence on disk: checksums first, then what its tables promise."""
    changed = changed_files(path)
    files = Check("files match their checksums", not changed, " ".join(changed))
    if changed:
        return Verification((files,))
    try:
        return Verification((files, *load_degrees(path).verify().checks))
    except TallytreeError as error:
        return Verification((files, Check("tables can be read", False, str(error))))

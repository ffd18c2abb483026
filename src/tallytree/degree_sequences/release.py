"""A released unattributed histogram: sorted counts, such as the degrees of a graph, and the
manifest of their origin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from tallytree.degree_sequences.estimate import check_method, publishable_degrees
from tallytree.degree_sequences.kernels import is_graphical
from tallytree.errors import RequestError
from tallytree.model.arrays import IntArray, read_only
from tallytree.model.notebook import html_table
from tallytree.model.part import Part, kept_rows
from tallytree.model.unit import Unit
from tallytree.privacy.accounting import Composition, MechanismRecord, noise_to_json, record_to_json
from tallytree.privacy.budget import Budget, noise_for, written_fraction
from tallytree.privacy.guarantee import Guarantee, budget_of, guarantee_to_json
from tallytree.privacy.noise import Noise
from tallytree.privacy.sensitivity import Sensitivity
from tallytree.releases.checks import Check, Verification
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import Folder, Manifest
from tallytree.version import library_versions

KIND = "degrees"


@dataclass(frozen=True, eq=False)
class DegreeSequence(Published):
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

    Examples
    --------
    >>> friends = tt.degrees([2, 0, 10, 2], epsilon=1)
    >>> bool(friends.kth_largest(1) == friends.degrees[-1])
    True
    """

    kind: ClassVar[str] = KIND
    title: ClassVar[str] = "a degree sequence"
    answers: ClassVar[frozenset[str]] = frozenset({"size", "at_least", "largest"})

    degrees: IntArray
    noise: Noise
    manifest: Manifest
    noisy: IntArray | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        read_only(self.degrees)
        if self.noisy is not None:
            read_only(self.noisy)

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
        """Check that degrees are as promised and follow from the raw measurements, where these are
        at hand.
        """
        promised = self.manifest["mechanism"]
        n_nodes = self.manifest["public"]["groups"]
        checks = (
            []
            if n_nodes is None
            else [Check("there is one degree per group", len(self.degrees) == int(n_nodes))]
        )
        if promised["name"] != "noisy":
            checks.append(Check("degrees are not negative", bool(self.degrees.min(initial=0) >= 0)))
        if promised["graphical"]:
            checks.append(Check("some graph has these degrees", self.is_graphical()))
        if self.noisy is not None:
            again = publishable_degrees(
                self.noisy, check_method(promised["name"]), graphical=promised["graphical"]
            )
            # A tie may be rounded the other way on another machine.
            follow = len(again) == len(self.degrees) and bool(
                np.abs(again - self.degrees).max(initial=0) <= 1
            )
            checks.append(Check("degrees follow from the noisy answers", follow))
        return Verification(tuple(checks))

    def _reply(self, question: Question) -> Reply:
        """Counts of nodes; without a question, how many nodes have each degree."""
        found: dict[str, int] = {}
        if question.size is not None:
            found[f"nodes of degree {question.size}"] = self.of_degree(question.size)
        if question.at_least is not None:
            found[f"nodes of at least {question.at_least}"] = self.at_least(question.at_least)
        if question.largest is not None:
            found[f"degree of node {question.largest} from the largest"] = self.kth_largest(
                question.largest
            )
        if found:
            return Reply(
                "degrees",
                ("question", "answer"),
                [list(pair) for pair in found.items()],
                dict(found),
            )
        rows = [[row["degree"], row["count"]] for row in self.table().to_pylist()]
        return Reply("degrees", ("degree", "count"), rows, {"counts": rows})

    def tables(self, *, noisy: bool) -> dict[str, pa.Table]:
        """Nodes by degree, and the raw measurements in the true order."""
        tables = {"counts.parquet": self.table()}
        if noisy and self.noisy is not None:
            tables["noisy.parquet"] = sorted_table(self.noisy)
        return tables

    def __repr__(self) -> str:
        return self._described(f"{len(self.degrees):,} nodes")

    def _repr_html_(self) -> str:
        degree, count = np.unique(self.degrees, return_counts=True)
        rows = zip(degree.tolist(), count.tolist())
        caption = f"Degree sequence of {len(self.degrees):,} nodes"
        note = self.manifest["privacy"]["statement"]
        return html_table(caption, ["degree", "nodes"], rows, n_rows=len(degree), note=note)


def sorted_table(noisy: IntArray) -> pa.Table:
    """The raw measurements in the true order: level, query, index, value."""
    return pa.table(
        {
            "level": np.zeros(len(noisy), dtype=np.int64),
            "query": pa.array(["sorted"] * len(noisy)).dictionary_encode(),
            "index": np.arange(len(noisy)),
            "value": noisy,
        }
    )


@dataclass(frozen=True)
class PublicSizes:
    """What is public about a degree sequence, which its manifest says.

    Attributes
    ----------
    unit
        What is protected.
    fixed
        What neighbours have in common, in words: how many groups or nodes there are; None for
        nothing.
    n_groups
        How many groups or nodes there are; None where that is confidential.
    note
        Why their number counts as public, in words.
    max_quantity
        Bound on what one entity adds to the size of its group.
    part
        The rows that were read: those of one part, or all of them (None).
    alone
        In words, where a unit that is alone is not covered; see
        :class:`~tallytree.model.confidential.ConfidentialCounts`.
    """

    unit: Unit
    fixed: str | None
    n_groups: int | None
    note: str
    max_quantity: int = 1
    part: Part | None = None
    alone: str = ""


@dataclass(frozen=True)
class PlannedQuery:
    """One query of a degree sequence with its noise, and the part of the budget that it costs."""

    query: str
    sensitivity: Sensitivity
    noise: Noise
    cost: Fraction

    def facts(self, symbol: str) -> dict[str, Any]:
        """The query as a manifest lists it."""
        bound = self.sensitivity
        shown = {"query": self.query, symbol: str(self.cost)}
        return shown | {
            "sensitivity": {"l1": bound.l1, "l2_squared": bound.l2_squared},
            **noise_to_json(self.noise),
        }


def degrees_manifest(
    sizes: PublicSizes,
    budget: Budget,
    queries: Sequence[PlannedQuery],
    *,
    mechanism: dict[str, Any],
    secure: bool,
) -> Manifest:
    """Everything that ``manifest.json`` says about a degree sequence, all of it public.

    Where the number of groups is measured too, both queries are listed under ``side_queries``.
    """
    words, fixed = sizes.unit.words, (sizes.fixed,) if sizes.fixed else ()
    guarantee = Guarantee(budget, sizes.unit, fixed, secure, alone=sizes.alone)
    records = tuple(
        MechanismRecord(
            mechanism["name"], None, one.query, words, one.sensitivity, one.noise, one.cost
        )
        for one in queries
    )
    listed = [one.facts(budget.symbol) for one in queries]
    alone = {name: listed[0][name] for name in listed[0] if name not in ("query", budget.symbol)}
    return {
        "kind": KIND,
        "mechanism": mechanism,
        "privacy": {
            **guarantee_to_json(guarantee),
            **(alone if len(queries) == 1 else {"side_queries": listed}),
            "composition": record_to_json(
                records[0] if len(queries) == 1 else Composition("sequential", records)
            ),
        },
        "public": {
            "groups": sizes.n_groups,
            "max_quantity": sizes.max_quantity,
            "note": sizes.note,
        },
        **kept_rows(sizes.part),
        "versions": library_versions(),
    }


def facts_of_degrees(privacy: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of a privacy block: sensitivity, noise and cost of the sorted counts."""
    return privacy["side_queries"][-1] if "side_queries" in privacy else privacy


def load_degrees(folder: Folder) -> DegreeSequence:
    """The degree sequence of a folder, with its raw measurements where they were saved."""
    table, privacy = folder.table("counts.parquet"), folder.manifest["privacy"]
    facts, budget = facts_of_degrees(privacy), budget_of(privacy)
    bound = Sensitivity(facts["sensitivity"]["l1"], facts["sensitivity"]["l2_squared"])
    part = Budget(budget.definition, written_fraction(facts[budget.symbol]))
    degrees = np.repeat(table["degree"].to_numpy(), table["count"].to_numpy())
    noisy = None
    if folder.has("noisy.parquet"):
        noisy = np.array(folder.table("noisy.parquet")["value"].to_numpy(), dtype=np.int64)
    return DegreeSequence(degrees.astype(np.int64), noise_for(part, bound), folder.manifest, noisy)

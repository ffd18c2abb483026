"""A whole kind of release in one file: one noisy total. Beside it, a kind needs one line in
``kinds/table.py``, and a command of its own if people are to make it on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from tallytree.ledger.payment import Payment
from tallytree.model.confidential import Confidential, Fact
from tallytree.model.unit import Unit
from tallytree.privacy.accounting import MechanismRecord, noise_to_json, record_to_json
from tallytree.privacy.budget import noise_for, stated_budget
from tallytree.privacy.guarantee import Guarantee, guarantee_to_json
from tallytree.privacy.noise import add_noise
from tallytree.privacy.sensitivity import group_totals_sensitivity
from tallytree.releases.checks import Check, Verification
from tallytree.releases.keeping import Keeping, paid_noise
from tallytree.releases.kind import Kind, No
from tallytree.releases.privacy_checks import check_privacy
from tallytree.releases.published import Published
from tallytree.releases.questions import Question, Reply
from tallytree.storage.folder import Folder, Manifest
from tallytree.version import library_versions


@dataclass(frozen=True, eq=False, repr=False)
class ConfidentialTotal(Confidential):
    """Confidential: how many rows there are."""

    n_rows: int

    def facts(self) -> Iterator[Fact]:
        """Confidential: the number, for a keyed fingerprint of it alone."""
        yield str(self.n_rows)


@dataclass(frozen=True, eq=False)
class Total(Published):
    """A noisy number of rows."""

    kind: ClassVar[str] = "total"
    title: ClassVar[str] = "a total"
    answers: ClassVar[frozenset[str]] = frozenset()

    value: int
    manifest: Manifest = field(repr=False)

    def table(self) -> pa.Table:
        return pa.table({"count": [self.value]})

    def tables(self, *, noisy: bool) -> dict[str, pa.Table]:
        return {"counts.parquet": self.table()}

    def verify(self) -> Verification:
        return Verification((Check("the total is whole", isinstance(self.value, int)),))

    def _reply(self, question: Question) -> Reply:
        return Reply("total", ("rows",), [[self.value]], {"rows": self.value})


def total(
    rows: list[object],
    *,
    epsilon: object,
    payment: Payment | None = None,
    insecure_seed: int | None = None,
) -> Total:
    budget, unit, bound = stated_budget(epsilon, None, "pure"), Unit(), group_totals_sensitivity()
    noise = noise_for(budget, bound)
    facts = {
        "sensitivity": {"l1": bound.l1, "l2_squared": bound.l2_squared},
        **noise_to_json(noise),
    }
    manifest = {
        "kind": "total",
        "mechanism": {"name": "laplace"},
        "privacy": {
            **guarantee_to_json(Guarantee(budget, unit, (), insecure_seed is None)),
            **facts,
            "composition": record_to_json(
                MechanismRecord(
                    "laplace", None, "group totals", unit.words, bound, noise, budget.total
                )
            ),
        },
        "public": {"max_quantity": 1},
        "versions": library_versions(),
    }
    confidential = ConfidentialTotal(len(rows))
    with paid_noise(Keeping(payment), manifest, insecure_seed, read=confidential) as paid:
        noisy = add_noise(
            np.array([confidential.n_rows]), noise, paid.stream, level=0, query="total"
        )
    return Total(int(noisy[0]), paid.manifest)


def load_total(folder: Folder) -> Total:
    return Total(folder.table("counts.parquet")["count"][0].as_py(), folder.manifest)


KIND = Kind(
    name="total",
    title="a total",
    command="–",
    function="tests.kinds.toy.total",
    load=load_total,
    check_privacy=lambda folder: check_privacy(
        folder, lambda folder, leaves: [group_totals_sensitivity() for _ in leaves]
    ),
    page=lambda made, evaluation, look: f"<p>{made.value}</p>",
    estimate=No("it is a toy."),
    evaluate=No("it is a toy."),
    plan=No("it is a toy."),
    intervals=No("it is a toy."),
    spark=No("it is a toy."),
)

"""What every kind of release is and can do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from tallytree.errors import RequestError
from tallytree.extensions import added_module
from tallytree.model.notebook import Page, Picture
from tallytree.releases.checks import Verification
from tallytree.releases.questions import FLAGS, Question, Reply
from tallytree.storage.folder import Manifest, write_folder
from tallytree.storage.work import Work

NO_MEASUREMENTS = (
    "This release was saved without its raw measurements, so it cannot be estimated again."
)


class Published(Protocol):
    """A release of any kind: released tables, and the manifest that says how they came about.

    Kinds inherit it and fill in the four methods without a body; :mod:`tallytree.kinds` lists them.

    Attributes
    ----------
    kind
        Name of the kind, as manifests have it.
    title
        What a folder of this kind holds, in words: "a histogram".
    answers
        Fields of :class:`~tallytree.releases.questions.Question` that the kind can answer.
    manifest
        Mechanism, privacy, what is public: everything that ``manifest.json`` will hold.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    answers: ClassVar[frozenset[str]]
    manifest: Manifest

    def table(self) -> pa.Table:
        """The released numbers as an Arrow table."""

    def tables(self, *, noisy: bool) -> Mapping[str, pa.Table | pa.RecordBatchReader]:
        """Every file of the folder but the manifest; the raw measurements only if ``noisy``."""

    def to_pandas(self) -> Any:
        """The released numbers as a pandas DataFrame; pandas must be installed."""
        from tallytree.ingest.frames import pandas_frame

        return pandas_frame(self.table())

    def to_polars(self) -> Any:
        """The released numbers as a Polars DataFrame; Polars must be installed."""
        from tallytree.ingest.frames import polars_frame

        return polars_frame(self.table())

    def report(self, path: str | Path | None = None, **look: Any) -> Page:
        """The page of the release, which a notebook shows; written to ``path`` too. Keywords as of
        ``tallytree report``.
        """
        page: Page = added_module("showing").report(self, path, **look)
        return page

    def plot(self, path: str | Path | None = None, **what: Any) -> Picture:
        """A picture of the release, which a notebook shows; written to ``path`` too. Of group
        sizes: ``region=``.
        """
        picture: Picture = added_module("showing").plot(self, path, **what)
        return picture

    def verify(self) -> Verification:
        """Check that the numbers are what the manifest promises."""

    def _reply(self, question: Question) -> Reply:
        """Answer a question of which every part can be answered."""

    @property
    def private(self) -> bool:
        """Whether the noise came from secure randomness; False for experiments with
        ``insecure_seed``.
        """
        return bool(self.manifest["privacy"]["private"])

    @property
    def mechanism(self) -> str:
        """Name of the mechanism used."""
        return str(self.manifest["mechanism"]["name"])

    def ask(self, question: Question) -> Reply:
        """Answer a question; refuse one of which the kind cannot answer every part."""
        beyond = [FLAGS[name] for name in question.asked() if name not in self.answers]
        if beyond:
            can = ", ".join(FLAGS[name] for name in FLAGS if name in self.answers)
            raise RequestError(
                f"This is {self.title}, which cannot answer {', '.join(beyond)}. It answers: {can}."
            )
        return self._reply(question)

    def save(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        noisy: bool = True,
        work: Work | None = None,
    ) -> Path:
        """Write the release as a folder; ``noisy=False`` leaves the raw measurements out, ``work``
        claimed it before.
        """
        tables, manifest = self.tables(noisy=noisy), self.saved_manifest()
        return write_folder(path, tables, manifest, overwrite=overwrite, work=work)

    def saved_manifest(self) -> Manifest:
        """The manifest with facts that are only known when the release is saved."""
        return self.manifest

    def _described(self, what: str) -> str:
        """The repr of a release: what it covers, by which mechanism, at which loss."""
        privacy = self.manifest["privacy"]
        loss = ", ".join(
            f"{name} = {privacy[name]}" for name in ("epsilon", "rho") if name in privacy
        )
        mark = "" if self.private else ", NOT PRIVATE: made with an insecure seed"
        return f"{type(self).__name__}({what}, {self.mechanism}, {loss}{mark})"
